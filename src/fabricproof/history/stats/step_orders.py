"""Rows on one scale, and the order in which the runs came beside other orders of the same runs.

Whole columns change places, so that however the rows hang together, they do so in every order.
Westfall and Young 1993, *Resampling-based multiple testing*, algorithm 4.1 (step-down maxT).  What
brings rows of unlike scatter to one scale depends on the set of a row's values and not on their
order: the statistics that are made of it may be compared with those of other orders exactly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fabricproof.history.stats.power import wallace
from fabricproof.history.stats.relabel import row_medians

Values = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
#: of either precision
_Real = TypeVar("_Real", np.float32, np.float64)

Whole = npt.NDArray[np.int64]

#: a row with fewer values says nothing: with 6, half of them after a step, one order in ten is as
#: telling (2 * 3! * 3! / 6!), and only a last run that is far off can be told
LEAST_RUNS = 6

#: runs that must lie on each side of a step: one run that is off is a bad night
LEAST_SIDE = 2

#: what the scatter of its class counts for in a row's own, in runs (degrees of freedom of the
#: prior in Smyth 2004, doi:10.2202/1544-6115.1027, held fixed: classes are rough)
PRIOR_RUNS = 4.0

#: values further from the row's median than this many scales count as this far (Huber 1964); one
#: run that took ten times as long does not hide the change of the others
CLIP = 10.0

#: scatter that no class goes below, as a fraction: benchmarks print two decimals
RESOLUTION = 1e-3

#: makes Qn the standard deviation where noise is normal (Rousseeuw and Croux 1993,
#: doi:10.1080/01621459.1993.10476408); 1.4826 does for the median absolute deviation
_QN, _MAD = 2.2219, 1.4826

#: rows of a class that are asked for its scatter
_ASKED = 512


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """Rows on one scale.

    Attributes:
        values: shape (rows, runs); clipped, each row around 0, divided so that the sum of its
            squares and of the prior is 1; 0 where absent.
        present: shape (rows, runs).
        counts: values of each row.
        freedom: degrees of freedom of the scatter within two segments, of each row.
    """

    values: Values
    present: Flags
    counts: Whole
    freedom: Values


def deviation_of_rows(values: Values, centres: Values) -> Values:
    """Return the median absolute deviation of each row, as a standard deviation."""
    return _MAD * row_medians(np.abs(values - centres[:, None]))


def scatter_of_rows(values: Values) -> Values:
    """Return Qn of each row: a low quantile of all distances between two of its values.

    A step does not inflate it much, since a half of the distances lie within a segment.
    """
    counts = np.isfinite(values).sum(axis=1)
    first, second = np.triu_indices(values.shape[1], 1)
    distances = np.sort(np.abs(values[:, first] - values[:, second]), axis=1)
    half = counts // 2 + 1
    wanted = np.clip(half * (half - 1) // 2 - 1, 0, max(distances.shape[1] - 1, 0))
    return np.asarray(_QN * distances[np.arange(len(values)), wanted])


def scatter_of_classes(logs: Values, classes: Sequence[int]) -> Values:
    """Return for each row the scatter of its class: the median Qn of its rows."""
    of_row = np.asarray(classes)
    enough = np.isfinite(logs).sum(axis=1) >= LEAST_RUNS
    found = np.full(len(logs), RESOLUTION)
    order = np.argsort(of_row, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(of_row[order])) + 1):
        asked = rows[enough[rows]]
        if len(asked):
            asked = asked[np.linspace(0, len(asked) - 1, min(len(asked), _ASKED)).astype(int)]
            found[rows] = max(float(np.median(scatter_of_rows(logs[asked]))), RESOLUTION)
    return found


def scale_of_rows(logs: Values, prior: Values) -> Values:
    """Return the scatter of each row, its class lending what it lacks (Smyth 2004)."""
    counts = np.isfinite(logs).sum(axis=1)
    own = np.nan_to_num(deviation_of_rows(logs, row_medians(logs)))
    both = (counts * own**2 + PRIOR_RUNS * prior**2) / (counts + PRIOR_RUNS)
    return np.asarray(np.sqrt(both))


def scaled(logs: Values, prior: Values) -> Scaled:
    """Return the rows on one scale."""
    present = np.isfinite(logs)
    counts = present.sum(axis=1)
    centres = np.nan_to_num(row_medians(logs))[:, None]
    reach = CLIP * scale_of_rows(logs, prior)[:, None]
    near = np.clip(np.where(present, logs - centres, 0.0), -reach, reach)
    mean = near.sum(axis=1) / np.maximum(counts, 1)
    near = np.where(present, near - mean[:, None], 0.0)
    total = (near**2).sum(axis=1) + PRIOR_RUNS * prior**2
    return Scaled(
        values=near / np.sqrt(total)[:, None],
        present=present,
        counts=counts,
        freedom=np.maximum(counts - 2 + PRIOR_RUNS, 1.0),
    )


def normal_square(share: npt.NDArray[_Real], freedom: npt.NDArray[_Real]) -> npt.NDArray[_Real]:
    """Return the square of the normal deviate that is as rare as a share of explained scatter.

    With t of ``freedom`` degrees, share is t^2 / (t^2 + freedom); as normal deviates short rows and
    long ones can be compared.
    """
    factor = freedom * wallace(freedom)
    return np.asarray(-factor * np.log1p(-np.minimum(share, 1 - 1e-6)))


#: orders beside the one that was: the smallest p is 1/2001
NUM_ORDERS = 2000

#: numbers in a block that is worked on at once: it fits a core's own cache
_BLOCK = 8192
_ROWS = 8192

#: fewer runs are not looked at through windows: a quarter of them would be too few
_LEAST_FOR_WINDOW = 16

#: two groupings that are the same may differ by the rounding of single precision
_TOLERANCE = 1e-3

#: rows -> orders -> statistic, shape (orders, rows); what the rows need is made ready once
Statistic = Callable[[Whole], Callable[[Whole], Singles]]


@functools.lru_cache(maxsize=8)
def random_orders(num_runs: int, count: int, seed: int) -> Whole:
    """Return ``count`` random orders of the runs, shape (count, runs); read-only."""
    random = np.random.default_rng(seed)
    orders = random.permuted(np.tile(np.arange(num_runs), (count, 1)), axis=1)
    orders.flags.writeable = False
    return orders


def adjusted(observed: Values, orders: Whole, statistic: Statistic) -> tuple[Values, Singles]:
    """Return p of each row, adjusted over all rows, and the largest statistic of each order.

    p is 1 where a row has no statistic.

    Args:
        observed: of each row in the order that was; NaN where it has too few runs.
        orders: other orders, shape (orders, runs).
        statistic: of rows in other orders.
    """
    ascending = np.argsort(observed, kind="stable")
    ascending = ascending[np.isfinite(observed[ascending])]
    highest = np.full(len(orders), -np.inf, dtype=np.float32)
    p = np.ones(len(observed))
    for start in range(0, len(ascending), _ROWS):
        rows = ascending[start : start + _ROWS]
        limit = (observed[rows] - _TOLERANCE).astype(np.float32)
        reached = np.zeros(len(rows))
        at_once = max(1, _BLOCK // len(rows))
        of_orders = statistic(rows)
        for begin in range(0, len(orders), at_once):
            block = slice(begin, begin + at_once)
            found = of_orders(orders[block])
            found[:, 0] = np.maximum(found[:, 0], highest[block])
            np.maximum.accumulate(found, axis=1, out=found)
            highest[block] = found[:, -1]
            reached += (found >= limit).sum(axis=0)
        p[rows] = (1 + reached) / (1 + len(orders))
    descending = ascending[::-1]
    p[descending] = np.maximum.accumulate(p[descending])
    return p, highest


def weights(num_runs: int) -> Singles:
    """Return what the square of a sum of the first values explains, per count and number of them.

    With values around 0, the first c of n having the sum s, the two segments explain
    s^2 n / (c (n - c)) of the sum of squares.  0 where a side would have too few.

    Returns:
        Shape (runs + 1, runs + 1), indexed by n and c.
    """
    n, c = np.meshgrid(np.arange(num_runs + 1), np.arange(num_runs + 1), indexing="ij")
    fits = (c >= LEAST_SIDE) & (n - c >= LEAST_SIDE)
    return np.where(fits, n / np.where(fits, c * (n - c), 1), 0).astype(np.float32)


def split_statistic(rows: Scaled) -> Statistic:
    """Return the statistic of steps: the best split of a row into two levels."""
    weight = weights(rows.values.shape[1])

    def of_rows(chosen: Whole) -> Callable[[Whole], Singles]:
        values = np.ascontiguousarray(rows.values[chosen].T, dtype=np.float32)
        present = np.ascontiguousarray(rows.present[chosen].T)
        freedom = rows.freedom[chosen].astype(np.float32)
        is_full = bool(present.all())

        def of_orders(orders: Whole) -> Singles:
            if is_full:
                share = _share_of_full(values, orders, weight[len(values)])
            else:
                share = _share(values, present, orders, weight)
            return _deviate(share, freedom)

        return of_orders

    return of_rows


def _deviate(share: Singles, freedom: Singles) -> Singles:
    return normal_square(share, freedom).astype(np.float32, copy=False)


def window(num_runs: int) -> int:
    """Return how many runs before and after a moment are also compared by themselves; 0: none.

    A level that came and went again hardly shows in the means of all before and all after; a
    quarter of the runs on each side shows it (moving sums; Kirch and Muhsal 2011).
    """
    return num_runs // 4 if num_runs >= _LEAST_FOR_WINDOW else 0


def window_weights(width: int) -> Singles:
    """Return what two windows of c and d values with means m and k explain, over (c k' - d m')^2.

    With sums s and t the two explain (s d - t c)^2 / (c d (c + d)).  0 where a side has too few.

    Returns:
        Shape (width + 1, width + 1), indexed by c and d.
    """
    c, d = np.meshgrid(np.arange(width + 1), np.arange(width + 1), indexing="ij")
    fits = (c >= LEAST_SIDE) & (d >= LEAST_SIDE)
    return np.where(fits, 1 / np.where(fits, c * d * (c + d), 1), 0).astype(np.float32)


def _share_of_full(values: Singles, orders: Whole, weight: Singles) -> Singles:
    """Return what the best split explains, rows without a gap: shape (orders, rows)."""
    shape = len(orders), values.shape[1]
    width = window(len(values))
    totals = np.zeros((len(values) + 1, *shape), dtype=np.float32)
    windows = np.zeros((len(values) + 1, *shape), dtype=np.float32)
    square, best, best_window = (np.zeros(shape, dtype=np.float32) for _ in range(3))
    for place in range(1, len(values) + 1):
        np.take(values, orders[:, place - 1], axis=0, out=square)
        np.add(totals[place - 1], square, out=totals[place])
        if weight[place] > 0:
            np.multiply(totals[place], totals[place], out=square)
            np.multiply(square, weight[place], out=square)
            np.maximum(best, square, out=best)
        if width and place >= width:
            np.subtract(totals[place], totals[place - width], out=windows[place])
        if width and place >= 2 * width:
            np.subtract(windows[place], windows[place - width], out=square)
            np.multiply(square, square, out=square)
            np.maximum(best_window, square, out=best_window)
    if width:
        best_window /= np.float32(2 * width)
        np.maximum(best, best_window, out=best)
    return best


def _share(values: Singles, present: Flags, orders: Whole, weight: Singles) -> Singles:
    """Return the same for rows with gaps, which split by the values that they have."""
    shape = len(orders), values.shape[1]
    best = np.zeros(shape, dtype=np.float32)
    totals = np.zeros((len(values) + 1, *shape), dtype=np.float32)
    counts = np.zeros((len(values) + 1, *shape), dtype=np.int32)
    here = present.astype(np.int32)
    base = here.sum(axis=0, dtype=np.int32) * len(weight)
    flat = weight.ravel()
    width = window(len(values))
    local = window_weights(width).ravel()
    for place in range(1, len(values) + 1):
        order = orders[:, place - 1]
        np.add(totals[place - 1], np.take(values, order, axis=0), out=totals[place])
        np.add(counts[place - 1], np.take(here, order, axis=0), out=counts[place])
        share = np.take(flat, counts[place] + base)
        share *= totals[place]
        share *= totals[place]
        np.maximum(best, share, out=best)
        if width and place >= 2 * width:
            middle, begin = place - width, place - 2 * width
            late, early = counts[place] - counts[middle], counts[middle] - counts[begin]
            share = (totals[place] - totals[middle]) * early
            share -= (totals[middle] - totals[begin]) * late
            share *= share
            share = share.astype(np.float32) * np.take(local, early * (width + 1) + late)
            np.maximum(best, share, out=best)
    return best


def slope_statistic(ranks: Scaled) -> Statistic:
    """Return the statistic of drifts: the correlation of a row's ranks with the time."""
    length = ranks.values.shape[1]

    def of_rows(chosen: Whole) -> Callable[[Whole], Singles]:
        values = np.ascontiguousarray(ranks.values[chosen].T, dtype=np.float32)
        present = np.ascontiguousarray(ranks.present[chosen].T, dtype=np.float32)
        counts = np.maximum(ranks.counts[chosen], 1).astype(np.float32)
        freedom = ranks.freedom[chosen].astype(np.float32)
        is_full = bool(present.all())

        def of_orders(orders: Whole) -> Singles:
            times = (np.argsort(orders, axis=1) - (length - 1) / 2).astype(np.float32)
            share = (times @ values) ** 2
            if is_full:
                share /= np.float32(max(length * (length**2 - 1) / 12, 1.0))
            else:
                spread = times**2 @ present - (times @ present) ** 2 / counts
                share /= np.maximum(spread, np.float32(1e-6))
            return _deviate(share, freedom)

        return of_orders

    return of_rows


