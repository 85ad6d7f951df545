"""How much one run hangs together with the next: a room that warms, a week of heavy use.

Such nights are no independent measurements: a mean over them scatters as that of fewer.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: shorter rows say nothing of how one night hangs together with the next
_LEAST_FOR_LAG = 10

#: rows that are asked, and rows of pure noise that tell what is found by chance
_ASKED, _BY_CHANCE = 400, 400

#: standard deviation of the estimate times the root of the runs, where runs are independent
#: (simulated: 1.8 to 1.95 for 10 to 60 runs), and how many of it count as more than noise
_SPREAD, _SURE = 1.85, 1.2

#: one in so many jumps from a run to the next may be a step; the largest do not count
_JUMPS = 8


def hanging_together(logs: Values, seed: int) -> float:
    """Return the correlation of one run with the next, over all rows, where it is more than noise.

    From differences, which levels that come and go hardly touch: where each run hangs together
    with the next by r, and with the one after by r^2, the mean square over two runs is 1 + r times
    that over one (the ratio of von Neumann 1941, doi:10.1214/aoms/1177731677, taken at two lags).
    The largest jumps of each row are left out; what that does is known from rows of pure noise.
    Beside noise of each night's own the estimate is too small for what it is used for, the weight
    of nights that are further apart: one standard deviation is added.  Of 300 simulated histories
    without a change (correlation 0.7 beside such noise) 25 were told of one without it, 4 with
    it; steps of 3 and 5 % were found 74 and 88 times of 100, 75 and 88 without it.

    Returns:
        In [0, 0.95]; the median over rows, 0 also where no row is long enough.
    """
    long = np.flatnonzero(np.isfinite(logs).sum(axis=1) >= _LEAST_FOR_LAG)
    if not len(long):
        return 0.0
    asked = _level(logs[long[np.linspace(0, len(long) - 1, min(len(long), _ASKED)).astype(int)]])
    noise = _level(np.random.default_rng(seed).normal(size=(_BY_CHANCE, logs.shape[1])))
    excess = _ratio(asked) - _ratio(noise)
    typical = float(np.median(np.isfinite(asked).sum(axis=1)))
    doubt = _SPREAD / math.sqrt(typical * _rows_that_count(asked))
    return min(excess + doubt, 0.95) if excess > _SURE * doubt else 0.0


def _level(logs: Values) -> Values:
    """Return the rows without their slope, which would pass for nights that hang together.

    The slope is the mean jump without the largest: a line through a step would leave more of it.
    """
    jumps, small = _small_jumps(logs)
    slopes = jumps.sum(axis=1) / np.maximum(small.sum(axis=1), 1)
    return np.asarray(logs - slopes[:, None] * np.arange(logs.shape[1]))


def _rows_that_count(logs: Values) -> float:
    """Return how many rows of their own these are worth: 1 where all of a night move together.

    The mean over R independent rows scatters as one of R times as many.
    """
    jumps, small = _small_jumps(logs)
    size = np.sqrt((jumps**2).sum(axis=1) / np.maximum(small.sum(axis=1), 1))
    together = (jumps / np.maximum(size, 1e-12)[:, None]).sum(axis=0)
    counted = np.maximum(small.sum(axis=0), 1)
    square = float(np.mean((together / counted) ** 2))
    return float(np.clip(1 / max(square, 1e-12), 1, len(logs)))


def _small_jumps(logs: Values) -> tuple[Values, Flags]:
    """Return the jumps from run to run, 0 for the largest and the absent, and which are left."""
    jumps = np.diff(logs, axis=1)
    far = np.abs(jumps)
    limit = np.sort(np.nan_to_num(far), axis=1)[:, -max(1, logs.shape[1] // _JUMPS), None]
    small = far < limit
    return np.where(small, jumps, 0.0), small


def _ratio(logs: Values) -> float:
    """Return the median over rows of the mean square over two runs against that over one."""
    jumps, small = _small_jumps(logs)
    two = logs[:, 2:] - logs[:, :-2]
    near = small[:, 1:] & small[:, :-1] & np.isfinite(two)
    over_one = (jumps**2).sum(axis=1) / np.maximum(small.sum(axis=1), 1)
    over_two = (np.where(near, two, 0.0) ** 2).sum(axis=1) / np.maximum(near.sum(axis=1), 1)
    return float(np.median(over_two / np.maximum(over_one, 1e-12)))


def fewer_nights(lag: float) -> float:
    """Return for how many independent nights one counts (Bayley and Hammersley 1946).

    The mean of nights of which each hangs together with the next by ``lag`` scatters as that of
    (1 - lag) / (1 + lag) times as many.
    """
    return (1 - lag) / (1 + lag)
