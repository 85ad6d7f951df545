"""Bring rows of unlike scatter to one scale, from what no order of the runs can change.

All that is computed here depends on the set of a row's values and not on their order, so that the
statistics that are made of it may be compared with those of other orders exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

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
        prior: share of the prior in the sum of squares of each row, in (0, 1].
    """

    values: Values
    present: Flags
    counts: Whole
    freedom: Values
    prior: Values


def median_of_rows(values: Values) -> Values:
    """Return the median of each row, of what is not NaN; NaN for a row of nothing."""
    ordered = np.sort(values, axis=1)
    counts = np.isfinite(values).sum(axis=1)
    rows = np.arange(len(values))
    low = ordered[rows, np.maximum(counts - 1, 0) // 2]
    high = ordered[rows, np.minimum(counts // 2, values.shape[1] - 1)]
    return np.asarray((low + high) / 2)


def deviation_of_rows(values: Values, centres: Values) -> Values:
    """Return the median absolute deviation of each row, as a standard deviation."""
    return _MAD * median_of_rows(np.abs(values - centres[:, None]))


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
    """Return for each row the scatter of its class: the median Qn of its rows.

    Args:
        logs: shape (rows, runs), NaN where absent.
        classes: of each row.
    """
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
    own = np.nan_to_num(deviation_of_rows(logs, median_of_rows(logs)))
    both = (counts * own**2 + PRIOR_RUNS * prior**2) / (counts + PRIOR_RUNS)
    return np.asarray(np.sqrt(both))


def scaled(logs: Values, prior: Values) -> Scaled:
    """Return the rows on one scale.

    Args:
        logs: shape (rows, runs), NaN where absent.
        prior: scatter of the class of each row.
    """
    present = np.isfinite(logs)
    counts = present.sum(axis=1)
    centres = np.nan_to_num(median_of_rows(logs))[:, None]
    reach = CLIP * scale_of_rows(logs, prior)[:, None]
    near = np.clip(np.where(present, logs - centres, 0.0), -reach, reach)
    mean = near.sum(axis=1) / np.maximum(counts, 1)
    near = np.where(present, near - mean[:, None], 0.0)
    lent = PRIOR_RUNS * prior**2
    total = (near**2).sum(axis=1) + lent
    return Scaled(
        values=near / np.sqrt(total)[:, None],
        present=present,
        counts=counts,
        freedom=np.maximum(counts - 2 + PRIOR_RUNS, 1.0),
        prior=lent / total,
    )


def normal_square(share: npt.NDArray[_Real], freedom: npt.NDArray[_Real]) -> npt.NDArray[_Real]:
    """Return the square of the normal deviate that is as rare as a share of explained scatter.

    With t of ``freedom`` degrees, share is t^2 / (t^2 + freedom); Wallace 1959
    (doi:10.1214/aoms/1177706092) turns t into a normal deviate, so that short rows and long ones
    can be compared.
    """
    factor = freedom * ((8 * freedom + 1) / (8 * freedom + 3)) ** 2
    return np.asarray(-factor * np.log1p(-np.minimum(share, 1 - 1e-6)))
