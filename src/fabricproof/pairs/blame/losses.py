"""What was lost or damaged between the nodes of a campaign, and at whose rail.

A lossy rail can still have its bandwidth, so the counters of each round are judged by themselves,
by the limits of all legs (docs/errors.md).  What a node sends again to its partner was lost between
the two; over several partners one node's transmit or receive side is what all losses share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.error_rates import (
    ErrorLimit,
    doubt_of,
    limit_between,
    most_rate,
    red_from,
)
from fabricproof.pairs.blame.suspects import SuspectKind
from fabricproof.site import Site
from fabricproof.traffic.error_rates import Direction, ErrorKind, ErrorRate

_SAYS = {"transmit": "sends", "receive": "receives", "both": "sends and receives"}


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Somebody who loses or damages more packets than may be.

    Attributes:
        verdict: FAIL, or UNJUDGED where nobody can be sure.
        kind: RAIL of a node, or PAIR.
        name: ``vc3 rail0``, ``vc1 - vc7 rail0``.
        node: of a rail; None of a pair.
        direction: ``transmit``, ``receive`` or ``both``.
        events: packets that it happened to.
        pairs: pairs in which it happened.
    """

    verdict: Verdict
    kind: SuspectKind
    what: ErrorKind
    name: str
    net_path: str
    node: str | None
    ends: tuple[str, ...]
    direction: str
    events: int
    packets: int
    pairs: int
    measured_pairs: int
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Carried:
    """What all pairs carried over a path, and how much of it may have been lost at most.

    Attributes:
        events: packets that it happened to, at most.
        bytes: on the wire, likewise.
    """

    net_path: str
    what: ErrorKind
    events: int
    packets: int
    bytes: int

    @property
    def at_most_per_million(self) -> float:
        """The largest rate that these counts leave credible at 95 %, per million packets."""
        return most_rate(self.events, self.packets)

    @property
    def sentence(self) -> str:
        """For a person."""
        return (
            f"over {self.net_path}: {self.events} of {self.packets} packets {self.what.value}, "
            f"{self.bytes / 1e9:.4g} GB: at most {self.at_most_per_million:.3g} per million (95 %)"
        )


@dataclass(frozen=True, kw_only=True)
class SideCarried(Carried):
    """What one node sent or received over a path, with all its partners together.

    Attributes:
        limit: what may happen to it.
    """

    direction: str
    limit: ErrorLimit


@dataclass(kw_only=True)
class _Cell:
    events: int = 0
    doubt: str = ""
    unsure: int = 0
    unsure_why: str = ""
    events_of: Counter[int] = field(default_factory=Counter)
    # Both ends may count the same packets, each by its own counters.
    _packets: Counter[Direction] = field(default_factory=Counter)
    _packets_of: dict[int, Counter[Direction]] = field(default_factory=dict)
    _bytes: Counter[Direction] = field(default_factory=Counter)

    @property
    def packets(self) -> int:
        """Packets that went this way, as the end that counted most of them says."""
        return max(self._packets.values(), default=0)

    def without(self, number: int) -> tuple[int, int]:
        """Return events and packets of all rounds but one."""
        others = self._packets - self._packets_of[number]
        return self.events - self.events_of[number], max(others.values(), default=0)

    @property
    def bytes(self) -> int:
        """Bytes on the wire, likewise."""
        return max(self._bytes.values(), default=0)

    def add(self, rate: ErrorRate, number: int) -> None:
        """Count what one round says."""
        packets = max(rate.packets, rate.events)
        self._packets[rate.direction] += packets
        self._packets_of.setdefault(number, Counter())[rate.direction] += packets
        self._bytes[rate.direction] += rate.bytes
        self.events += rate.events
        if rate.events:
            self.events_of[number] += rate.events
            self.doubt = self.doubt or doubt_of(rate)
        if rate.may_have_arrived:
            self.unsure += rate.may_have_arrived
            self.unsure_why = doubt_of(rate.at_most())

    @property
    def most(self) -> int:
        """Events, with those of which the counters do not tell."""
        return self.events + self.unsure

    def at_most(self) -> _Cell:
        """Return it with all that may have been lost; itself where nothing more may."""
        if not self.unsure:
            return self
        return replace(self, events=self.most, doubt=self.doubt or self.unsure_why, unsure=0)


