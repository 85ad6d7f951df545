"""Where a step lies, how sure that is, whether it lasts, and whether a line tells it better.

Beside it what single nights do: nights that hang together, and a last night that is far off.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabricproof.history.stats.relabel import row_medians
from fabricproof.history.stats.step_orders import (
    LEAST_RUNS,
    RESOLUTION,
    Flags,
    Scaled,
    Values,
    Whole,
    scale_of_rows,
    weights,
    window,
    window_weights,
)


def last_run(residuals: Values, prior: Values, enough: Flags) -> Values:
    """Return for each row how surprising its last run is, adjusted over all rows; 1 where not.

    No order of n runs can tell one run that is off by chance from one that is off for a reason:
    the last is the furthest off of all once in n histories.  So a last run is told only if it is
    further off than any run of any row ever was, and by how many times is what p is made of:
    of noise whose variance is finite (tails as a power of at least 2) the furthest is r times as
    far off as the next with a chance of at most r^-2 (Pareto tails; Embrechts, Klueppelberg and
    Mikosch 1997, section 4), so p = r^-2 / n.
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


#: twice the logarithm of the likelihood ratio within which a moment is still possible with 95 %:
#: (1 - exp(-c/2))^2 = 0.95 (Eo and Morley 2015, doi:10.3982/QE186, for one step)
_POSSIBLE = -2 * math.log(1 - math.sqrt(0.95))

#: of a change, what must be left of it without the one run that speaks most for it
_LEFT = 0.5

