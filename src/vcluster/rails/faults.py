"""What may be wrong, where, and what each cable and each link between switches is then to be.

Pure: :mod:`vcluster.rails.apply` does it.  Several faults may meet at one port, that of a node, of
its leaf and of a pair: the slowest rate counts, and each loses what it loses of what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from vcluster.errors import ConfigError
from vcluster.plan import Node, Plan
from vcluster.rails.shaping import parse_rate, rate_label

#: seen from a node or a leaf: what comes to it, and what it sends (of a pair: to the first node,
#: and from it; of an uplink: from the spine, and to it)
IN, OUT = "in", "out"
WAYS = (IN, OUT)
_LEAF, _UPLINK = "leaf", "uplink"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is to be wrong with a place; nothing where all is left out.

    Attributes:
        rate_bit_s: a line rate other than the planned one.
        loss_percent: share of the packets that a switch's port loses, above 0 and up to 100.
        direction: of the rate or the losses, ``in`` or ``out``; None for both.
        cut: no carrier: the cable is pulled at the switch.
        mtu: another MTU on a node's end, in bytes.
        firmware: what ``ethtool -i`` on that node says of the rail's firmware.
        queue_bytes: what may wait to be sent on a node's end, in bytes.
        cpu_percent: what a node's processes get of one core, all together.
        crossed: its cable is in the switch of the node's next rail.
    """

    rate_bit_s: int | None = None
    loss_percent: float | None = None
    direction: str | None = None
    cut: bool = False
    mtu: int | None = None
    firmware: str | None = None
    queue_bytes: int | None = None
    cpu_percent: float | None = None
    crossed: bool = False

    def __str__(self) -> str:
        """Return it in words."""
        way = f" {self.direction}" if self.direction else ""
        words = ["no carrier"] if self.cut else []
        words += [f"rate {rate_label(self.rate_bit_s)}{way}"] if self.rate_bit_s else []
        words += [f"MTU {self.mtu}"] if self.mtu else []
        words += [f"firmware {self.firmware}"] if self.firmware else []
        words += [f"queue {self.queue_bytes} B"] if self.queue_bytes else []
        words += [f"loss {self.loss_percent:g} %{way}"] if self.loss_percent else []
        words += [f"{self.cpu_percent:g} % of a core"] if self.cpu_percent else []
        words += ["in the switch of the next rail"] if self.crossed else []
        return ", ".join(words)

    def rate(self, way: str) -> int | None:
        """Return the line rate that it sets in a direction."""
        return self.rate_bit_s if self.direction in {None, way} else None

    def lost(self, way: str) -> float:
        """Return the share of the packets that it takes in a direction."""
        return (self.loss_percent or 0.0) / 100 if self.direction in {None, way} else 0.0


@dataclass(frozen=True, kw_only=True, order=True)
class Place:
    """Where a fault is.

    Attributes:
        host: a node (``vc2``), a leaf switch with its cables (``leaf2``), or the link between a
            leaf and the spine (``uplink2``).
        peer: the other node, where only what passes between the two is meant; else empty.
        rail: index; -1 for a node's CPU.
    """

    host: str
    peer: str = ""
    rail: int

    def __str__(self) -> str:
        """Return it as ``status`` names it."""
        part = "cpu" if self.rail < 0 else f"rail{self.rail}"
        return f"{self.host}{self.peer and '-'}{self.peer}/{part}"

    def is_of(self, node: str) -> bool:
        """Tell whether a node alone has it, or shares it with its peer."""
        return node in {self.host, self.peer}


Faults = Mapping[Place, Fault]


def as_json(faults: Faults) -> list[dict[str, Any]]:
    """Return faults as plain data for the state file."""
    return [{"place": asdict(at), "fault": asdict(what)} for at, what in faults.items()]


def from_json(data: Iterable[Mapping[str, Any]]) -> dict[Place, Fault]:
    """Return the faults that :func:`as_json` wrote."""
    return {Place(**each["place"]): Fault(**each["fault"]) for each in data}


def in_words(faults: Faults) -> dict[str, str]:
    """Return faults by place, both in words."""
    return {str(at): str(what) for at, what in faults.items()}


