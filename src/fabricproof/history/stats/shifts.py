"""Did any of many quantities change between two groups of runs, by how much, and how sure is it.

The unit of replication is the run: what one run measured is one column, and under "nothing
changed" the columns may be exchanged.  So whole columns are relabelled (Westfall and Young 1993,
*Resampling-based multiple testing*, step-down maxT): however the quantities of a run hang
together, and however skewed their noise is, the chance of even one false BETTER or WORSE among all
rows stays at most ``alpha``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from fabricproof.history.stats.power import RowFamily, Sizes, detectable, more_runs

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

#: at most this share of comparisons in which nothing changed says BETTER or WORSE anywhere
ALPHA = 0.05

#: an interval shown is of this level where so few runs allow it
CONFIDENCE = 0.95

#: an interval of a lower level than this is none (both one-sided tests of SAME at 5 %)
LEAST_CONFIDENCE = 0.90

#: the power for which ``detectable`` and ``more_runs`` are stated
POWER = 0.8


class Change(StrEnum):
    """What is said of one quantity; nothing defaults to SAME."""

    BETTER = "BETTER"
    SAME = "SAME"
    WORSE = "WORSE"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shift:
    """What became of one row between the first group of runs and the second.

    Ratios are second over first, of the quantity itself (not of its logarithm): 0.93 is 7 % less.

    Attributes:
        change: BETTER, SAME, WORSE or UNDECIDED, with the row's direction taken into account.
        ratio: Hodges-Lehmann estimate of second over first; None where a side has no number.
        low: lower end of its interval; None where too few runs for any interval.
        high: upper end.
        level: confidence of the interval: 0.95, or less, down to 0.9, where so few runs allow no
            more; None where there is no interval.
        p: adjusted over all rows of the family, in (0, 1].
        detectable: the smallest ratio away from 1 (as a factor above 1, for example 1.04) that
            would have been seen with power 0.8; None where nothing could have been.
        more_runs: how many more runs on each side would decide it, where UNDECIDED; 0 otherwise;
            None where no number of runs up to 1000 would.
        num_first: runs of the first side with a usable number.
        median_first: median over those runs, in the unit of the quantity; None where none.
        scatter: how many times the second side scatters as much as the first, of all rows of its
            kind together, where sure (a rate of its own, ``alpha`` over all kinds); else None.
    """

    change: Change
    ratio: float | None
    low: float | None
    high: float | None
    level: float | None
    p: float
    detectable: float | None
    more_runs: int | None
    num_first: int
    num_second: int
    median_first: float | None
    median_second: float | None
    scatter: float | None = None


def compare_rows(
    values: Values,
    is_second: Sequence[bool],
    *,
    better: Sequence[int],
    margins: Sequence[float],
    classes: Sequence[int],
    alpha: float = ALPHA,
    seed: int = 20261121,
) -> list[Shift]:
    """Compare two groups of columns row by row, with one error rate over all rows.

    A side that scatters more is told as that (:attr:`Shift.scatter`), not as BETTER or WORSE.

    WORSE and BETTER: the adjusted p is at most ``alpha``, the ratio is off by at least the
    margin, and the interval, where there is one, does not hold 1.  SAME: the interval lies within
    the margin.  All else is UNDECIDED.

    Args:
        values: shape (rows, runs), positive, NaN where a run has no number.
        is_second: for each run, whether it is of the second side.
        better: for each row 1 (more is better) or -1.
        margins: for each row the smallest change that matters, as a fraction: 0.03.
        classes: for each row the number of its kind (same unit and scale of noise); rows of a kind
            lend each other their scatter where a row has few runs.
        alpha: the error rate over all rows together.
        seed: of the random relabellings, where there are too many to try all.

    Raises:
        ValueError: shapes do not fit, or a value is zero or negative.
    """
    import numpy as np  # noqa: PLC0415 - start-up time

    values = np.asarray(values, dtype=np.float64)
    second = np.asarray(is_second, dtype=np.bool_)
    _refuse(values, second, (better, margins, classes))
    if not len(values):
        return []
    return _all_shifts(values, second, better, margins, classes, alpha=alpha, seed=seed)


def _all_shifts(
    values: Values,
    second: npt.NDArray[np.bool_],
    better: Sequence[int],
    margins: Sequence[float],
    classes: Sequence[int],
    *,
    alpha: float,
    seed: int,
) -> list[Shift]:
    from fabricproof.history.stats import interval, max_t, relabel  # noqa: PLC0415 - start-up time

    rows = relabel.prepare(values, classes)
    found = max_t.step_down(rows, relabel.labellings(values, second, seed), alpha)
    ratios = interval.intervals(values, second, level=CONFIDENCE, least=LEAST_CONFIDENCE)
    family = RowFamily(rows=len(values), alpha=alpha, power=POWER, seen=found.critical)
    numbers = zip(
        found.p.tolist(),
        found.noise.tolist(),
        found.lent.tolist(),
        ratios.ratio.tolist(),
        ratios.low.tolist(),
        ratios.high.tolist(),
        ratios.level.tolist(),
        ratios.sizes,
        better,
        margins,
        _medians(values[:, ~second]),
        _medians(values[:, second]),
        found.scatter.tolist(),
        itertools.repeat(family, len(values)),
        strict=True,
    )
    return [_shift(*each) for each in numbers]


def _shift(
    p: float,
    noise: float,
    lent: float,
    ratio: float,
    low: float,
    high: float,
    level: float,
    sizes: Sizes,
    better: int,
    margin: float,
    before: tuple[int, float | None],
    after: tuple[int, float | None],
    scatter: float,
    family: RowFamily,
) -> Shift:
    span = -math.log1p(-margin)
    compared = before[0] > 0 and after[0] > 0
    bounds = None if math.isnan(level) else (low, high)
    change = _change(p, ratio, bounds, better, span, family.alpha) if compared else Change.UNDECIDED
    more: int | None = None if change is Change.UNDECIDED else 0
    if compared and change is Change.UNDECIDED:
        more = more_runs(sizes, noise, math.log(ratio), span, family, lent)
    return Shift(
        change=change,
        ratio=ratio if compared else None,
        low=bounds[0] if bounds else None,
        high=bounds[1] if bounds else None,
        level=level if bounds else None,
        p=p if compared else 1.0,
        detectable=detectable(sizes, noise, span, family, lent) if compared else None,
        more_runs=more,
        num_first=before[0],
        num_second=after[0],
        median_first=before[1],
        median_second=after[1],
        scatter=None if math.isnan(scatter) else scatter,
    )


def _change(
    p: float,
    ratio: float,
    bounds: tuple[float, float] | None,
    better: int,
    span: float,
    alpha: float,
) -> Change:
    """Return the word; ``span`` is the margin as a logarithm, the same up and down."""
    effect = math.log(ratio)
    holds_one = bounds is not None and bounds[0] <= 1.0 <= bounds[1]
    if p <= alpha and abs(effect) >= span * (1 - 1e-9) and not holds_one:
        return Change.BETTER if effect * better > 0 else Change.WORSE
    if bounds is not None and -span <= math.log(bounds[0]) and math.log(bounds[1]) <= span:
        return Change.SAME
    return Change.UNDECIDED


def _medians(values: Values) -> list[tuple[int, float | None]]:
    """Return number and median of the numbers of each row."""
    import numpy as np  # noqa: PLC0415 - start-up time

    ordered = np.sort(values, axis=1)
    counts = np.isfinite(values).sum(axis=1).tolist()
    return [
        (num, float(row[(num - 1) // 2] + row[num // 2]) / 2.0 if num else None)
        for num, row in zip(counts, ordered, strict=True)
    ]


def _refuse(
    values: Values,
    second: npt.NDArray[np.bool_],
    by_row: Sequence[Sequence[float]],
) -> None:
    if values.ndim != 2 or second.shape != (values.shape[1],):
        raise ValueError(f"values {values.shape} need a side for each run, got {second.shape}")
    if not second.size:
        raise ValueError("there is no run to compare")
    if any(len(each) != len(values) for each in by_row):
        raise ValueError(f"{len(values)} rows need as many directions, margins and kinds")
    better, margins, _ = by_row
    if any(each not in {1, -1} for each in better):
        raise ValueError("the direction of a row is 1 or -1")
    if any(not 0.0 < each < 1.0 for each in margins):
        raise ValueError("a margin is a fraction above 0 and below 1")
    if (values <= 0).any() or (abs(values) == float("inf")).any():
        raise ValueError("a value is zero, negative or infinite")
