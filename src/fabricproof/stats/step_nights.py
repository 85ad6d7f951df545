"""What single nights do to steps: nights that hang together, and a last night that is far off."""

from __future__ import annotations

import math

import numpy as np

from fabricproof.stats.step_fit import lines, places
from fabricproof.stats.step_orders import random_orders
from fabricproof.stats.step_scale import (
    LEAST_RUNS,
    Flags,
    Values,
    median_of_rows,
    scale_of_rows,
    scaled,
)

#: shorter rows say nothing of how one night hangs together with the next
_LEAST_FOR_LAG = 10

#: rows that are asked, and orders that tell what is found where nights do not hang together
_ASKED, _ORDERS = 400, 15


def hanging_together(logs: Values, prior: Values, seed: int) -> float:
    """Return the correlation of one run with the next, over all rows, where it is more than noise.

    Of what is left when each row's best step, or its line where that leaves less, is taken away.
    What the same residuals give in other orders is subtracted, since fitting leaves a negative one.

    Returns:
        In [0, 0.95]; 0 also where no row is long enough.
    """
    long = np.flatnonzero(np.isfinite(logs).sum(axis=1) >= _LEAST_FOR_LAG)
    if not len(long):
        return 0.0
    asked = long[np.linspace(0, len(long) - 1, min(len(long), _ASKED)).astype(int)]
    left = _residuals(logs[asked], prior[asked])
    found = _lag_one(_residuals(left, prior[asked]))
    by_chance = [
        _lag_one(_residuals(left[:, order], prior[asked]))
        for order in random_orders(logs.shape[1], _ORDERS, seed)
    ]
    excess = found - float(np.mean(by_chance))
    typical = float(np.median(np.isfinite(logs[asked]).sum(axis=1)))
    return min(excess, 0.95) if excess > 1 / math.sqrt(typical) else 0.0


def fewer_nights(lag: float) -> float:
    """Return for how many independent nights one counts (Bayley and Hammersley 1946).

    The mean of nights of which each hangs together with the next by ``lag`` scatters as that of
    (1 - lag) / (1 + lag) times as many.
    """
    return (1 - lag) / (1 + lag)


def _residuals(logs: Values, prior: Values) -> Values:
    """Return what is left of each row without its best step or its line."""
    split = places(scaled(logs, prior)).at
    after = np.arange(logs.shape[1]) >= split[:, None]
    stepped = logs.copy()
    for side in (after, ~after):
        level = median_of_rows(np.where(side, logs, np.nan))
        stepped = np.where(side, stepped - np.nan_to_num(level)[:, None], stepped)
    slopes, starts = lines(logs)
    sloped = logs - starts[:, None] - slopes[:, None] * np.arange(logs.shape[1])
    is_line = np.nansum(np.abs(sloped), axis=1) < np.nansum(np.abs(stepped), axis=1)
    return np.where(is_line[:, None], sloped, stepped)


def _lag_one(residuals: Values) -> float:
    here = np.nan_to_num(residuals)
    scatter = np.maximum((here**2).sum(axis=1), 1e-12)
    return float(np.median((here[:, 1:] * here[:, :-1]).sum(axis=1) / scatter))


def last_run(residuals: Values, prior: Values, enough: Flags) -> Values:
    """Return for each row how surprising its last run is, adjusted over all rows; 1 where not.

    No order of n runs can tell one run that is off by chance from one that is off for a reason:
    the last is the furthest off of all once in n histories.  So a last run is told only if it is
    further off than any run of any row ever was, and by how many times is what p is made of:
    of noise whose variance is finite (tails as a power of at least 2) the furthest is r times as
    far off as the next with a chance of at most r^-2 (Pareto tails; Embrechts, Klueppelberg and
    Mikosch 1997, section 4), so p = r^-2 / n.

    Args:
        residuals: logs around the level that each row has at that time, NaN where absent.
        prior: scatter of the class of each row.
        enough: rows that have enough runs at their last level.
    """
    p = np.ones(len(residuals))
    counts = np.isfinite(residuals).sum(axis=1)
    rows = np.flatnonzero(counts >= LEAST_RUNS)
    if not len(rows):
        return p
    far = np.abs(residuals[rows]) / scale_of_rows(residuals[rows], prior[rows])[:, None]
    others = float(np.nanmax(far[:, :-1]))
    ratio = np.nan_to_num(far[:, -1]) / max(others, 1e-9)
    nights = int(np.isfinite(far).any(axis=0).sum())
    p[rows] = np.where(ratio > 1, np.maximum(ratio, 1.0) ** -2 / nights, 1.0)
    return np.where(enough, p, 1.0)