_Cells = dict[tuple[str, str], _Cell]


class Losses:
    """Counts of a campaign, round by round."""

    def __init__(self, site: Site, fabric: str, net_paths: Sequence[Sequence[str]]) -> None:
        """Begin with nothing."""
        self._site, self._fabric, self._net_paths = site, fabric, net_paths
        self._cells: dict[tuple[int, ErrorKind], _Cells] = {}

    def add(self, net_path: int, number: int, rates: Iterable[ErrorRate]) -> None:
        """Take what the counters of one pair say of one round.

        A counter that was set back in it and shows nothing says nothing.
        """
        for rate in rates:
            if rate.set_back and not rate.events:
                continue
            ends = (rate.node, rate.peer)
            way = ends if rate.direction is Direction.OUT else ends[::-1]
            cells = self._cells.setdefault((net_path, rate.kind), {})
            cells.setdefault(way, _Cell()).add(rate, number)

    def found(self) -> tuple[Loss, ...]:
        """Return who loses more than may be, the worst of each path first."""
        return tuple(
            loss
            for (net_path, kind), cells in self._cells.items()
            if (limit := self._limit(net_path, kind)) is not None
            for loss in _blamed("+".join(self._net_paths[net_path]), kind, cells, limit)
        )

    def carried(self) -> tuple[Carried, ...]:
        """Return what each path carried, for each kind of loss that is judged of it."""
        return tuple(
            Carried(
                net_path="+".join(self._net_paths[net_path]),
                what=kind,
                events=sum(cell.most for cell in cells.values()),
                packets=sum(cell.packets for cell in cells.values()),
                bytes=sum(cell.bytes for cell in cells.values()),
            )
            for (net_path, kind), cells in sorted(self._cells.items())
            if self._limit(net_path, kind) is not None
        )

    def sides(self, net_path: int, node: str) -> Iterator[SideCarried]:
        """Yield what a node sent over a path, and what it received, of each judged kind."""
        for (number, kind), cells in sorted(self._cells.items()):
            limit = self._limit(number, kind) if number == net_path else None
            for end, direction in enumerate(("transmit", "receive")) if limit else ():
                assert limit is not None
                own = [cell for way, cell in cells.items() if way[end] == node]
                if own:
                    yield SideCarried(
                        net_path="+".join(self._net_paths[net_path]),
                        what=kind,
                        events=sum(cell.most for cell in own),
                        packets=sum(cell.packets for cell in own),
                        bytes=sum(cell.bytes for cell in own),
                        direction=direction,
                        limit=limit,
                    )

    def _limit(self, net_path: int, kind: ErrorKind) -> ErrorLimit | None:
        spec = self._site.fabric_spec(self._fabric)
        why = spec.errors.origin if spec.errors else ""
        rails = self._net_paths[net_path]
        return limit_between(
            kind,
            rails,
            technology=self._site.fabric(spec.name, rails).link.technology,
            num_nodes=2,
            stated=spec.error_limits,
            why=why,
        )


@dataclass(frozen=True, kw_only=True)
class _Side:
    node: str
    direction: str
    ways: tuple[tuple[str, str], ...]
    events: int
    packets: int
    pairs: int
    measured: int
    doubt: str


