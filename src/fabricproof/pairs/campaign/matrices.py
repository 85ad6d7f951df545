"""The values of a campaign as matrices: one for each quantity, and which values are doubtful."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from fabricproof.core.units import by_key, size_label
from fabricproof.pairs.blame.judge import Judged
from fabricproof.pairs.blame.suspects import SuspectKind
from fabricproof.pairs.campaign.kernel import LATENCY_BYTES, Mode
from fabricproof.pairs.campaign.plan import Campaign
from fabricproof.pairs.campaign.record import Value
from fabricproof.pairs.limits import Limits
from fabricproof.pairs.matrix import BOTH_WAYS, Flags, Kind, Matrix
from fabricproof.traffic.disturbance import DisturbanceKind, share_beyond


class Quantity(StrEnum):
    """What a matrix holds."""

    BANDWIDTH = "bandwidth"
    BOTH_WAYS = BOTH_WAYS
    LATENCY = "latency"

    @property
    def unit(self) -> str:
        """Of its values."""
        return "us" if self is Quantity.LATENCY else "MB/s"


OF_MODE = {
    Mode.UNI: Quantity.BANDWIDTH,
    Mode.BI: Quantity.BOTH_WAYS,
    Mode.PINGPONG: Quantity.LATENCY,
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A value that stands, of one pair in one round over one path.

    Attributes:
        taken: what others took of wire and cores meanwhile, as a part of the time.
        by: who, in words.
        kind: what they took first.
    """

    net_path: int
    value: Value
    taken: float = 0.0
    by: str = ""
    kind: DisturbanceKind | None = None

    @property
    def quantity(self) -> Quantity:
        """Which quantity it is one of."""
        return OF_MODE[self.value.mode]

    @property
    def number(self) -> float:
        """What counts of it, in the unit of its quantity.

        One stall of a node is no latency of the network: the middle of all messages counts.
        """
        is_latency = self.value.mode is Mode.PINGPONG
        return self.value.median_latency_us if is_latency else self.value.bandwidth_mb_s

    @property
    def ends(self) -> tuple[str, str]:
        """The node that led, and its partner."""
        return self.value.source, self.value.destination


#: Where at least so many values of a round had nearly as much taken from them (nodes that share
#: their cores), and this part of them is good, that is not what makes another one low: our choice.
_PEERS, _GOOD_PEERS, _NEARLY = 4, 0.5, 0.9


def disturbed(rows: Sequence[Row], lower: float) -> list[bool]:
    """Tell of each bandwidth whether it is low and would not be without what others took.

    Of what was taken only what goes beyond the median of the good ones explains a low one, and
    nothing does where most of its own round had as much taken and is good.

    ``lower``: the least that a healthy pair has, in MB/s.
    """
    good = [row.taken for row in rows if row.number >= lower]
    usual = float(np.median(good)) if good else 0.0
    of_round = by_key(((row.net_path, row.value.round), row) for row in rows)
    found = []
    for row in rows:
        left = 1 - share_beyond(row.taken, usual)
        peers = [
            each.number >= lower
            for each in of_round[row.net_path, row.value.round]
            if each is not row and each.taken >= _NEARLY * row.taken
        ]
        are_good = len(peers) >= _PEERS and sum(peers) >= _GOOD_PEERS * len(peers)
        found.append(row.number < lower <= row.number / left and not are_good)
    return found


def matrix_of(
    campaign: Campaign, quantity: Quantity, net_paths: Sequence[int], rows: Sequence[Row]
) -> Matrix:
    """Return the rows of one quantity as a matrix, in MB/s or us, its nodes in campaign's order."""
    number = {name: at for at, name in enumerate(campaign.nodes)}
    size = LATENCY_BYTES if quantity is Quantity.LATENCY else campaign.size
    # A round of one pair is that pair: what is low in it is not the doing of others in the round.
    pairs_in: dict[int, set[frozenset[str]]] = {}
    for row in rows:
        pairs_in.setdefault(row.value.round, set()).add(frozenset(row.ends))
    rounds = [row.value.round if len(pairs_in[row.value.round]) > 1 else -1 for row in rows]
    return Matrix(
        nodes=campaign.nodes,
        rails=tuple(campaign.path_name(net_path) for net_path in net_paths),
        kind=Kind(quantity=quantity.value, unit=quantity.unit, size=size_label(size)),
        source=np.array([number[row.ends[0]] for row in rows], dtype=np.int32),
        destination=np.array([number[row.ends[1]] for row in rows], dtype=np.int32),
        both_ways=np.full(len(rows), quantity is not Quantity.BANDWIDTH),
        rail=np.array([list(net_paths).index(row.net_path) for row in rows], dtype=np.int32),
        round=np.array(rounds, dtype=np.int32),
        value=np.array([row.number for row in rows], dtype=np.float64),
        origin=f"campaign {campaign.id}",
    )


def doubtful_rows(judged: Judged, limits: Limits) -> Flags:
    """Tell which rows are low or miss the reference, and are nobody's fault.

    What is low because its round is, for all in it, may be good at another time.
    """
    matrix = judged.matrix
    found: Flags = judged.low.copy()
    for rail in range(len(matrix.rails)):
        bound = limits.goodness(limits.bound, matrix, rail)
        if bound is not None:
            found |= (matrix.rail == rail) & (matrix.goodness < bound)
    by = judged.explanation.found
    nobody = [at for at, each in enumerate(by) if each.suspect.kind is SuspectKind.ROUND]
    return found & ~judged.contended & np.isin(judged.explanation.by, [-1, *nobody])
