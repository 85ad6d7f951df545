"""Did any of many quantities change between two groups of runs, by how much, and how sure is it.

The unit of replication is the run: what one run measured is one column, and under "nothing
changed" the columns may be exchanged.  So whole columns are relabelled (Westfall and Young 1993,
*Resampling-based multiple testing*, step-down maxT): however the quantities of a run hang
together, and however skewed their noise is, the chance of even one false BETTER or WORSE among all
rows stays at most ``alpha``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

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
        num_second: likewise.
        median_first: median over those runs, in the unit of the quantity; None where none.
        median_second: likewise.
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


def compare_rows(
    values: Values,
    is_second: Sequence[bool],
    *,
    better: Sequence[int],
    margins: Sequence[float],
    classes: Sequence[int],
    blocks: Sequence[int] | None = None,
    alpha: float = ALPHA,
    seed: int = 20261121,
) -> list[Shift]:
    """Compare two groups of columns row by row, with one error rate over all rows.

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
        blocks: for each run the block it was randomised in (interleaved A/B); runs are exchanged
            only within a block.  None: one block.
        alpha: the error rate over all rows together.
        seed: of the random relabellings, where there are too many to try all.

    Raises:
        ValueError: shapes do not fit, or a value is zero or negative.
    """
    raise NotImplementedError
