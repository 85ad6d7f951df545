"""Does the order of the runs matter: a trend within a side, or nights that take after each other.

Relabelling takes runs for exchangeable.  Where each takes after the one before, two groups that
follow each other in time differ more often than relabelling knows, and a drift is taken for the
work of whatever was changed.  Nothing in the numbers can mend that; this says when to mistrust.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

#: orders that are tried beside the real one
_ORDERS = 1999


def order_matters(values: Values, is_second: Sequence[bool], *, seed: int = 20261121) -> float:
    """Return the p of "within a side, the order of the runs does not matter".

    The statistic is the lag-1 product of neighbours in time on the same side (von Neumann 1941),
    each row less the mean of its side and of unit length, summed over all rows; whole columns
    change places within their side.  One-sided: drift and memory both make neighbours alike.

    Args:
        values: shape (rows, runs), positive, NaN where absent; columns in the order of time.
        is_second: for each run, whether it is of the second side.
        seed: of the random orders.

    Returns:
        In (0, 1]; 1.0 where no side has three runs.  Few runs find strong dependence only.
    """
    second = np.asarray(is_second, dtype=np.bool_)
    sides = [np.flatnonzero(second == side) for side in (False, True)]
    sides = [each for each in sides if len(each) >= 3]
    if not sides or not len(values):
        return 1.0
    likeness = _likeness(np.log(values), sides)
    random = np.random.default_rng(seed)

    def statistic(orders: Sequence[npt.NDArray[np.int64]]) -> float:
        return float(sum(likeness[each[:-1], each[1:]].sum() for each in orders))

    real = statistic(sides)
    others = [statistic([random.permutation(each) for each in sides]) for _ in range(_ORDERS)]
    return (1 + sum(each >= real - 1e-9 * abs(real) for each in others)) / (1 + _ORDERS)


def _likeness(logs: Values, sides: Sequence[npt.NDArray[np.int64]]) -> Values:
    """Return how alike each two runs are, summed over rows, shape (runs, runs)."""
    here = np.isfinite(logs)
    rest = np.zeros_like(logs)
    for each in sides:
        count = np.maximum(here[:, each].sum(axis=1, keepdims=True), 1)
        mean = np.where(here[:, each], logs[:, each], 0.0).sum(axis=1, keepdims=True) / count
        rest[:, each] = np.where(here[:, each], logs[:, each] - mean, 0.0)
    length = np.sqrt((rest * rest).sum(axis=1, keepdims=True))
    rest /= np.where(length > 1e-9, length, np.inf)
    likeness: Values = rest.T @ rest
    return likeness