def leaf_number(plan: Plan, host: str) -> int | None:
    """Return the number of the leaf that ``leafN`` or ``uplinkN`` names; None for another word."""
    for leaf in plan.leaves:
        if host in {f"{_LEAF}{leaf}", f"{_UPLINK}{leaf}"}:
            return leaf
    return None


def places(plan: Plan, host: str, interface: str | None, peer: str | None) -> list[Place]:
    """Return the places that a command names, one for each rail.

    Args:
        plan: of the cluster.
        host: a node, ``leafN`` or ``uplinkN``.
        interface: ``rail0``...; None for all rails.
        peer: another node, or None.

    Raises:
        ConfigError: there is no such node, leaf or rail, or it has no peer.
    """
    if leaf_number(plan, host) is None:
        if host.startswith((_LEAF, _UPLINK)):
            raise ConfigError(
                f"cluster {plan.name!r} has no such leaf switch or uplink",
                expected=f"a number from 1 to {plan.leaf_count}, as {_LEAF}1 or {_UPLINK}1",
                got=repr(host),
            )
        plan.node(host)
    if peer is not None:
        plan.node(peer)
        if leaf_number(plan, host) is not None or peer == host:
            raise ConfigError("no pair of nodes", expected="two nodes", got=f"{host} with {peer}")
    rails = plan.rails if interface is None else [plan.rail(interface)]
    return [Place(host=host, peer=peer or "", rail=rail) for rail in rails]


def cpu_place(plan: Plan, host: str, interface: str | None, peer: str | None) -> Place:
    """Return the place of a fault of a node's CPU.

    Raises:
        ConfigError: more or less than a node was named.
    """
    if leaf_number(plan, host) is not None or interface or peer:
        got = " ".join(each for each in (host, interface, peer and f"with {peer}") if each)
        raise ConfigError("no CPU", expected="a node, and no rail", got=got)
    return Place(host=host, rail=-1)


def require_fit(plan: Plan, place: Place, wanted: Fault) -> None:
    """Refuse a fault that its place cannot have.

    Raises:
        ConfigError: it cannot.
    """
    of_node = leaf_number(plan, place.host) is None and not place.peer
    given = {key for key, value in asdict(wanted).items() if value not in {None, False}}
    fits = {"rate_bit_s", "loss_percent", "direction"} | (set() if place.peer else {"cut"})
    if not of_node and not given <= fits:
        options = "--rate and --loss" if place.peer else "--rate, --loss and --down"
        kind = "a pair" if place.peer else "a leaf or an uplink"
        raise ConfigError(
            f"{kind} cannot have this fault", expected=options, got=f"{place}: {wanted}"
        )
    if wanted.crossed and len(plan.rails) < 2:
        raise ConfigError(
            f"{place.host} has no other rail to be crossed with",
            expected="a cluster with two rails or more",
            got=f"{plan.name!r} with {len(plan.rails)}",
        )


def rate_of(plan: Plan, place: Place, text: str) -> int:
    """Read the rate of a fault: a line rate (``8mbit``) or a share of the planned one (``30%``).

    Raises:
        ConfigError: neither, or a share of an uplink that nothing limits.
    """
    share = text.strip().removesuffix("%")
    if share == text.strip():
        return parse_rate(text)
    planned: int | None = plan.rail_rates_bit_s[place.rail]
    if place.host.startswith(_UPLINK):
        planned = plan.uplink_bit_s
    if planned is None:
        raise ConfigError(
            "no share of an uplink that nothing limits",
            expected="a rate as 50mbit, or a cluster that is up with --uplink",
            got=repr(text),
        )
    try:
        bits = round(planned * float(share) / 100)
    except (ValueError, OverflowError):
        bits = 0
    if not 0 < bits <= planned:
        raise ConfigError(
            "not a share of a rate", expected="above 0% and up to 100%", got=repr(text)
        )
    return parse_rate(f"{bits / 1000:.3f}kbit")


