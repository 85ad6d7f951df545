"""When did any of many quantities change, over runs in the order of time.

Same principle as :mod:`fabricproof.history.stats.shifts`: whole columns change places, the largest
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
        first: column of the first run that the line is through.
        start: value of the line at column 0, in the unit of the row.
    """

    row: int
    per_run: float
    total: float
    p: float
    first: int = 0
    start: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Everything that a history shows.

    Attributes:
        steps: by row and time.
        drifts: by row.
        lag: how much one run hangs together with the next, 0 where no more than by chance; the
            steps and drifts were judged as if there were (1 - lag) / (1 + lag) times as many runs.
    """

    steps: tuple[Step, ...]
    drifts: tuple[Drift, ...]
    lag: float


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
        classes: as in :func:`fabricproof.history.stats.shifts.compare_rows`.
        margins: smaller steps are not told.
        alpha: chance of even one false step or drift among all rows.
        seed: of the random orders.

    Raises:
        ValueError: shapes do not fit, or a value is zero, negative or infinite.
    """
    found = find_changes(values, classes=classes, margins=margins, alpha=alpha, seed=seed)
    return list(found.steps)


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
        alpha: likewise.
        seed: of the random orders.

    Raises:
        ValueError: as in :func:`find_steps`.
    """
    found = find_changes(values, classes=classes, margins=margins, alpha=alpha, seed=seed)
    return list(found.drifts)


def find_changes(
    values: Values,
    *,
    classes: Sequence[int],
    margins: Sequence[float],
    alpha: float = 0.05,
    seed: int = 20261121,
    num_orders: int | None = None,
) -> Changes:
    """Return steps and drifts of all rows, with one error rate over both.

    ``alpha`` is shared out: 0.75 of it to steps with at least two runs on each side, 0.15 to a
    last run that is far off, 0.10 to drifts; each p that is returned is divided by that share, so
    that all may be held against ``alpha``.  Within segments steps are looked for again (binary
    segmentation), each round with the same error rate given that those before were right.

    Args:
        values: as in :func:`find_steps`.
        classes: likewise.
        margins: smallest change that is told, of a step or of a whole drift.
        alpha: chance of even one false step or drift among all rows.
        seed: of the random orders.
        num_orders: how many, 2000 or more by default; no p is below 1 / (num_orders + 1).

    Raises:
        ValueError: as in :func:`find_steps`.
    """
    from fabricproof.history.stats.step_search import search  # noqa: PLC0415 - numpy, start-up time

    return search(values, classes, margins, alpha=alpha, seed=seed, num_orders=num_orders)
