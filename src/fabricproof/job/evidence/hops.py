"""Whether packets between two nodes of a leg went through a third one.

The counters of a leg's own nodes cannot tell.  Three witnesses of ``rank.sh`` can: whom a node
takes for its neighbours (``/proc/net/arp``), the peer's own hardware addresses, and the time to
live of a packet that came from the peer, of which each node that forwards takes one off (RFC 1812,
5.3.1).  Where a node does not take the peer for its neighbour the network routes, and nothing is
said.  InfiniBand's and Slingshot's routes, IPv6, and packets that somebody passes on without
touching them are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from fabricproof.core.units import by_key
from fabricproof.job.evidence.leg_folder import RankRecord
from fabricproof.verdict.objections import Objection, ObjectionKind

#: what systems begin with: Linux and BSD, Windows, routers (RFC 1700's 64 and what became of it)
_FIRST_TTLS = (64, 128, 255)
#: no path within a cluster is as long: a smaller number began elsewhere
_MOST_HOPS = 30

#: of the flags in ``/proc/net/arp``: complete, and stated by a person (Linux if_arp.h: ATF_COM,
#: ATF_PERM)
_COMPLETE, _STATED = 0x2, 0x4


class _Node:
    """What the ranks of one node say of it."""

    def __init__(self, name: str, records: Sequence[RankRecord]) -> None:
        self.name = name
        self.addresses = {each for record in records for each in record.addresses}
        self.hardware = {
            facts["address"].lower()
            for record in records
            for facts in record.facts.values()
            if facts.get("address")
        }
        self.neighbours = {at: what for each in records for at, what in each.neighbours.items()}
        self.ttl = {at: int(what) for each in records for at, what in each.ttl.items()}

    def has(self, hardware: str) -> bool:
        """Tell whether it is its own; ``/proc/net/arp`` shows half of an IPoIB address."""
        return any(each.startswith(hardware) for each in self.hardware)

    def hops_from(self, peer: _Node) -> int | None:
        """Return how many nodes forwarded what came from a neighbour, at most; None if unknown."""
        numbers = [
            min(first for first in _FIRST_TTLS if first >= ttl) - ttl
            for at, ttl in self.ttl.items()
            if at.partition("/")[2] in peer.addresses and ttl <= max(_FIRST_TTLS)
        ]
        return max((each for each in numbers if each <= _MOST_HOPS), default=None)


def other_hops(records: Sequence[RankRecord]) -> Iterator[Objection]:
    """Yield what says that packets between nodes of a leg went through another node."""
    of_nodes = by_key((each.node, each) for each in records)
    nodes = [_Node(name, own) for name, own in of_nodes.items()]
    for sender, receiver in permutations(nodes, 2):
        if found := _between(sender, receiver, nodes):
            yield found


def _between(sender: _Node, receiver: _Node, nodes: Sequence[_Node]) -> Objection | None:
    hops = receiver.hops_from(sender)
    way = f"from {sender.name} to {receiver.name}"
    wrong = owner = ""
    for at, what in sender.neighbours.items():
        device, _, address = at.partition("/")
        flags, _, hardware = what.lower().partition("/")
        is_complete = int(flags, 16) & _COMPLETE
        if address not in receiver.addresses or not is_complete or receiver.has(hardware):
            continue
        owner = next((each.name for each in nodes if each.has(hardware)), "")
        whose = f"that is {owner}'s" if owner else "which no node of this leg has"
        wrong = f": for {address} on {device} {sender.name} takes {hardware}, {whose}"
        if hops is None and (owner or int(flags, 16) & _STATED):
            hops = 1
    if not hops and not (wrong and hops is None):
        return None
    kind, verb = ObjectionKind.OTHER_HOP, "went"
    if not hops:
        kind, verb = ObjectionKind.PATH_UNKNOWN, "may have gone"
    reason = f"packets {way} {verb} through {owner or 'another node'}{wrong}"
    return Objection(kind=kind, reason=reason)