def in_time(rows: Scaled, statistic: Statistic) -> Values:
    """Return the statistic of each row in the order that was; NaN for rows that are too short."""
    orders = np.arange(rows.values.shape[1])[None, :]
    found = np.full(len(rows.values), np.nan)
    for start in range(0, len(found), _ROWS):
        chosen = np.arange(start, min(start + _ROWS, len(found)))
        found[chosen] = statistic(chosen)(orders)[0]
    found[rows.counts < LEAST_RUNS] = np.nan
    return found


def ranked(logs: Values) -> Scaled:
    """Return the ranks of each row around 0, their squares summing to 1 (Spearman 1904).

    Equal values have their mean rank; a row of equal values has 0 everywhere.
    """
    present = np.isfinite(logs)
    counts = present.sum(axis=1)
    ordered = np.sort(logs, axis=1)
    ranks = np.zeros_like(logs)
    for column in range(logs.shape[1]):
        here = logs[:, column, None]
        ranks[:, column] = (ordered < here).sum(axis=1) + (ordered <= here).sum(axis=1)
    mean = np.where(present, ranks, 0).sum(axis=1) / np.maximum(counts, 1)
    ranks = np.where(present, ranks - mean[:, None], 0.0)
    length = np.sqrt((ranks**2).sum(axis=1))
    return Scaled(
        values=ranks / np.where(length > 0, length, 1.0)[:, None],
        present=present,
        counts=counts,
        freedom=np.maximum(counts - 2.0, 1.0),
    )
