"""Did any of many quantities change between two groups of runs, by how much, and how sure is it.

The unit of replication is the run: what one run measured is one column, and under "nothing
changed" the columns may be exchanged.  So whole columns are relabelled (Westfall and Young 1993,
*Resampling-based multiple testing*, step-down maxT): however the quantities of a run hang
together, and however skewed their noise is, the chance of even one false BETTER or WORSE among all
rows stays at most ``alpha``.
"""

from __future__ import annotations

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
        is_sure: whether it changed for sure, by the margin or by less.
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
    is_sure: bool = False


def compare_rows(
    values: Values,
    is_second: Sequence[bool],
    *,
    better: Sequence[int],
    margins: Sequence[float],
    classes: Sequence[int],
    alpha: float = ALPHA,
    seed: int = 20261121,
    lag: float = 0.0,
) -> list[Shift]:
    """Compare two groups of columns row by row, with one error rate over all rows.

    A side that scatters more is told as that (:attr:`Shift.scatter`), not as BETTER or WORSE.

    WORSE and BETTER: the adjusted p is at most ``alpha``, the ratio is off by at least the
    margin, and the interval, where there is one, does not hold 1.  SAME: the interval lies within
    the margin; a change that is sure all the same is :attr:`Shift.is_sure`.  All else is UNDECIDED.

    Args:
        values: shape (rows, runs), positive, NaN where a run has no number.
        is_second: for each run, whether it is of the second side.
        better: for each row 1 (more is better) or -1.
        margins: for each row the smallest change that matters, as a fraction: 0.03.
        classes: for each row the number of its kind (same unit and scale of noise); rows of a kind
            lend each other their scatter where a row has few runs.
        alpha: the error rate over all rows together.
        seed: of the random relabellings, where there are too many to try all.
        lag: how much one run resembles the next of its side: all is judged as if there were
            (1 - lag) / (1 + lag) times as many runs (Bayley and Hammersley 1946).

    Raises:
        ValueError: shapes do not fit, or a value is zero or negative.
    """
    import numpy as np  # noqa: PLC0415 - start-up time

    from fabricproof.history.stats import interval, max_t, relabel  # noqa: PLC0415 - start-up time

    values = np.asarray(values, dtype=np.float64)
    second = np.asarray(is_second, dtype=np.bool_)
    _refuse(values, second, (better, margins, classes))
    if not len(values):
        return []
    weight = (1.0 - lag) / (1.0 + lag)
    kinds = relabel.kinds_of(classes)
    labels = relabel.labellings(values, second, seed)
    found = max_t.step_down(relabel.prepared(values, kinds), kinds, labels, alpha, weight)
    logs = interval.intervals(values, second, level=CONFIDENCE, least=LEAST_CONFIDENCE)
    logs[1:3] = logs[0] + (logs[1:3] - logs[0]) / math.sqrt(weight)
    family = RowFamily(rows=len(values), alpha=alpha, power=POWER, seen=found.critical)
    counts = [np.isfinite(values[:, of]).sum(axis=1).tolist() for of in (~second, second)]
    medians = [relabel.row_medians(values[:, of]).tolist() for of in (~second, second)]
    noises = found.noise / math.sqrt(weight)
    return [
        _shift(family, *each)
        for each in zip(
            found.p.tolist(),
            noises.tolist(),
            found.lent.tolist(),
            logs.T.tolist(),
            zip(*counts, strict=True),
            zip(*medians, strict=True),
            found.scatter.tolist(),
            better,
            margins,
            strict=True,
        )
    ]


def _shift(
    family: RowFamily,
    p: float,
    noise: float,
    lent: float,
    interval: tuple[float, float, float, float],
    sizes: Sizes,
    medians: tuple[float, float],
    scatter: float,
    sign: int,
    margin: float,
) -> Shift:
    effect, low, high, level = interval
    span = -math.log1p(-margin)  # the margin as a logarithm, the same up and down
    change, more, least, is_sure = Change.UNDECIDED, None, None, False
    compared = min(sizes) > 0
    if compared:
        is_sure = p <= family.alpha and not low <= 0.0 <= high
        if is_sure and abs(effect) >= span * (1 - 1e-9):
            change = Change.BETTER if effect * sign > 0 else Change.WORSE
        elif -span <= low and high <= span:
            change = Change.SAME
        least = detectable(sizes, noise, span, family, lent)
        is_open = change is Change.UNDECIDED
        more = more_runs(sizes, noise, effect, span, family, lent) if is_open else 0
    has_interval = not math.isnan(level)
    return Shift(
        change=change,
        ratio=math.exp(effect) if compared else None,
        low=math.exp(low) if has_interval else None,
        high=math.exp(high) if has_interval else None,
        level=level if has_interval else None,
        p=p if compared else 1.0,
        detectable=least,
        more_runs=more,
        num_first=sizes[0],
        num_second=sizes[1],
        median_first=medians[0] if sizes[0] else None,
        median_second=medians[1] if sizes[1] else None,
        scatter=None if math.isnan(scatter) else scatter,
        is_sure=is_sure,
    )


def _refuse(
    values: Values,
    second: npt.NDArray[np.bool_],
    by_row: Sequence[Sequence[float]],
) -> None:
    if values.ndim != 2 or second.shape != (values.shape[1],) or not second.size:
        raise ValueError(f"values {values.shape} need a side for each run, got {second.shape}")
    if any(len(each) != len(values) for each in by_row):
        raise ValueError(f"{len(values)} rows need as many directions, margins and kinds")
    better, margins, _ = by_row
    if any(each not in {1, -1} for each in better):
        raise ValueError("the direction of a row is 1 or -1")
    if any(not 0.0 < each < 1.0 for each in margins):
        raise ValueError("a margin is a fraction above 0 and below 1")
    if (values <= 0).any() or (abs(values) == float("inf")).any():
        raise ValueError("a value is zero, negative or infinite")
