"""By how much: Hodges-Lehmann estimate, and the interval that Mann and Whitney's test leaves.

A ratio r is within the interval exactly where the test of "second divided by r is like first" does
not reject (Hodges and Lehmann 1963; Lehmann 1975, *Nonparametrics*, section 2.6).  U counts the
pairs, one run of each side, whose ratio is below r.
"""

from __future__ import annotations

import functools
import math
import statistics
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.stats.power import Sizes

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

_ROUNDING = 1e-12
_CELLS = 1_000_000

#: with more pairs U is normal to within a pair or two of a thousand
_EXACT = 2500


@functools.lru_cache(maxsize=4096)
def null_distribution(sizes: Sizes) -> tuple[float, ...]:
    """Return the probability of U = 0, 1, 2 ... where nothing changed and no two are equal.

    The largest of all runs is of one side or the other (Mann and Whitney 1947): p(u; n, m) =
    n/(n+m) p(u-m; n-1, m) + m/(n+m) p(u; n, m-1), column by column.
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
    """Return how many pairs to leave out at each end, and the level; (0, nan): no interval.

    The k-th smallest and k-th largest ratio of pairs are the ends, with k the largest for which
    1 - 2 P(U < k) is at least ``level``; if none is, k = 1 where that gives at least ``least``.
    With more pairs than ``_EXACT``, U is taken for normal: mean nm/2 and variance nm(n+m+1)/12
    (Mann and Whitney 1947).
    """
    pairs = math.prod(sizes)
    if pairs > _EXACT:
        off = statistics.NormalDist().inv_cdf((1.0 + level) / 2.0)
        return max(int(pairs / 2.0 - off * math.sqrt(pairs * (sum(sizes) + 1) / 12.0)), 1), level
    attained = 1.0 - 2.0 * np.cumsum(null_distribution(sizes))
    if pairs and (kept := int((attained >= level - _ROUNDING).sum())):
        return kept, level
    if pairs and attained[0] >= least - _ROUNDING:
        return 1, float(round(attained[0], 12))
    return 0, math.nan


def intervals(
    values: Values, is_second: npt.NDArray[np.bool_], *, level: float, least: float
) -> Values:
    """Return the logarithms of ratio, lower and upper end, and the level, shape (4, rows).

    Ratios are of second over first; NaN where there is none.
    """
    first, second = np.nonzero(~is_second[:, None] & is_second[None, :])
    found = np.full((4, len(values)), np.nan)
    counts = (np.isfinite(values[:, of]).sum(axis=1).tolist() for of in (~is_second, is_second))
    sizes = list(zip(*counts, strict=True))
    step = max(1, _CELLS // max(first.size, 1))
    for start in range(0, len(values) if first.size else 0, step):
        part = slice(start, start + step)
        logs = np.log(values[part])
        ratios = np.sort(logs[:, second] - logs[:, first], axis=1)
        pairs = np.array([math.prod(each) for each in sizes[part]])
        kept, levels = np.array([ends(each, level, least) for each in sizes[part]]).T
        kept = kept.astype(np.int64)
        at = np.array([(pairs - 1) // 2, pairs // 2, kept - 1, pairs - kept]).T
        low, high, *both = np.take_along_axis(ratios, np.clip(at, 0, first.size - 1), axis=1).T
        found[0, part] = np.where(pairs > 0, (low + high) / 2.0, np.nan)
        found[1:3, part] = np.where(kept > 0, both, np.nan)
        found[3, part] = levels
    return found
