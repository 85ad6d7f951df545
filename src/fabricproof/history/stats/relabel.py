"""Rows of numbers made ready to be relabelled, and the other ways to call runs first or second.

If nothing changed between the sides, which run is on which side says nothing of its numbers, and
every way to share the runs out was as likely as the one that happened.

Of a row, x = ln(value) less its median; what is far out is drawn in, and the mean is taken off.
How far is far out must not depend on the labels: it goes by Qn (Rousseeuw and Croux 1993,
"Alternatives to the median absolute deviation"), a quantile of the differences of all pairs of
runs.  As long as a quarter of all pairs are of one side it stays bounded whatever the change, in
whatever order the runs came; successive differences in time, which von Neumann (1941) took, break
where two settings alternate.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.stats.power import number_of_labellings

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]


#: no noise is below one in a million: numbers are printed with fewer digits than that
LEAST_NOISE = 1e-6

#: numbers further than so many scatters from the middle of their row are drawn in
FAR_OUT = 4.0

#: equal labellings may differ by so much in their last digits
ROUNDING = 1e-9

#: numbers held at a time, of each intermediate result
_CELLS = 1_000_000

#: 1 / (sqrt(2) * the 5/8 quantile of the normal distribution), Rousseeuw and Croux 1993
_QN_NORMAL = 2.2219

#: more numbers than these say no more of a scatter, and their pairs would fill the memory
_QUANTILES = 64

#: Qn is too large in small samples by this factor; Croux and Rousseeuw 1992, "Time-efficient
#: algorithms for two highly robust estimators of scale"
_QN_SMALL = {2: 0.399, 3: 0.994, 4: 0.512, 5: 0.844, 6: 0.611, 7: 0.857, 8: 0.669, 9: 0.872}


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """Rows ready to be relabelled.

    Attributes:
        x: shape (rows, runs), logarithms less the mean of their row; 0.0 where there is none.
        here: shape (rows, runs), 1.0 where there is a number.
        total: shape (rows,), sum of squares of x.
        freedom: shape (rows,), degrees of freedom within the sides.
        noise: shape (rows,), usual variance of all numbers of a row of its kind.
        kind: shape (rows,), number of its kind, from 0.
    """

    x: Values
    here: Values
    total: Values
    freedom: Values
    noise: Values
    kind: Whole

    def take(self, rows: Whole | slice) -> Rows:
        """Return some rows."""
        return Rows(
            x=self.x[rows],
            here=self.here[rows],
            total=self.total[rows],
            freedom=self.freedom[rows],
            noise=self.noise[rows],
            kind=self.kind[rows],
        )

    @property
    def is_whole(self) -> bool:
        """Whether no number is absent."""
        return bool(self.here.all())


def prepare(values: Values, classes: Sequence[int]) -> Rows:
    """Return rows ready to be relabelled."""
    logs = np.log(values)
    here = np.isfinite(logs)
    logs -= row_medians(logs)[:, None]
    scale = qn(logs)
    noise = _noise_of_kinds(scale, np.asarray(classes))
    x = _tamed(np.where(here, logs, 0.0), np.fmax(scale, np.sqrt(noise)))
    x[~here] = np.nan
    x -= _mean(x)[:, None]
    x[~here] = 0.0
    return Rows(
        x=x,
        here=here.astype(np.float64),
        total=(x * x).sum(axis=1),
        freedom=np.maximum(here.sum(axis=1) - here.any(axis=1) - 1.0, 0.0),
        noise=noise,
        kind=np.unique(np.asarray(classes), return_inverse=True)[1].reshape(-1).astype(np.int64),
    )


def _mean(x: Values) -> Values:
    here = np.isfinite(x)
    mean: Values = np.where(here, x, 0.0).sum(axis=1) / np.maximum(here.sum(axis=1), 1)
    return mean


def row_medians(x: Values) -> Values:
    """Return the median of each row, NaN where absent and where there is none."""
    count = np.isfinite(x).sum(axis=1)
    ordered = np.sort(x, axis=1)
    rows = np.arange(len(x))
    both: Values = (
        ordered[rows, np.maximum(count - 1, 0) // 2]
        + ordered[rows, np.minimum(count // 2, x.shape[1] - 1)]
    )
    return both / 2.0


def _tamed(x: Values, scale: Values) -> Values:
    """Draw in what is far out, by a logarithm, so that one wild run does not hide the others.

    The order of the numbers stays, and no label is looked at, so no error rate depends on it.
    """
    far = np.abs(x) / scale[:, None]
    drawn = FAR_OUT + np.log1p(np.maximum(far - FAR_OUT, 0.0))
    return np.where(far > FAR_OUT, np.sign(x) * drawn * scale[:, None], x)


def _noise_of_kinds(scale: Values, classes: Whole) -> Values:
    noise = np.full(len(scale), LEAST_NOISE**2)
    for kind in np.unique(classes):
        of = classes == kind
        known = scale[of][np.isfinite(scale[of])]
        if known.size:
            noise[of] = max(float(np.median(known)), LEAST_NOISE) ** 2
    return noise


def qn(x: Values) -> Values:
    """Return the scatter of each row by the differences of all its pairs; NaN below 2 numbers.

    Of a row with more than :data:`_QUANTILES` numbers, by those of as many of its quantiles.
    """
    x = _thinned(x) if x.shape[1] > _QUANTILES else x
    first, second = np.triu_indices(x.shape[1], 1)
    count = np.isfinite(x).sum(axis=1)
    half = count // 2 + 1
    rank = half * (half - 1) // 2
    scale = np.full(len(x), np.nan)
    if not first.size:
        return scale
    step = max(1, _CELLS // first.size)
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        pairs = np.sort(np.abs(x[part][:, first] - x[part][:, second]), axis=1)
        at = np.maximum(rank[part] - 1, 0)[:, None]
        scale[part] = np.take_along_axis(pairs, at, axis=1)[:, 0]
    factor = np.array([_small_sample(n) for n in range(x.shape[1] + 1)])
    return np.where(count >= 2, scale * _QN_NORMAL * factor[count], np.nan)


def _thinned(x: Values) -> Values:
    """Return at most so many numbers of each row, evenly spread over them in order of size."""
    count = np.isfinite(x).sum(axis=1)[:, None]
    steps = np.arange(_QUANTILES)
    at = np.where(count > _QUANTILES, (steps + 0.5) * count / _QUANTILES, steps).astype(np.int64)
    found: Values = np.take_along_axis(np.sort(x, axis=1), at, axis=1)
    return found


def _small_sample(num: int) -> float:
    if num < 10:
        return _QN_SMALL.get(num, 1.0)
    return num / (num + (1.4 if num % 2 else 3.8))


def information(rows: Rows, second: Values, least: float = 0.0) -> Values:
    """Return n m / (n + m), infinite where one side has no number.

    One row where no number is absent, one column beside where all labellings share it.

    Args:
        rows: the rows.
        second: shape (runs, labellings), 1.0 where the run is of the second side.
        least: infinite too where the numbers of a row could be shared out in fewer ways than
            this, a mirror image not counted: what cannot be sure must not hide what can.
    """
    whole = rows.is_whole
    if least and not whole and _all_surely(rows.here, second, least):
        least = 0.0
    here = rows.here[:1] if whole else rows.here
    second = second[:, :1] if whole else second
    there = here.sum(axis=1)[:, None]
    seconds = here @ second
    found: Values = seconds * (there - seconds) / np.maximum(there, 1.0)
    if least and not whole:
        ways = _log_ways(here.shape[1])[there.astype(np.int64), seconds.astype(np.int64)]
        ways = ways - math.log(2.0)
        ways[2.0 * seconds != there] += math.log(2.0)
        found[ways < math.log(least) - ROUNDING] = np.inf
    found[found <= 0] = np.inf
    return found


def _all_surely(here: Values, second: Values, least: float) -> bool:
    """Tell whether no labelling leaves any row fewer ways than ``least``.

    Of so many numbers there are the fewest ways where one side has as many as it can.
    """
    runs, num = len(second), int(second[:, 0].sum())
    counts = np.unique(here.sum(axis=1)).astype(int).tolist()
    return all(
        math.comb(count, max(min(count, side), 0)) >= 2.0 * least
        for count in counts
        for side in (num, runs - num)
    )


@functools.lru_cache
def _log_ways(most: int) -> Values:
    """Return the logarithm of the binomial coefficients up to ``most``."""
    table = np.zeros((most + 1, most + 1))
    for num in range(most + 1):
        table[num, : num + 1] = [math.log(math.comb(num, each)) for each in range(num + 1)]
    return table


#: with so many labellings or fewer all are tried; else one less than this are drawn, and the real
#: one is counted among them (Phipson and Smyth 2010, "Permutation p-values should never be zero")
MOST = 5000

#: numbers beyond which fewer are drawn: 1000 tell a p of 5 % to within 0.7 %
_MANY, _FEW_DRAWN = 1_000_000, 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Labellings:
    """Ways to share the runs out, the real one first.

    Attributes:
        second: shape (runs, labellings), 1.0 where the run is of the second side.
    """

    second: Values

    @property
    def num(self) -> int:
        """How many there are."""
        return int(self.second.shape[1])


def labellings(values: Values, is_second: npt.NDArray[np.bool_], seed: int) -> Labellings:
    """Return all labellings, or a draw of them that depends on neither side nor order.

    A draw goes by the runs in the order of their numbers, not of their columns: with the same
    seed the same runs in another order, or with the sides swapped, give the same answer.

    Args:
        values: shape (rows, runs), for that order only.
        is_second: shape (runs,).
        seed: of the draw.
    """
    order = np.array(_order_of_runs(values), dtype=np.int64)
    seconds = int(is_second.sum())
    num = number_of_labellings((is_second.size - seconds, seconds))
    most = MOST if values.size <= _MANY else _FEW_DRAWN
    if num <= MOST:
        found = list(_all(order, is_second))
    else:
        found = list(_drawn(order, is_second, np.random.default_rng(seed), most - 1))
    real = is_second.astype(np.float64)
    columns = np.array(found, dtype=np.float64).reshape(-1, is_second.size)
    if num <= MOST:
        columns = columns[(columns != real).any(axis=1)]
    return Labellings(second=np.vstack([real[None, :], columns]).T.copy())


def _order_of_runs(values: Values) -> list[int]:
    """Return the columns by their numbers from the smallest, so that no order of rows counts.

    Positive floats and their bytes sort alike.
    """
    columns = np.sort(np.nan_to_num(values.T, nan=0.0), axis=1).astype(">f8")
    return sorted(range(values.shape[1]), key=lambda run: columns[run].tobytes())


def _all(order: Whole, is_second: npt.NDArray[np.bool_]) -> Iterator[npt.NDArray[np.bool_]]:
    for chosen in itertools.combinations(order, int(is_second.sum())):
        label = np.zeros(is_second.size, dtype=np.bool_)
        label[list(chosen)] = True
        yield label


def _drawn(
    order: Whole, is_second: npt.NDArray[np.bool_], random: np.random.Generator, num: int
) -> Iterator[npt.NDArray[np.bool_]]:
    """Draw the smaller side, so that swapped sides get complements of the same."""
    second = int(is_second.sum())
    small = min(second, order.size - second)
    is_flipped = not is_second[order[0]] if second * 2 == order.size else second != small
    for _ in range(num):
        chosen = np.zeros(order.size, dtype=np.bool_)
        chosen[random.permutation(order.size)[:small]] = True
        label = np.zeros(is_second.size, dtype=np.bool_)
        label[order] = ~chosen if is_flipped else chosen
        yield label
