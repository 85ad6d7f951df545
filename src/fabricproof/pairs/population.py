"""The values over all nodes as numbers: least, most, mean and standard deviation of each rail.

The form is that of the acceptance of Gordon (D. K. Panda et al., MVAPICH User Group 2013): one rail
beside the other, one way and both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from fabricproof.core.plain import plain
from fabricproof.core.units import columns
from fabricproof.pairs.blame.judge import Judged
from fabricproof.pairs.matrix import Flags, Indices, Values


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
        distance: of the pairs whose values these are; None: of all pairs.
        together: what each value is the sum of; None: it is one pair's.
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

    @property
    def name(self) -> str:
        """``rail0``, ``rail0 between leaves``, ``rail0 leaf to leaf, all at once``."""
        return f"{self.rail} {self.distance or self.together or ''}".strip()

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


#: columns of a table of populations: key of a record, and heading
POPULATION_COLUMNS: Mapping[str, str] = {
    "quantity": "values",
    "count": "number",
    "least": "least",
    "most": "most",
    "mean": "mean",
    "deviation": "standard deviation",
}


def population_cells(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a row of a table of populations, from :meth:`Population.record`."""
    words = str(record["quantity"])
    words += f" over {record['rail']}" if record["rail"] else ""
    words += f" {record['distance']}" if record["distance"] else ""
    words += f", {record['together']}" if record.get("together") else ""
    words += f", {record['unit']}" if record["unit"] else ""
    # A number that is none is null in a record.
    numbers = (record[key] for key in ("least", "most", "mean", "deviation"))
    return (
        words,
        str(record["count"]),
        *("-" if each is None else f"{each:.4g}" for each in numbers),
    )


def population_lines(populations: Sequence[Population]) -> list[str]:
    """Return populations as a table of text, its heading first; of none nothing."""
    cells = [population_cells(each.record()) for each in populations]
    rows = [tuple(POPULATION_COLUMNS.values()), *cells] if cells else []
    return list(columns(rows, right=frozenset(range(1, len(POPULATION_COLUMNS)))))


def populations_of(judged: Judged) -> tuple[Population, ...]:
    """Return the population of each rail that has values; of a latency by distance, too.

    Of a bandwidth also what pairs carry together, where rounds are known.

    A message between two leaves passes more switches than one below a leaf, so that the mean of
    both is the latency of neither.  Each pair is judged by those as far apart as its own.  The
    slowest pairs alone are no population.
    """
    matrix, leaves = judged.matrix, judged.leaves
    if matrix.is_selection:
        return ()
    parts: dict[Distance | None, Flags] = {None: np.ones(len(matrix), dtype=bool)}
    if leaves is not None and matrix.kind.lower_is_better:
        crosses = leaves.crosses(matrix.source, matrix.destination)
        parts |= {Distance.ONE_LEAF: ~crosses, Distance.TWO_LEAVES: crosses}
    found = [
        _population(judged, rail, matrix.value[part & (matrix.rail == rail)], distance=distance)
        for distance, part in parts.items()
        for rail in range(len(matrix.rails))
    ]
    found += [] if matrix.kind.lower_is_better else _sums(judged)
    return tuple(each for each in found if each is not None)


def _sums(judged: Judged) -> Iterator[Population | None]:
    """Yield what the pairs of whole rounds carry together, over each rail.

    Two ways of a pair are measured one after the other: a round carries the mean of both.  From
    leaf to leaf those rounds count in which most pairs of both leaves measure.
    """
    matrix, leaves = judged.matrix, judged.leaves
    for rail in range(len(matrix.rails)):
        rows = np.flatnonzero((matrix.rail == rail) & (matrix.round >= 0))
        source, destination = matrix.source[rows], matrix.destination[rows]
        rounds = matrix.round[rows].astype(np.int64)
        pair = rounds * len(matrix.nodes) ** 2 + matrix.pair_keys[rows]
        _, at, ways = np.unique(pair, return_inverse=True, return_counts=True)
        sums = _whole(rounds, matrix.value[rows], 1 / ways[at])
        yield _population(judged, rail, sums, together=Together.ROUND)
        if leaves is None or matrix.both_ways[rows].any():
            continue
        far = leaves.crosses(source, destination)
        first, second = leaves.leaf_of[source[far]], leaves.leaf_of[destination[far]]
        group = (rounds[far] * leaves.num_leaves + first) * leaves.num_leaves + second
        sums = _whole(group, matrix.value[rows[far]], np.ones(len(group)))
        yield _population(judged, rail, sums, together=Together.LEAVES)


def _whole(group: Indices, values: Values, weights: Values) -> Values:
    """Return the sums of the groups that have as many pairs as the largest, two at least."""
    if not len(group):
        return values
    _, at = np.unique(group, return_inverse=True)
    count = np.bincount(at, weights=weights).round()
    total = np.bincount(at, weights=values * weights)
    return np.asarray(total[(count == count.max()) & (count > 1)], dtype=np.float64)


def _population(
    judged: Judged,
    rail: int,
    own: Values,
    *,
    distance: Distance | None = None,
    together: Together | None = None,
) -> Population | None:
    kind = judged.matrix.kind
    if not len(own):
        return None
    return Population(
        kind=kind.words,
        unit=kind.unit,
        rail=judged.matrix.rails[rail],
        distance=distance,
        together=together,
        count=len(own),
        least=float(own.min()),
        most=float(own.max()),
        mean=float(own.mean()),
        deviation=float(own.std()),
    )