def _blamed(path: str, kind: ErrorKind, cells: _Cells, limit: ErrorLimit) -> Iterator[Loss]:
    """Yield the sides of nodes that explain most of what was lost, then single pairs.

    Then likewise what may have been lost beside it: nobody knows.
    """
    left = dict(cells)
    sides: dict[str, list[_Side]] = {}
    while (side := _worst_side(left, limit.per_million_packets)) is not None:
        sides.setdefault(side.node, []).append(side)
        left = {way: cell for way, cell in left.items() if way not in side.ways}
    for node, own in sides.items():
        direction = own[0].direction if len(own) == 1 else "both"
        events, packets = (sum(getattr(side, of) for side in own) for of in ("events", "packets"))
        pairs = max(side.pairs for side in own)
        measured = max(side.measured for side in own)
        doubt = next((f"; {side.doubt}" for side in own if side.doubt), "")
        yield Loss(
            verdict=Verdict.UNJUDGED if doubt else Verdict.FAIL,
            kind=SuspectKind.RAIL,
            what=kind,
            name=f"{node} {path}",
            net_path=path,
            node=node,
            ends=(node,),
            direction=direction,
            events=events,
            packets=packets,
            pairs=pairs,
            measured_pairs=measured,
            sentence=f"of what {node} {_SAYS[direction]} over {path}, "
            f"{_rate(events, packets, kind)} in {pairs} of {measured} pairs; "
            f"{_allowed(limit)}{doubt}",
        )
    red = {way: cell for way, cell in left.items() if _is_red([cell], limit.per_million_packets)}
    for way, cell in red.items():
        yield _of_pair(path, kind, way, cell, limit)
    rest = {way: cell.at_most() for way, cell in left.items() if way not in red}
    if any(cell is not left[way] for way, cell in rest.items()):
        yield from _blamed(path, kind, rest, limit)


def _worst_side(cells: _Cells, allowed: float) -> _Side | None:
    """Return the side that lost most, and in several pairs too much; None without any."""
    found = []
    for end, direction in ((0, "transmit"), (1, "receive")):
        for node in {way[end] for way in cells}:
            ways = tuple(way for way in cells if way[end] == node)
            own = [cells[way] for way in ways]
            worst = max(own, key=lambda cell: cell.events)
            others = [cell for cell in own if cell is not worst]
            if _is_red(own, allowed) and _is_red(others, allowed):
                found.append(
                    _Side(
                        node=node,
                        direction=direction,
                        ways=ways,
                        events=sum(cell.events for cell in own),
                        packets=sum(cell.packets for cell in own),
                        pairs=sum(cell.events > 0 for cell in own),
                        measured=len(own),
                        doubt=next((cell.doubt for cell in own if cell.doubt), ""),
                    )
                )
    return max(found, key=lambda side: (side.events / side.packets, side.node), default=None)


def _is_red(cells: Sequence[_Cell], allowed: float) -> bool:
    events = sum(cell.events for cell in cells)
    return events >= red_from(sum(cell.packets for cell in cells), allowed)


def _of_pair(
    path: str, kind: ErrorKind, way: tuple[str, str], cell: _Cell, limit: ErrorLimit
) -> Loss:
    source, destination = way
    doubt = f"; {cell.doubt}" if cell.doubt else _why_a_moment(cell, limit)
    return Loss(
        verdict=Verdict.UNJUDGED if doubt else Verdict.FAIL,
        kind=SuspectKind.PAIR,
        what=kind,
        name=f"{source} - {destination} {path}",
        net_path=path,
        node=None,
        ends=way,
        direction="both",
        events=cell.events,
        packets=cell.packets,
        pairs=1,
        measured_pairs=1,
        sentence=f"of what {source} sends to {destination} over {path}, "
        f"{_rate(cell.events, cell.packets, kind)}; {_allowed(limit)}{doubt}",
    )


def _why_a_moment(cell: _Cell, limit: ErrorLimit) -> str:
    """Return why a pair's losses may be a burst of a moment; empty where they came again.

    Among all pairs of a campaign one has a burst; that the next look at it sees a packet by chance
    is no second burst.  So what its other rounds lost has to be too much by itself.
    """
    worst, _ = max(cell.events_of.items(), key=lambda each: each[1])
    events, packets = cell.without(worst)
    if events >= red_from(packets, limit.per_million_packets):
        return ""
    others = f", {events} of {packets} packets in its others" if packets else ""
    return f"; most in one round{others}: a burst of a moment, or this pair"


def _rate(events: int, packets: int, kind: ErrorKind) -> str:
    rate = events / max(packets, 1) * 1e6
    return f"{events} of {packets} packets {kind.value} ({rate:.4g} per million)"


def _allowed(limit: ErrorLimit) -> str:
    return f"{limit.per_million_packets:.4g} per million are allowed ({limit.origin})"
