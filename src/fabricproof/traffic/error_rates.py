"""Errors as a quantity: events per packet and per gigabyte, for each rail, node and direction.

What a wire loses shows at whoever must send it again, what it damages at whoever receives it.  TCP
counts for the node as a whole: over several rails nobody can say which of them lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from fabricproof.traffic.counters import RATES, TCP, CounterSample, is_device
from fabricproof.traffic.expectation import Evidence

#: what TCP counts of segments that the other end says it got twice
_TWICE = ("TCPDSACKRecvSegs", "TCPDSACKRecv", "TCPDSACKOfoRecv")


class ErrorKind(StrEnum):
    """What happened to packets."""

    RETRANSMITTED = "retransmitted"
    """Lost on the way, and sent again."""
    DAMAGED = "damaged"
    """Received with a wrong checksum or symbol, or not sent for an error of the port."""
    DROPPED = "dropped"
    """Thrown away whole, for want of a buffer or of credits."""
    GAP = "gap"
    """Seen by the receiver: packets that came before others which were due."""
    DUPLICATED = "duplicated"
    """Received twice, although nobody sent them again."""


class Direction(StrEnum):
    """Which way the packets went, as the node sees it."""

    OUT = "out"
    IN = "in"


#: Kind and direction -> counters of a port or interface.  Several may count one event from another
#: side: the largest of them counts, their sum would count twice.
PORT_COUNTERS: Mapping[tuple[ErrorKind, Direction], frozenset[str]] = {
    (ErrorKind(kind), Direction(way)): names
    for rate, names in RATES.items()
    for kind, way in (rate.split(),)
}


def way_between(rail: str, node: str, peer: str, direction: Direction) -> str:
    """Return ``rail0 from vc1 to vc2``, for a person; an empty ``peer`` is ``the others``."""
    ends = (node, peer or "the others")
    return f"{rail} from {' to '.join(ends if direction is Direction.OUT else ends[::-1])}"


@dataclass(frozen=True, kw_only=True)
class ErrorRate:
    """What happened to the packets of one direction of one rail of one node.

    Attributes:
        rail: interface or port; several joined by ``+`` if nobody can tell them apart.
        direction: of the packets, as that node sees it.
        peer: the other end if there is one only; else empty.
        events: packets that it happened to.
        packets: packets that went this way in all.
        beside: packets of other interfaces that the same counter may speak of.
        arrivals_unknown: nobody counted duplicates: the events are the most they can be.
        may_have_arrived: packets sent again beside the events, perhaps in vain.
        set_back: counters that wrapped or were reset: the events are the least they can be.
        counters: what each counter advanced by, zeros left out.
    """

    kind: ErrorKind
    rail: str
    node: str
    direction: Direction
    peer: str
    events: int
    packets: int
    bytes: int
    beside: int = 0
    arrivals_unknown: bool = False
    may_have_arrived: int = 0
    set_back: tuple[str, ...] = ()
    counters: Mapping[str, int]

    @property
    def most_packets(self) -> int:
        """Packets, no fewer than events."""
        return max(self.packets, self.events)

    @property
    def per_million_packets(self) -> float:
        """Events per million packets; 0 if none flowed and nothing happened."""
        return self.events / max(self.most_packets, 1) * 1e6

    @property
    def per_gigabyte(self) -> float:
        """Events per 10^9 bytes on the wire."""
        return self.events / max(self.bytes, 1) * 1e9 if self.events else 0.0

    @property
    def way(self) -> str:
        """``rail0 from vc1 to vc2``, for a person."""
        return way_between(self.rail, self.node, self.peer, self.direction)

    def at_most(self) -> ErrorRate:
        """Return it with all that may have happened; itself where nothing more may."""
        if not self.may_have_arrived:
            return self
        events = self.events + self.may_have_arrived
        return replace(self, events=events, may_have_arrived=0, arrivals_unknown=True)

    def record(self) -> dict[str, Any]:
        """Return it as plain data, rates included."""
        names = ("per_million_packets", "per_gigabyte")
        rates = {name: round(getattr(self, name), 4) for name in names}
        return {**asdict(self), "kind": self.kind.value, "direction": self.direction.value, **rates}


def error_rates(evidence: Evidence, rails: Sequence[str]) -> tuple[ErrorRate, ...]:
    """Return what happened on the rails of a run, zeros included, where somebody counted."""
    found: list[ErrorRate] = []
    below = {(each.node, each.parent) for each in evidence.samples if each.interface in rails}
    for sample in evidence.samples:
        others = [each for each in evidence.nodes if each != sample.node]
        peer = "" if others[1:] else "".join(others)
        if sample.interface == TCP and not any(map(is_device, rails)):
            found += _of_tcp(evidence, sample, rails, peer)
        elif sample.interface in rails or (sample.node, sample.interface) in below:
            found += _counted(sample, sample.interface, sample.moved, peer)
    return tuple(found)


def added(rates: Iterable[ErrorRate]) -> tuple[ErrorRate, ...]:
    """Return the rates of several attempts together: one that was quiet clears no other."""
    together: dict[tuple[object, ...], ErrorRate] = {}
    for each in rates:
        key = (each.kind, each.rail, each.node, each.direction)
        known = together.get(key)
        if known is None:
            together[key] = each
            continue
        names = ("events", "packets", "bytes", "beside", "may_have_arrived")
        together[key] = replace(  # a later attempt that was counted clears set_back
            each,
            peer=known.peer if known.peer == each.peer else "",
            arrivals_unknown=known.arrivals_unknown or each.arrivals_unknown,
            counters=dict(Counter(known.counters) + Counter(each.counters)),
            **{name: getattr(known, name) + getattr(each, name) for name in names},
        )
    return tuple(together.values())


def _counted(
    sample: CounterSample, rail: str, moved: Callable[[str], int], peer: str
) -> Iterator[ErrorRate]:
    for (kind, direction), names in PORT_COUNTERS.items():
        there = [name for name in sorted(names) if sample.has(name)]
        way = "tx" if direction is Direction.OUT else "rx"
        if there:
            yield ErrorRate(
                kind=kind,
                rail=rail,
                node=sample.node,
                direction=direction,
                peer=peer,
                events=max(0, *map(sample.moved, there)),
                packets=max(0, moved(f"{way}_packets")),
                bytes=max(0, moved(f"{way}_bytes")),
                set_back=tuple(filter(sample.ran_backwards, there)),
                counters=_risen(sample, there),
            )


def _of_tcp(
    evidence: Evidence, tcp: CounterSample, rails: Sequence[str], peer: str
) -> Iterator[ErrorRate]:
    """Yield what the TCP of a node lost on the way out, and the gaps in what came in.

    A segment whose first copy arrived too was sent again in vain: the other end names the duplicate
    (DSACK, RFC 2883; RFC 3708 counts so).  The first segment of a connection is left out: one that
    no listener takes is sent again likewise.

    ``TCPDSACKRecvSegs`` counts segments (Linux 5.5 and newer, net/ipv4/tcp_input.c tcp_dsack_seen),
    the two older counters the blocks that name them, one or several each.  The same function stops
    counting segments of a connection whose peer named more than was sent again.  So if there are
    fewer segments than blocks, the rest was sent again in vain, or the network made two of one and
    hides as many losses.  Blocks beyond what was sent again are duplicates of the network.
    """
    rail, sent_again = "+".join(rails), ("RetransSegs", "TCPSynRetrans")
    mine = [each for each in evidence.samples if each.node == tcp.node and each.interface != TCP]

    def on_rails(counter: str) -> int:
        return sum(each.moved(counter) for each in mine if each.interface in rails)

    if tcp.has("RetransSegs") and tcp.has("OutSegs"):
        rise = {name: max(0, tcp.moved(name)) for name in (*sent_again, *_TWICE)}
        again = max(0, rise["RetransSegs"] - rise["TCPSynRetrans"])
        blocks = rise["TCPDSACKRecv"] + rise["TCPDSACKOfoRecv"]
        in_vain = rise["TCPDSACKRecvSegs"] if tcp.has("TCPDSACKRecvSegs") else blocks
        named = max(blocks, in_vain)
        segments = tcp.moved("OutSegs") + tcp.moved("RetransSegs")
        local = sum(each.moved("tx_packets") for each in mine if each.interface == "lo")
        beside = sum(each.moved("tx_packets") for each in mine) - local - on_rails("tx_packets")
        twice = ErrorRate(
            kind=ErrorKind.DUPLICATED,
            rail=rail,
            node=tcp.node,
            direction=Direction.OUT,
            peer=peer,
            events=max(0, named - again),
            # The rails count fewer than TCP if an interface cuts segments itself, more if others
            # use them.
            packets=max(segments - local - beside, min(segments, on_rails("tx_packets"))),
            bytes=on_rails("tx_bytes"),
            beside=beside,
            set_back=tuple(filter(tcp.ran_backwards, ("OutSegs", *sent_again))),
            counters=_risen(tcp, rise),
        )
        events = max(0, again - named)
        yield replace(
            twice,
            kind=ErrorKind.RETRANSMITTED,
            events=events,
            arrivals_unknown=not any(map(tcp.has, _TWICE)),
            may_have_arrived=max(0, again - in_vain) - events,
        )
        yield twice
    yield from _counted(tcp, rail, on_rails, peer)


def _risen(sample: CounterSample, names: Iterable[str]) -> dict[str, int]:
    return {name: rise for name in names if (rise := sample.moved(name)) > 0}
