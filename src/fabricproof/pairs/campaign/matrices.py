"""The values of a campaign as matrices: which of them are which quantity, and their population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from fabricproof.core.units import size_label
from fabricproof.pairs.campaign.ledger import Campaign
from fabricproof.pairs.campaign.plan import LATENCY_BYTES, Mode
from fabricproof.pairs.campaign.record import Value
from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.matrix import Flags, Kind, Matrix


class Quantity(StrEnum):
    """What a matrix holds."""

    BANDWIDTH = "bandwidth"
    BOTH_WAYS = "bandwidth both ways"
    LATENCY = "latency"


OF_MODE = {
    Mode.UNI: Quantity.BANDWIDTH,
    Mode.BI: Quantity.BOTH_WAYS,
    Mode.PINGPONG: Quantity.LATENCY,
}


class Distance(StrEnum):
    """Where the two nodes of a pair hang."""

    ONE_LEAF = "on one leaf"
    TWO_LEAVES = "between leaves"


@dataclass(frozen=True, kw_only=True)
class Population:
    """The values of one quantity over one path.

    Attributes:
        net_path: name.
        distance: of the pairs whose values these are; None: of all pairs.
        count: values.
        least: smallest value, in the unit of the quantity.
        most: largest.
        mean: of all.
        deviation: standard deviation.
    """

    net_path: str
    distance: Distance | None = None
    count: int
    least: float
    most: float
    mean: float
    deviation: float

    @property
    def name(self) -> str:
        """``rail0``, ``rail0 between leaves``."""
        return f"{self.net_path} {self.distance}" if self.distance else self.net_path


@dataclass(frozen=True, kw_only=True)
class Row:
    """A value that stands, of one pair in one round over one path.

    Attributes:
        net_path: its number.
        value: what was measured.
        taken: what others took of wire and cores meanwhile, as a part of the time.
        by: who, in words.
    """

    net_path: int
    value: Value
    taken: float = 0.0
    by: str = ""


def matrix_of(
    campaign: Campaign, quantity: Quantity, net_paths: Sequence[int], rows: Sequence[Row]
) -> Matrix:
    """Return the rows of one quantity as a matrix, in MB/s or us, its nodes in campaign's order.

    Args:
        campaign: that measured them.
        quantity: of all rows.
        net_paths: over which, as the rails of the matrix.
        rows: at least one.
    """
    number = {name: at for at, name in enumerate(campaign.nodes)}
    is_latency = quantity is Quantity.LATENCY
    size = LATENCY_BYTES if is_latency else campaign.size
    kind = Kind(quantity=quantity.value, unit="us" if is_latency else "MB/s", size=size_label(size))
    values = [row.value for row in rows]
    # A round of one pair is that pair: what is low in it is not the doing of others in the round.
    pairs_in: dict[int, set[frozenset[str]]] = {}
    for each in values:
        pairs_in.setdefault(each.round, set()).add(frozenset((each.source, each.destination)))
    rounds = [each.round if len(pairs_in[each.round]) > 1 else -1 for each in values]
    return Matrix(
        nodes=campaign.nodes,
        rails=tuple(campaign.path_name(net_path) for net_path in net_paths),
        kinds=(kind,),
        source=np.array([number[each.source] for each in values], dtype=np.int32),
        destination=np.array([number[each.destination] for each in values], dtype=np.int32),
        both_ways=np.full(len(rows), quantity is not Quantity.BANDWIDTH),
        rail=np.array([net_paths.index(row.net_path) for row in rows], dtype=np.int32),
        round=np.array(rounds, dtype=np.int32),
        kind=np.zeros(len(rows), dtype=np.int32),
        value=np.array([number_of(quantity, each) for each in values], dtype=np.float64),
        origin=f"campaign {campaign.id}",
    )


def number_of(quantity: Quantity, value: Value) -> float:
    """Return what counts of a value: MB/s, of a latency us."""
    # One stall of a node is no latency of the network: the middle of all messages counts.
    return value.median_latency_us if quantity is Quantity.LATENCY else value.bandwidth_mb_s


def populations_of(matrix: Matrix, leaves: Leaves | None) -> tuple[Population, ...]:
    """Return the population of each rail that has values; of a latency then by distance as well.

    A message between two leaves passes more switches than one below a leaf, so that the mean of
    both is the latency of neither.  Each pair is judged by those as far apart as its own.

    Args:
        matrix: of one quantity.
        leaves: where the nodes hang; None where nobody knows.
    """
    parts: list[tuple[Distance | None, Flags]] = [(None, np.ones(len(matrix), dtype=bool))]
    if leaves is not None and matrix.kinds[0].lower_is_better:
        crosses = leaves.crosses(matrix.source, matrix.destination)
        parts += [(Distance.ONE_LEAF, ~crosses), (Distance.TWO_LEAVES, crosses)]
    return tuple(
        Population(
            net_path=name,
            distance=distance,
            count=len(own),
            least=float(own.min()),
            most=float(own.max()),
            mean=float(own.mean()),
            deviation=float(own.std()),
        )
        for distance, rows in parts
        for rail, name in enumerate(matrix.rails)
        if len(own := matrix.value[rows & (matrix.rail == rail)])
    )
