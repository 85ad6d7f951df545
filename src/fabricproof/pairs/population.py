"""The values over all nodes as numbers: least, most, mean and standard deviation of each rail.

The form is that of the acceptance of Gordon (D. K. Panda et al., MVAPICH User Group 2013): one rail
beside the other, one way and both ways; which pairs lie outside is said by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from fabricproof.core.plain import plain
from fabricproof.core.units import columns
from fabricproof.pairs.blame.judged import Judged
from fabricproof.pairs.blame.suspects import Flags, Indices, Values
from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.limits import NO_LIMITS
from fabricproof.pairs.matrix import Matrix

#: outliers that are named; the others are counted
_NAMED = 4


class Distance(StrEnum):
    """Where the two nodes of a pair hang."""

    ONE_LEAF = "on one leaf"
    TWO_LEAVES = "between leaves"


class Together(StrEnum):
    """Which values were measured at once and are added up.

    The least over the rounds is what acceptances call bisection bandwidth (JUPITER's procurement:
    FZJ-JSC/jubench-linktest); two switches with all their pairs at once are document 002's.
    """

    ROUND = "all pairs measured at once"
    LEAVES = "leaf to leaf, all at once"


@dataclass(frozen=True, kw_only=True)
class Population:
    """The values of one kind over one rail.

    Attributes:
        kind: what they are, in words: ``bandwidth of 4MiB``.
        unit: of the values; empty where nobody said.
        rail: name; empty where rails have none.
        distance: of the pairs whose values these are; None: of all pairs.
        together: what each value is the sum of; None: it is one pair's.
        least: smallest value.
        most: largest.
        mean: of all.
        deviation: standard deviation.
        num_outliers: values that are low, or plainly better than healthy ones.
        outliers: the farthest of them by name, farthest first: ``n1 to n7``.
    """

    kind: str
    unit: str
    rail: str
    distance: Distance | None = None
    together: Together | None = None
    count: int
    least: float
    most: float
    mean: float
    deviation: float
    num_outliers: int
    outliers: tuple[str, ...]

    @property
    def name(self) -> str:
        """``rail0``, ``rail0 between leaves``, ``rail0 leaf to leaf, all at once``."""
        return f"{self.rail} {self.distance or self.together or ''}".strip()

    @property
    def named_outliers(self) -> str:
        """``n1 to n7, n7 to n1 and 3 more``; empty without any."""
        return _and_more(self.outliers, self.num_outliers)

    @property
    def numbers(self) -> str:
        """``56 values, least 22.1, mean 23, most 23.4, standard deviation 0.346 MB/s``."""
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.count} values, least {self.least:.4g}, mean {self.mean:.4g}, most "
            f"{self.most:.4g}, standard deviation {self.deviation:.3g}{unit}"
        )

    def record(self) -> dict[str, Any]:
        """Return it as plain data, the form of ``--json`` and of the record of a matrix."""
        own = {"quantity": self.kind, "unit": self.unit or None, "rail": self.rail or None}
        return plain(self, without={"kind"}, **own)


def _number(value: float | None) -> str:
    """Return a number for a table; a dash for one that is none, which a record has as null."""
    return "-" if value is None else f"{value:.4g}"


def _and_more(names: Sequence[str], count: int) -> str:
    more = count - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


#: columns of a table of populations: key of a record, and heading
POPULATION_COLUMNS: Mapping[str, str] = {
    "quantity": "values",
    "count": "number",
    "least": "least",
    "most": "most",
    "mean": "mean",
    "deviation": "standard deviation",
    "outliers": "outliers",
}


def population_cells(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a row of a table of populations, from :meth:`Population.record`."""
    words = str(record["quantity"])
    words += f" over {record['rail']}" if record["rail"] else ""
    words += f" {record['distance']}" if record["distance"] else ""
    words += f", {record['together']}" if record.get("together") else ""
    words += f", {record['unit']}" if record["unit"] else ""
    return (
        words,
        str(record["count"]),
        *(_number(record[key]) for key in ("least", "most", "mean", "deviation")),
        _and_more([str(each) for each in record["outliers"]], int(record["num_outliers"])),
    )


def populations_of(judged: Judged) -> tuple[Population, ...]:
    """Return the population of each kind and rail that has values; of a latency by distance, too.

    Of a bandwidth also what pairs carry together, where rounds are known.

    A message between two leaves passes more switches than one below a leaf, so that the mean of
    both is the latency of neither.  Each pair is judged by those as far apart as its own.  The
    slowest pairs alone are no population.
    """
    matrix, leaves = judged.matrix, judged.leaves
    found: list[Population] = []
    if matrix.is_selection:
        return ()
    for number, kind in enumerate(matrix.kinds):
        parts: list[tuple[Distance | None, Flags]] = [(None, matrix.kind == number)]
        if leaves is not None and kind.lower_is_better:
            crosses = leaves.crosses(matrix.source, matrix.destination)
            parts += [(Distance.ONE_LEAF, ~crosses), (Distance.TWO_LEAVES, crosses)]
        for distance, part in parts:
            for rail in range(len(matrix.rails)):
                rows = part & (matrix.kind == number) & (matrix.rail == rail)
                if rows.any():
                    found.append(_population(judged, rows, distance))
        if not kind.lower_is_better:
            found += _sums(judged, number)
    return tuple(found)