@dataclass(frozen=True, kw_only=True)
class Sender:
    """What a switch's port does to what one node sends through it.

    Attributes:
        host: last byte of that node's address.
        rate_bit_s: the most that it gets; None where nothing but the port limits it.
        lost: share of its packets.
    """

    host: int
    rate_bit_s: int | None
    lost: float


@dataclass(frozen=True, kw_only=True)
class Cable:
    """What the cable of a node's rail is to be.

    Attributes:
        rate_in: line rate of what the switch sends to the node, bit/s.
        rate_out: of what the node sends.
        lost_in: share of the packets to the node that the switch's port loses.
        lost_out: of those from it.
        senders: what is wrong with single other nodes' packets to this one.
        cut: no carrier.
        mtu: on the node's end, bytes.
        firmware: what is told of it; None for the truth.
        queue_bytes: on the node's end; None for as much as is ever useful.
        switch: the rail whose switch it is in.
    """

    rate_in: int
    rate_out: int
    lost_in: float
    lost_out: float
    senders: tuple[Sender, ...]
    cut: bool
    mtu: int
    firmware: str | None
    queue_bytes: int | None
    switch: int


def cable(plan: Plan, faults: Faults, node: Node, rail: int) -> Cable:
    """Return what the cable of a node's rail is to be, with the faults that are in place."""
    here = {node.name, f"{_LEAF}{node.leaf}"}
    found = [
        what for at, what in faults.items() if at.rail == rail and not at.peer and at.host in here
    ]
    own = faults.get(Place(host=node.name, rail=rail), Fault())
    planned = plan.rail_rates_bit_s[rail]
    return Cable(
        rate_in=_slowest(planned, found, IN) or planned,
        rate_out=_slowest(planned, found, OUT) or planned,
        lost_in=_lost(found, IN),
        lost_out=_lost(found, OUT),
        senders=_senders(plan, faults, node, rail),
        cut=any(each.cut for each in found),
        mtu=own.mtu or plan.mtu,
        firmware=own.firmware,
        queue_bytes=own.queue_bytes,
        switch=(rail + own.crossed) % len(plan.rails),
    )


def _senders(plan: Plan, faults: Faults, node: Node, rail: int) -> tuple[Sender, ...]:
    """Return what other nodes' packets to this one suffer, because of faults of a pair."""
    by_peer: dict[str, list[tuple[Fault, str]]] = {}
    for at, what in faults.items():
        if at.rail == rail and at.peer and at.is_of(node.name):
            # ``in`` is to the first of the two.
            way, peer = (IN, at.peer) if node.name == at.host else (OUT, at.host)
            by_peer.setdefault(peer, []).append((what, way))
    found = []
    for peer, suffered in by_peer.items():
        rates = [rate for what, way in suffered if (rate := what.rate(way))]
        lost = 1 - prod(1 - what.lost(way) for what, way in suffered)
        host = int(plan.node(peer).rail_address(rail).rpartition(".")[2])
        if rates or lost:
            rate = min(rates) if rates else None
            found.append(Sender(host=host, rate_bit_s=rate, lost=lost))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Uplink:
    """What one direction of the link between a leaf and the spine is to be.

    Attributes:
        rate_bit_s: line rate; None where nothing limits it.
        lost: share of the packets.
    """

    rate_bit_s: int | None
    lost: float


def uplink(plan: Plan, faults: Faults, leaf: int, rail: int, way: str) -> Uplink:
    """Return what an uplink is to be: ``out`` from the leaf to the spine, ``in`` back."""
    what = faults.get(Place(host=f"{_UPLINK}{leaf}", rail=rail), Fault())
    return Uplink(rate_bit_s=_slowest(plan.uplink_bit_s, [what], way), lost=what.lost(way))


def is_uplink(host: str) -> bool:
    """Tell whether a place is the link between a leaf and the spine."""
    return host.startswith(_UPLINK)


def _slowest(planned: int | None, found: Iterable[Fault], way: str) -> int | None:
    # A fault may also make a link faster than planned, by itself.
    rates = [rate for each in found if (rate := each.rate(way))]
    return min(rates) if rates else planned


def _lost(found: Iterable[Fault], way: str) -> float:
    return 1 - prod(1 - each.lost(way) for each in found)
