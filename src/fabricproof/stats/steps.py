"""When did any of many quantities change, over runs in the order of time.

Same principle as :mod:`fabricproof.stats.shifts`: whole columns change places, the largest
statistic over all rows and all moments is what is compared, one error rate for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A lasting change of one row.

    Attributes:
        row: which.
        at: column of the first run after it.
        earliest: first column that it may have been at, with 95 % confidence.
        latest: last column that it may have been at.
        ratio: level after it over level before it.
        p: adjusted over all rows and moments.
    """

    row: int
    at: int
    earliest: int
    latest: int
    ratio: float
    p: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Drift:
    """A slow change of one row that is better told as a slope than as a step.

    Attributes:
        row: which.
        per_run: ratio from one run to the next (Theil-Sen): 0.998 loses 0.2 % a night.
        total: ratio of the end of the line over its beginning.
        p: adjusted over all rows.
    """

    row: int
    per_run: float
    total: float
    p: float


def find_steps(
    values: Values,
    *,
    classes: Sequence[int],
    margins: Sequence[float],
    alpha: float = 0.05,
    seed: int = 20261121,
) -> list[Step]:
    """Return the lasting changes of all rows, by row and time.

    Args:
        values: shape (rows, runs), positive, columns in the order of time; NaN where absent.
        classes: as in :func:`fabricproof.stats.shifts.compare_rows`.
        margins: smaller steps are not told.
        alpha: chance of even one false step among all rows.
        seed: of the random orders.
    """
    raise NotImplementedError


def find_drifts(
    values: Values,
    *,
    classes: Sequence[int],
    margins: Sequence[float],
    alpha: float = 0.05,
    seed: int = 20261121,
) -> list[Drift]:
    """Return the slow changes of all rows; a row whose change is better told as a step has none.

    Args:
        values: as in :func:`find_steps`.
        classes: likewise.
        margins: smallest total change that is told.
        alpha: chance of even one false drift among all rows.
        seed: of the random orders.
    """
    raise NotImplementedError
