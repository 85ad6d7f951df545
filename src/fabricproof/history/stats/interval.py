"""By how much: Hodges-Lehmann estimate, and the interval that Mann and Whitney's test leaves.

A ratio r is within the interval exactly where the test of "second divided by r is like first" does
not reject (Hodges and Lehmann 1963; Lehmann 1975, *Nonparametrics*, section 2.6).  U counts the
pairs, one run of each side, whose ratio is below r; with blocks only pairs of one block count, and
the distribution of the sum follows from those of the blocks (van Elteren 1960, equal weights).
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.stats.power import Sizes

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]

_ROUNDING = 1e-12
_CELLS = 1_000_000

#: with more pairs U is normal to within a pair or two of a thousand
_EXACT = 2500


@dataclass(frozen=True, kw_only=True, slots=True)
class Intervals:
    """Ratios of second over first, one per row; NaN where there is none.

    Attributes:
        ratio: Hodges-Lehmann estimate.
        low: lower end.
        high: upper end.
        level: confidence that may be claimed: the wanted one, or what so few runs attain.
        sizes: of each block, runs with a number on the first and on the second side; blocks with
            none on a side say nothing and are left out.
    """

    ratio: Values
    low: Values
    high: Values
    level: Values
    sizes: tuple[Sizes, ...]


@functools.lru_cache(maxsize=4096)
def null_distribution(sizes: Sizes) -> tuple[float, ...]:
    """Return the probability of U = 0, 1, 2 ... where nothing changed and no two are equal.

    Args:
        sizes: of each block, runs of the first and of the second side.
    """
    whole = np.ones(1)
    for first, second in sizes:
        whole = np.convolve(whole, _one_block(first, second))
    return tuple(whole.tolist())


@functools.lru_cache(maxsize=4096)
def _one_block(first: int, second: int) -> Values:
    """Return the distribution of U: the largest of all runs is of one side or the other.

    Mann and Whitney 1947: p(u; n, m) = n/(n+m) p(u-m; n-1, m) + m/(n+m) p(u; n, m-1); column by
    column, so that neither recursion nor memory grows deep.
    """
    before: list[Values] = [np.ones(1) for _ in range(first + 1)]
    for m in range(1, second + 1):
        now: list[Values] = [np.ones(1)]
        for n in range(1, first + 1):
            here = np.zeros(n * m + 1)
            here[m:] += n / (n + m) * now[n - 1]
            here[: n * (m - 1) + 1] += m / (n + m) * before[n]
            now.append(here)
        before = now
    return before[first]


@functools.lru_cache(maxsize=4096)
def ends(sizes: Sizes, level: float, least: float) -> tuple[int, float]:
    """Return how many pairs to leave out at each end, and the level; (0, 0.0): no interval.

    The k-th smallest and k-th largest ratio of pairs are the ends, with k the largest for which
    1 - 2 P(U < k) is at least ``level``; if none is, k = 1 where that gives at least ``least``.

    Args:
        sizes: as in :func:`null_distribution`.
        level: wanted.
        least: below it there is no interval.
    """
    if sum(n * m for n, m in sizes) > _EXACT:
        return _ends_of_many(sizes, level), level
    tail = np.cumsum(null_distribution(sizes))
    attained = 1.0 - 2.0 * tail
    kept = int((attained >= level - _ROUNDING).sum())
    if kept and len(tail) > 1:
        return kept, level
    if len(tail) > 1 and attained[0] >= least - _ROUNDING:
        return 1, float(round(attained[0], 12))
    return 0, 0.0


def _ends_of_many(sizes: Sizes, level: float) -> int:
    """Return how many pairs to leave out at each end, U taken for normal.

    Mean nm/2 and variance nm(n+m+1)/12 of each block (Mann and Whitney 1947).
    """
    mean = sum(n * m for n, m in sizes) / 2.0
    variance = sum(n * m * (n + m + 1) for n, m in sizes) / 12.0
    off = statistics.NormalDist().inv_cdf((1.0 + level) / 2.0)
    return max(int(mean - off * math.sqrt(variance)), 1)


def intervals(
    values: Values,
    is_second: npt.NDArray[np.bool_],
    *,
    level: float,
    least: float,
) -> Intervals:
    """Return ratio and interval of each row.

    Args:
        values: shape (rows, runs), positive, NaN where absent.
        is_second: shape (runs,).
        level: confidence wanted.
        least: confidence below which there is no interval.
    """
    first, second = np.nonzero(~is_second[:, None] & is_second[None, :])
    found = np.full((4, len(values)), np.nan)
    sizes = _sizes_of_rows(values, is_second)
    if first.size:
        step = max(1, _CELLS // first.size)
        for start in range(0, len(values), step):
            part = slice(start, start + step)
            logs = np.log(values[part])
            ratios = np.sort(logs[:, second] - logs[:, first], axis=1)
            found[:, part] = _from_sorted(ratios, sizes[part], level, least)
    return Intervals(
        ratio=found[0], low=found[1], high=found[2], level=found[3], sizes=tuple(sizes)
    )


def _sizes_of_rows(values: Values, is_second: npt.NDArray[np.bool_]) -> list[Sizes]:
    here = np.isfinite(values)
    counts = zip(
        here[:, ~is_second].sum(1).tolist(), here[:, is_second].sum(1).tolist(), strict=True
    )
    return [((first, second),) if first and second else () for first, second in counts]


def _from_sorted(ratios: Values, sizes: Sequence[Sizes], level: float, least: float) -> Values:
    """Return ratio, low, high and level, shape (4, rows), of sorted logarithms of ratios."""
    plan = {each: (*ends(each, level, least), sum(n * m for n, m in each)) for each in set(sizes)}
    kept, levels, num = (np.array(each) for each in zip(*(plan[s] for s in sizes), strict=True))

    def nth(at: Whole) -> Values:
        inside = np.clip(at, 0, ratios.shape[1] - 1).astype(np.int64)[:, None]
        return np.take_along_axis(ratios, inside, axis=1)[:, 0]

    middle = (nth((num - 1) // 2) + nth(num // 2)) / 2.0
    found = np.array([middle, nth(kept - 1), nth(num - kept)])
    found[0, num == 0] = np.nan
    found[1:, kept == 0] = np.nan
    return np.vstack([np.exp(found), np.where(kept > 0, levels, np.nan)[None, :]])