def _sums(judged: Judged, kind: int) -> Iterator[Population]:
    """Yield what the pairs of whole rounds carry together, over each rail."""
    matrix, leaves = judged.matrix, judged.leaves
    for rail in range(len(matrix.rails)):
        rows = np.flatnonzero((matrix.kind == kind) & (matrix.rail == rail) & (matrix.round >= 0))
        if not len(rows):
            continue
        sums = [(Together.ROUND, _of_rounds(matrix, rows))]
        if leaves is not None and not matrix.both_ways[rows].any():
            sums.append((Together.LEAVES, _between_leaves(matrix, rows, leaves)))
        for together, found in sums:
            if found:
                yield _together(judged, int(rows[0]), together, found)


def _of_rounds(matrix: Matrix, rows: Indices) -> list[tuple[str, float]]:
    """Return what each whole round carries.

    Two ways of a pair were measured one after the other: a round carries the mean of both.
    """
    count = len(matrix.nodes)
    low = np.minimum(matrix.source[rows], matrix.destination[rows]).astype(np.int64)
    high = np.maximum(matrix.source[rows], matrix.destination[rows])
    rounds = matrix.round[rows].astype(np.int64)
    parts = 1 / _times((rounds * count + low) * count + high)
    sums = _whole(rounds, matrix.value[rows] * parts, parts)
    return [(f"round {number}", value) for number, value in sums]


def _times(keys: Indices) -> Values:
    """Return of each row how many have its key; as a rule all have one, or all have two."""
    order = np.sort(keys)
    again = order[1:] == order[:-1]
    if not again.any():
        return np.ones(len(keys))
    if again[::2].all() and not again[1::2].any() and len(keys) % 2 == 0:
        return np.full(len(keys), 2.0)
    _, at, times = np.unique(keys, return_inverse=True, return_counts=True)
    found: Values = times[at].astype(np.float64)
    return found


def _between_leaves(matrix: Matrix, rows: Indices, leaves: Leaves) -> list[tuple[str, float]]:
    """Return what goes from each leaf to each other in rounds in which most pairs of both do."""
    far = rows[leaves.crosses(matrix.source[rows], matrix.destination[rows])]
    begin, end = leaves.leaf_of[matrix.source[far]], leaves.leaf_of[matrix.destination[far]]
    count = leaves.num_leaves
    code = (matrix.round[far].astype(np.int64) * count + begin) * count + end
    return [
        (f"{leaves.names[each // count % count]} to {leaves.names[each % count]}", value)
        for each, value in _whole(code, matrix.value[far], np.ones(len(far)))
    ]


def _whole(group: Indices, values: Values, weights: Values) -> list[tuple[int, float]]:
    """Return the sums of the groups that have as many pairs as the largest, two at least."""
    if not len(group):
        return []
    count = np.bincount(group, weights=weights).round()
    total = np.bincount(group, weights=values)
    whole = np.flatnonzero((count == count.max()) & (count > 1))
    return list(zip(whole.tolist(), total[whole].tolist(), strict=True))


def _together(
    judged: Judged, row: int, together: Together, sums: Sequence[tuple[str, float]]
) -> Population:
    """Return sums as a population; outside are those a tenth below their middle, by name."""
    own = np.array([value for _, value in sums])
    least = float(np.median(own)) * math.exp(-NO_LIMITS.threshold(lower_is_better=False))
    outside = [name for name, value in sorted(sums, key=lambda each: each[1]) if value < least]
    return _stated(judged, row, own, outside[:_NAMED], len(outside), together=together)


def _population(judged: Judged, rows: Flags, distance: Distance | None) -> Population:
    outside = np.flatnonzero(rows & (judged.low | judged.fast))
    farthest = outside[np.argsort(-np.abs(judged.shortfall[outside]), kind="stable")[:_NAMED]]
    names = [judged.matrix.name_of(row) for row in farthest.tolist()]
    own = judged.matrix.value[rows]
    return _stated(judged, int(np.argmax(rows)), own, names, len(outside), distance=distance)


def _stated(
    judged: Judged,
    row: int,
    own: Values,
    outliers: Sequence[str],
    num_outliers: int,
    *,
    distance: Distance | None = None,
    together: Together | None = None,
) -> Population:
    """Return values of the kind and rail of ``row`` as a population."""
    matrix = judged.matrix
    kind = matrix.kinds[matrix.kind[row]]
    return Population(
        kind=kind.words,
        unit=kind.unit,
        rail=matrix.rails[matrix.rail[row]],
        distance=distance,
        together=together,
        count=len(own),
        least=float(own.min()),
        most=float(own.max()),
        mean=float(own.mean()),
        deviation=float(own.std()),
        num_outliers=num_outliers,
        outliers=tuple(outliers),
    )


def population_lines(populations: Sequence[Population]) -> list[str]:
    """Return populations as a table of text, its heading first; of none nothing."""
    if not populations:
        return []
    rows = [
        tuple(POPULATION_COLUMNS.values()),
        *(population_cells(each.record()) for each in populations),
    ]
    return list(columns(rows, right=frozenset(range(1, len(POPULATION_COLUMNS) - 1))))