#: rows whose pairs of runs are worked on at once
_ROWS = 2048


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the best split of each row lies; columns of the first run after it.

    Attributes:
        at: shape (rows,).
        earliest: first column that it may have been at.
        latest: last.
    """

    at: Whole
    earliest: Whole
    latest: Whole


def places(rows: Scaled, *, windows: bool = False) -> Places:
    """Return where each row splits best, with the moments that are not much less likely.

    With windows ``at`` is where the statistic of the tests is largest; the interval needs a
    stretch with one step and is to be had without.  Where runs are missing between two that a row
    has, the change may have been at any of them.
    """
    share = shares(rows, windows=windows)
    best = share.max(axis=1)
    lost = rows.freedom[:, None] * (np.log1p(-share) - np.log1p(-best)[:, None])
    possible = (share > 0) & (lost <= _POSSIBLE)
    num_runs = rows.values.shape[1]
    after = _next_present(rows)
    chosen = share.argmax(axis=1)
    at = after[np.arange(len(after)), chosen]
    earliest = possible.argmax(axis=1) + 1
    latest = num_runs - 1 - possible[:, ::-1].argmax(axis=1) + 1
    return Places(at=at, earliest=np.minimum(earliest, at), latest=np.maximum(latest, at))


def shares(rows: Scaled, *, windows: bool) -> Values:
    """Return what a split after each column explains, shape (rows, runs).

    Args:
        rows: on one scale.
        windows: whether a moment also counts by what a quarter of the runs on each side of it
            explains (:func:`fabricproof.history.stats.step_orders.window`).
    """
    num_runs = rows.values.shape[1]
    table = weights(num_runs).astype(np.float64)
    counts = rows.present.cumsum(axis=1)
    totals = rows.values.cumsum(axis=1)
    found = totals**2 * table[rows.counts[:, None], counts]
    width = window(num_runs) if windows else 0
    if width:
        sums, has = (np.pad(each, ((0, 0), (1, 0))) for each in (totals, counts))
        late, early = (each[:, width:] - each[:, :-width] for each in (sums, has))
        before, after = slice(None, -width), slice(width, None)
        table = window_weights(width).astype(np.float64)
        gap = late[:, after] * early[:, before] - late[:, before] * early[:, after]
        local = gap**2 * table[early[:, before], early[:, after]]
        place = slice(width - 1, num_runs - width)
        found[:, place] = np.maximum(found[:, place], local)
    return np.asarray(np.minimum(found, 1 - 1e-9))


def _next_present(rows: Scaled) -> Whole:
    """Return for each column the next one that the row has; the number of runs where none."""
    num_runs = rows.values.shape[1]
    here = np.where(rows.present, np.arange(num_runs), num_runs)
    upto = np.minimum.accumulate(here[:, ::-1], axis=1)[:, ::-1]
    return np.hstack([upto[:, 1:], np.full((len(here), 1), num_runs)])


def segments(logs: Sequence[float], cuts: Sequence[int]) -> list[list[float]]:
    """Return the values between the cuts, without what is absent."""
    bounds = [0, *cuts, len(logs)]
    return [
        [value for value in logs[low:high] if not math.isnan(value)]
        for low, high in itertools.pairwise(bounds)
    ]


def lasting(logs: Sequence[float], cuts: Sequence[int], margin: float) -> list[int]:
    """Return the cuts between levels that differ for good and by enough, weakest removed first.

    Args:
        logs: of one row, NaN where absent.
        cuts: columns of the first run after each, ascending.
        margin: smallest change that is told, as a fraction.
    """
    kept = list(cuts)
    while kept:
        parts = segments(logs, kept)
        changes = [_change(*pair, margin) for pair in itertools.pairwise(parts)]
        weakest = min(range(len(kept)), key=lambda index: abs(changes[index]))
        if abs(changes[weakest]) > 0:
            break
        del kept[weakest]
    return kept


def _change(before: list[float], after: list[float], margin: float) -> float:
    """Return the change of level, 0 where it is too small or is owed to one run."""
    if len(before) < 2 or len(after) < 2:
        return 0.0
    change = statistics.median(after) - statistics.median(before)
    sign = math.copysign(1.0, change)
    without_after = statistics.median(sorted(after, key=lambda each: sign * each)[:-1])
    without_before = statistics.median(sorted(before, key=lambda each: -sign * each)[:-1])
    left = min(
        sign * (without_after - statistics.median(before)),
        sign * (statistics.median(after) - without_before),
    )
    is_enough = abs(math.expm1(change)) >= margin and left >= _LEFT * abs(change)
    return change if is_enough else 0.0


def lines(logs: Values) -> tuple[Values, Values]:
    """Return slope per column and value at column 0 of each row (Theil 1950, Sen 1968).

    The median of the slopes through all pairs of runs: three bad nights of ten do not tilt it.
    """
    first, second = np.triu_indices(logs.shape[1], 1)
    slopes = np.zeros(len(logs))
    for start in range(0, len(logs), _ROWS):
        here = logs[start : start + _ROWS]
        through = (here[:, second] - here[:, first]) / (second - first)
        slopes[start : start + _ROWS] = row_medians(through)
    return slopes, row_medians(logs - slopes[:, None] * np.arange(logs.shape[1]))


def cost_of_steps(logs: Sequence[float], cuts: Sequence[int]) -> float:
    """Return what a row costs when told as levels: less is better; see :func:`_cost`.

    A moment costs twice what a level does: it is chosen among all moments (Zhang and Siegmund
    2007, doi:10.1111/j.1541-0420.2006.00662.x).
    """
    parts = segments(logs, cuts)
    residuals = [value - statistics.median(part) for part in parts if part for value in part]
    return _cost(residuals, 3 * len(cuts) + 1)


def cost_of_line(logs: Sequence[float], slope: float, start: float) -> float:
    """Return what a row costs when told as a line; see :func:`_cost`."""
    residuals = [
        value - start - slope * column for column, value in enumerate(logs) if not math.isnan(value)
    ]
    return _cost(residuals, 2)


def _cost(residuals: Sequence[float], parameters: int) -> float:
    """Return Schwarz's criterion (1978) for residuals of a double exponential.

    Its likelihood sums the absolute residuals, so that a bad night counts once, not squared.
    """
    count = len(residuals)
    mean = sum(map(abs, residuals)) / count
    return 2 * count * math.log(mean + RESOLUTION / 10) + parameters * math.log(count)
