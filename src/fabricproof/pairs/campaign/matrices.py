"""The values of a campaign as matrices: which of them are which quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from fabricproof.core.findings import Finding, Where
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


#: Where at least so many values of a round had nearly as much taken from them (nodes that share
#: their cores), and this part of them is good, that is not what makes another one low: our choice.
_PEERS, _GOOD_PEERS, _NEARLY = 4, 0.5, 0.9


def disturbed(rows: Sequence[Row], lower: float) -> list[bool]:
    """Tell of each bandwidth whether it is low and would not be without what others took.

    What the good ones bore as well explains no low one: of what was taken only that beyond their
    median does, and none where most of its own round bore it too.

    ``lower``: the least that a healthy pair has, in MB/s.
    """
    good = [row.taken for row in rows if row.value.bandwidth_mb_s >= lower]
    borne = float(np.median(good)) if good else 0.0
    of_round = by_key(((row.net_path, row.value.round), row) for row in rows)
    found = []
    for row in rows:
        share = share_beyond(row.taken, borne)
        value = row.value.bandwidth_mb_s
        explained = value < lower <= value / (1 - share)
        found.append(explained and not _bore(row, of_round[row.net_path, row.value.round], lower))
    return found


def _bore(row: Row, of_round: Sequence[Row], lower: float) -> bool:
    peers = [
        each.value.bandwidth_mb_s >= lower
        for each in of_round
        if each is not row and each.taken >= _NEARLY * row.taken
    ]
    return len(peers) >= _PEERS and sum(peers) >= _GOOD_PEERS * len(peers)


def matrix_of(
    campaign: Campaign, quantity: Quantity, net_paths: Sequence[int], rows: Sequence[Row]
) -> Matrix:
    """Return the rows of one quantity as a matrix, in MB/s or us, its nodes in campaign's order."""
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
        kind=kind,
        source=np.array([number[each.source] for each in values], dtype=np.int32),
        destination=np.array([number[each.destination] for each in values], dtype=np.int32),
        both_ways=np.full(len(rows), quantity is not Quantity.BANDWIDTH),
        rail=np.array([net_paths.index(row.net_path) for row in rows], dtype=np.int32),
        round=np.array(rounds, dtype=np.int32),
        value=np.array([number_of(quantity, each) for each in values], dtype=np.float64),
        origin=f"campaign {campaign.id}",
    )


def number_of(quantity: Quantity, value: Value) -> float:
    """Return what counts of a value: MB/s, of a latency us."""
    # One stall of a node is no latency of the network: the middle of all messages counts.
    return value.median_latency_us if quantity is Quantity.LATENCY else value.bandwidth_mb_s


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


def good_at_second_look(campaign: Campaign, rows: Sequence[Row], doubtful: Flags) -> Flags:
    """Tell which rows were low once and good when the pair was measured again in this campaign."""
    again = campaign.again
    places = [(row.net_path, row.value.source, row.value.destination) for row in rows]
    good = {
        place
        for place, row, is_low in zip(places, rows, doubtful.tolist(), strict=True)
        if row.value.round in again and not is_low
    }
    is_good_now: Flags = np.array([place in good for place in places], dtype=bool)
    return is_good_now & doubtful


def second_look(campaign: Campaign, quantity: Quantity, first: Row) -> Finding:
    """Return the note on a row that was low and is good at the second look."""
    unit = "us" if quantity is Quantity.LATENCY else "MB/s"
    value = first.value
    name = campaign.path_name(first.net_path)
    text = (
        f"{value.source} to {value.destination} over {name} was low once "
        f"({number_of(quantity, value):.4g} {unit}) and is good at the second look"
    )
    return Finding(where=Where(nodes=(value.source, value.destination), rail=name), text=text)
