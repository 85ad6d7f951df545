"""What was lost or damaged between the nodes of a campaign, and at whose rail.

A lossy rail can still have its bandwidth, so the counters of each round are judged by themselves,
by the limits of all legs (docs/errors.md).  What a node sends again to its partner was lost between
the two; over several partners one node's transmit or receive side is what all losses share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key
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


@dataclass(frozen=True)
class _Way:
    """What was counted of all that went one way between two nodes, round by round.

    Attributes:
        at_most: whether what the counters do not tell counts as lost.
    """

    rates: tuple[tuple[int, ErrorRate], ...]
    at_most: bool = False

    def _events(self, rate: ErrorRate) -> int:
        return rate.events + rate.may_have_arrived * self.at_most

    @cached_property
    def events_of(self) -> Counter[int]:
        """Packets that it happened to, by round."""
        found: Counter[int] = Counter()
        for number, rate in self.rates:
            found[number] += self._events(rate)
        return found

    @cached_property
    def events(self) -> int:
        """Packets that it happened to."""
        return self.events_of.total()

    @cached_property
    def unsure(self) -> int:
        """Packets of which the counters do not tell."""
        return sum(rate.may_have_arrived for _, rate in self.rates)

    @cached_property
    def doubt(self) -> str:
        """Why nobody can be sure; empty if there is no doubt."""
        lost = [rate for _, rate in self.rates if rate.events]
        lost += [rate.at_most() for _, rate in self.rates if rate.may_have_arrived and self.at_most]
        return next(filter(None, map(doubt_of, lost)), "")

    def packets_without(self, left_out: int | None = None) -> int:
        """Return packets of all rounds, or all but one.

        Both ends may count the same packets: as the end that counted most of them says.
        """
        count: Counter[Direction] = Counter()
        for number, rate in self.rates:
            if number != left_out:
                count[rate.direction] += max(rate.packets, rate.events)
        return max(count.values(), default=0)

    @cached_property
    def packets(self) -> int:
        """Packets of all rounds."""
        return self.packets_without()

    @cached_property
    def bytes(self) -> int:
        """Bytes on the wire, as the end that counted most of them says."""
        count: Counter[Direction] = Counter()
        for _, rate in self.rates:
            count[rate.direction] += rate.bytes
        return max(count.values(), default=0)


#: (sender, receiver) -> what was counted
_Ways = dict[tuple[str, str], _Way]


class Losses:
    """Counts of a campaign, round by round."""

    def __init__(self, site: Site, fabric: str, net_paths: Sequence[Sequence[str]]) -> None:
        """Begin with nothing."""
        self._site, self._fabric, self._net_paths = site, fabric, net_paths
        self._rates: dict[tuple[int, ErrorKind], list[tuple[int, ErrorRate]]] = {}

    def add(self, net_path: int, number: int, rates: Iterable[ErrorRate]) -> None:
        """Take what the counters of one pair say of one round.

        A counter that was set back in it and shows nothing says nothing.
        """
        for rate in rates:
            if rate.events or not rate.set_back:
                self._rates.setdefault((net_path, rate.kind), []).append((number, rate))

    def found(self) -> tuple[Loss, ...]:
        """Return who loses more than may be, the worst of each path first."""
        return tuple(
            loss
            for net_path, kind, limit in self._judged()
            for loss in _blamed(self._name(net_path), kind, self._ways(net_path, kind), limit)
        )

    def carried(self) -> tuple[Carried, ...]:
        """Return what each path carried, for each kind of loss that is judged of it."""
        return tuple(
            Carried(**self._sums(net_path, kind, self._ways(net_path, kind).values()))
            for net_path, kind, _ in self._judged()
        )

    def sides(self, net_path: int, node: str) -> Iterator[SideCarried]:
        """Yield what a node sent over a path, and what it received, of each judged kind."""
        for number, kind, limit in self._judged():
            ways = self._ways(number, kind) if number == net_path else {}
            for end, direction in enumerate(("transmit", "receive")):
                if own := [each for way, each in ways.items() if way[end] == node]:
                    sums = self._sums(number, kind, own)
                    yield SideCarried(**sums, direction=direction, limit=limit)

    def _judged(self) -> Iterator[tuple[int, ErrorKind, ErrorLimit]]:
        spec = self._site.fabric_spec(self._fabric)
        for net_path, kind in sorted(self._rates):
            rails = self._net_paths[net_path]
            limit = limit_between(
                kind,
                rails,
                technology=self._site.fabric(spec.name, rails).link.technology,
                num_nodes=2,
                stated=spec.error_limits,
                why=spec.errors.origin if spec.errors else "",
            )
            if limit is not None:
                yield net_path, kind, limit

    def _ways(self, net_path: int, kind: ErrorKind) -> _Ways:
        found = by_key(
            ((rate.node, rate.peer) if rate.direction is Direction.OUT else (rate.peer, rate.node),
             (number, rate))
            for number, rate in self._rates[net_path, kind]
        )  # fmt: skip
        return {way: _Way(tuple(rates)) for way, rates in found.items()}

    def _name(self, net_path: int) -> str:
        return "+".join(self._net_paths[net_path])

    def _sums(self, net_path: int, kind: ErrorKind, ways: Iterable[_Way]) -> dict[str, Any]:
        every = list(ways)
        return {
            "net_path": self._name(net_path),
            "what": kind,
            "events": sum(each.events + each.unsure for each in every),
            "packets": sum(each.packets for each in every),
            "bytes": sum(each.bytes for each in every),
        }


def _blamed(path: str, kind: ErrorKind, ways: _Ways, limit: ErrorLimit) -> Iterator[Loss]:
    """Yield the sides of nodes that explain most of what was lost, then single pairs.

    Then likewise what may have been lost beside it: nobody knows.
    """
    allowed, left = limit.per_million_packets, dict(ways)
    sides: dict[str, list[tuple[str, _Ways]]] = {}
    while (worst := _worst_side(left, allowed)) is not None:
        node, direction, own = worst
        sides.setdefault(node, []).append((direction, own))
        left = {way: each for way, each in left.items() if way not in own}
    for node, parts in sides.items():
        direction = parts[0][0] if len(parts) == 1 else "both"
        every = [each for _, own in parts for each in own.values()]
        doubt = next((f"; {each.doubt}" for each in every if each.doubt), "")
        yield _loss(
            path, kind, every, limit, doubt,
            f"of what {node} {_SAYS[direction]} over {path}",
            node=node, ends=(node,), direction=direction,
            pairs=max(sum(each.events > 0 for each in own.values()) for _, own in parts),
            measured_pairs=max(len(own) for _, own in parts),
        )  # fmt: skip
    red = {way: each for way, each in left.items() if _is_red([each], allowed)}
    for way, each in red.items():
        # Among all pairs of a campaign one has a burst; that the next look at it sees a packet by
        # chance is no second burst.  So what its other rounds lost has to be too much by itself.
        first = max(each.events_of, key=each.events_of.__getitem__)
        events, packets = each.events - each.events_of[first], each.packets_without(first)
        doubt = f"; {each.doubt}" if each.doubt else ""
        if not doubt and events < red_from(packets, allowed):
            others = f", {events} of {packets} packets in its others" if packets else ""
            doubt = f"; most in one round{others}: a burst of a moment, or this pair"
        yield _loss(
            path, kind, [each], limit, doubt,
            f"of what {way[0]} sends to {way[1]} over {path}",
            node=None, ends=way, direction="both", pairs=1, measured_pairs=1,
        )  # fmt: skip
    unsure = [each for way, each in left.items() if way not in red and each.unsure]
    if unsure and not unsure[0].at_most:
        rest = {way: replace(each, at_most=True) for way, each in left.items() if way not in red}
        yield from _blamed(path, kind, rest, limit)


def _worst_side(ways: _Ways, allowed: float) -> tuple[str, str, _Ways] | None:
    """Return the side that lost most, and in several pairs too much; None without any."""
    found: list[tuple[float, str, str, _Ways]] = []
    for end, direction in ((0, "transmit"), (1, "receive")):
        of_node = by_key((way[end], way) for way in ways)
        for node, mine in of_node.items():
            own = {way: ways[way] for way in mine}
            worst = max(own, key=lambda way: own[way].events)
            others = [each for way, each in own.items() if way != worst]
            if _is_red(own.values(), allowed) and _is_red(others, allowed):
                packets = sum(each.packets for each in own.values())
                share = sum(each.events for each in own.values()) / packets
                found.append((share, node, direction, own))
    # Of equally bad sides of a node the first is the sending one.
    return max(found, key=lambda each: each[:2])[1:] if found else None


def _is_red(ways: Iterable[_Way], allowed: float) -> bool:
    every = list(ways)
    events = sum(each.events for each in every)
    return events >= red_from(sum(each.packets for each in every), allowed)


def _loss(
    path: str,
    kind: ErrorKind,
    ways: Sequence[_Way],
    limit: ErrorLimit,
    doubt: str,
    what: str,
    *,
    node: str | None,
    ends: tuple[str, ...],
    direction: str,
    pairs: int,
    measured_pairs: int,
) -> Loss:
    events, packets = (sum(getattr(each, of) for each in ways) for of in ("events", "packets"))
    rate = f"{events} of {packets} packets {kind.value} ({events / max(packets, 1) * 1e6:.4g} "
    in_pairs = f" in {pairs} of {measured_pairs} pairs" if node else ""
    return Loss(
        verdict=Verdict.UNJUDGED if doubt else Verdict.FAIL,
        kind=SuspectKind.RAIL if node else SuspectKind.PAIR,
        what=kind,
        name=f"{node or ' - '.join(ends)} {path}",
        net_path=path,
        node=node,
        ends=ends,
        direction=direction,
        events=events,
        packets=packets,
        pairs=pairs,
        measured_pairs=measured_pairs,
        sentence=f"{what}, {rate}per million){in_pairs}; {limit.per_million_packets:.4g} per "
        f"million are allowed ({limit.origin}){doubt}",
    )
