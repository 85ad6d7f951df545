"""By how much: Hodges-Lehmann estimate, and the interval that Mann and Whitney's test leaves.

A ratio r is within the interval exactly where the test of "second divided by r is like first" does
not reject (Hodges and Lehmann 1963; Lehmann 1975, *Nonparametrics*, section 2.6).  U counts the
pairs, one run of each side, whose ratio is below r.
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
        sizes: runs with a number on the first and on the second side.
    """

    ratio: Values
    low: Values
    high: Values
    level: Values
    sizes: tuple[Sizes, ...]


@functools.lru_cache(maxsize=4096)
def null_distribution(sizes: Sizes) -> tuple[float, ...]:
    """Return the probability of U = 0, 1, 2 ... where nothing changed and no two are equal.

    The largest of all runs is of one side or the other (Mann and Whitney 1947): p(u; n, m) =
    n/(n+m) p(u-m; n-1, m) + m/(n+m) p(u; n, m-1); column by column, so that neither recursion nor
    memory grows deep.
    """
    first, second = sizes
    before: list[Values] = [np.ones(1) for _ in range(first + 1)]
    for m in range(1, second + 1):
        now: list[Values] = [np.ones(1)]
        for n in range(1, first + 1):
            here = np.zeros(n * m + 1)
            here[m:] += n / (n + m) * now[n - 1]
            here[: n * (m - 1) + 1] += m / (n + m) * before[n]
            now.append(here)
        before = now
    return tuple(before[first].tolist())


@functools.lru_cache(maxsize=4096)
def ends(sizes: Sizes, level: float, least: float) -> tuple[int, float]:
    """Return how many pairs to leave out at each end, and the level; (0, 0.0): no interval.

    The k-th smallest and k-th largest ratio of pairs are the ends, with k the largest for which
    1 - 2 P(U < k) is at least ``level``; if none is, k = 1 where that gives at least ``least``.
    With more pairs than ``_EXACT``, U is taken for normal: mean nm/2 and variance nm(n+m+1)/12
    (Mann and Whitney 1947).
    """
    pairs = math.prod(sizes)
    if not pairs:
        return 0, 0.0
    if pairs > _EXACT:
        off = statistics.NormalDist().inv_cdf((1.0 + level) / 2.0)
        return max(int(pairs / 2.0 - off * math.sqrt(pairs * (sum(sizes) + 1) / 12.0)), 1), level
    tail = np.cumsum(null_distribution(sizes))
    attained = 1.0 - 2.0 * tail
    kept = int((attained >= level - _ROUNDING).sum())
    if kept:
        return kept, level
    if attained[0] >= least - _ROUNDING:
        return 1, float(round(attained[0], 12))
    return 0, 0.0


def intervals(
    values: Values,
    is_second: npt.NDArray[np.bool_],
    *,
    level: float,
    least: float,
) -> Intervals:
    """Return ratio and interval of each row."""
    first, second = np.nonzero(~is_second[:, None] & is_second[None, :])
    found = np.full((4, len(values)), np.nan)
    here = np.isfinite(values)
    counts = here[:, ~is_second].sum(1).tolist(), here[:, is_second].sum(1).tolist()
    sizes: list[Sizes] = list(zip(*counts, strict=True))
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


def _from_sorted(ratios: Values, sizes: Sequence[Sizes], level: float, least: float) -> Values:
    """Return ratio, low, high and level, shape (4, rows), of sorted logarithms of ratios."""
    plan = {each: (*ends(each, level, least), math.prod(each)) for each in set(sizes)}
    kept, levels, num = (np.array(each) for each in zip(*(plan[s] for s in sizes), strict=True))

    def nth(at: Whole) -> Values:
        inside = np.clip(at, 0, ratios.shape[1] - 1).astype(np.int64)[:, None]
        return np.take_along_axis(ratios, inside, axis=1)[:, 0]

    middle = (nth((num - 1) // 2) + nth(num // 2)) / 2.0
    found = np.array([middle, nth(kept - 1), nth(num - kept)])
    found[0, num == 0] = np.nan
    found[1:, kept == 0] = np.nan
    return np.vstack([np.exp(found), np.where(kept > 0, levels, np.nan)[None, :]])
