"""An InfiniBand fabric as its cables are: switches, hosts' adapters, ports, what each is linked to.

The subnet manager's view, read off the tools of infiniband-diags; nothing in it is declared.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from fabricproof.core.errors import UnknownLinkError
from fabricproof.core.findings import Where
from fabricproof.core.units import natural
from fabricproof.physics import Link, find_link


class NodeKind(StrEnum):
    """What a node of the fabric is (IBA specification vol. 1, 14.2.5.3, NodeInfo: NodeType)."""

    SWITCH = "Switch"
    HOST = "Ca"
    """A channel adapter: an HCA of a host, or the storage's."""
    ROUTER = "Rt"


@dataclass(frozen=True, kw_only=True, order=True)
class End:
    """One end of a cable: port ``port`` of the node with that GUID (16 hexadecimal digits)."""

    guid: str
    port: int


@dataclass(frozen=True, kw_only=True)
class Node:
    """One switch or adapter.

    Attributes:
        guid: NodeGUID, 16 hexadecimal digits; what identifies it when LIDs and cables change.
        num_ports: external ports, from 1 on.
        description: NodeDescription, which people and ``rdma-ndd`` set: ``n17 mlx5_0``.
        lid: of a switch's own port 0; None for adapters, whose ports have one each.
        port_guids: GUIDs that stand for this node or a port of it.
    """

    guid: str
    kind: NodeKind
    num_ports: int
    description: str
    lid: int | None = None
    port_guids: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Port:
    """One port, and what it is linked to.

    Attributes:
        lid: its LID, for a port of a switch the switch's; None where nobody read it, 0 where no
            subnet manager gave one.
        lanes: width in use, None where the tool does not know it or the port is down.
        speed: name of the speed in use (``EDR``), likewise.
        peer: the other end of its cable, None where nothing is linked.
        state: ``Down``, ``Initialize``, ``Armed``, ``Active``; empty where nobody read it.
        physical: ``LinkUp``, ``Polling``, ``Disabled`` ...; empty likewise.
        could_lanes: the width that both ends support, where it is more than that in use.
        could_speed: likewise the speed.
        could_unnamed: whether the tool says that more is supported, and has no name for what.
    """

    end: End
    lid: int | None = None
    lanes: int | None = None
    speed: str | None = None
    peer: End | None = None
    state: str = ""
    physical: str = ""
    could_lanes: int | None = None
    could_speed: str | None = None
    could_unnamed: bool = False

    @property
    def link(self) -> Link | None:
        """The link in use, None where width or speed are not known."""
        if self.lanes is None or self.speed is None:
            return None
        try:
            return find_link(f"{self.speed} {self.lanes}x")
        except UnknownLinkError:
            return None

    @property
    def words(self) -> str:
        """``EDR 4x``, with a question mark for what is not known."""
        return f"{self.speed or '?'} {self.lanes or '?'}x"


@dataclass(frozen=True, kw_only=True)
class Cable:
    """Two ports that are linked, the smaller end first."""

    one: Port
    other: Port


#: What adapters are called before anybody gave them a name: ``MT4123 ConnectX6   Mellanox
#: Technologies`` (firmware), ``Quantum Mellanox Technologies`` (switches).
_FACTORY = re.compile(r"^MT\d{4,5}\b|Mellanox Technologies|^$")

#: Switches with SHARP show an adapter of their own at their last port; it is no host (NVIDIA SHARP
#: deployment guide: "Mellanox Technologies Aggregation Node" in ibnetdiscover).
_AGGREGATION = "Aggregation Node"


@dataclass(frozen=True, kw_only=True)
class Network:
    """All that one look at a fabric showed.

    Attributes:
        nodes: by GUID.
        ports: by end; every linked port is there, ports that are down where ``iblinkinfo`` showed.
        from_guid: the node that looked.
    """

    nodes: Mapping[str, Node]
    ports: Mapping[End, Port]
    from_guid: str = ""

    @cached_property
    def owners(self) -> Mapping[str, str]:
        """GUID of a node or of a port of it -> the node's."""
        return {own: guid for guid, node in self.nodes.items() for own in node.port_guids}

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """GUIDs of the switches, in the order of their names."""
        return tuple(
            sorted(
                (guid for guid, node in self.nodes.items() if node.kind is NodeKind.SWITCH),
                key=lambda guid: (natural(self.name(guid)), guid),
            )
        )

    @cached_property
    def cables(self) -> tuple[Cable, ...]:
        """Every cable once, in the order of names."""
        found = (
            Cable(one=port, other=self.ports[port.peer])
            for port in self.ports.values()
            if port.peer is not None and port.end < port.peer
        )
        return tuple(sorted(found, key=lambda cable: natural(str(self.where(cable.one.end)))))

    @cached_property
    def hosts(self) -> Mapping[str, tuple[str, ...]]:
        """Host name -> GUIDs of its adapters; those with the factory's name are left out."""
        found: dict[str, list[str]] = defaultdict(list)
        for guid, node in sorted(self.nodes.items()):
            name = self.host_of(guid)
            if node.kind is NodeKind.HOST and name is not None:
                found[name].append(guid)
        return {name: tuple(found[name]) for name in sorted(found, key=natural)}

    @cached_property
    def _doubles(self) -> frozenset[str]:
        counts = Counter(node.description for node in self.nodes.values())
        return frozenset(name for name, count in counts.items() if count > 1)

    @cached_property
    def trunks(self) -> tuple[Cable, ...]:
        """The cables between switches."""
        return tuple(cable for cable in self.cables if self._is_trunk(cable))

    @cached_property
    def outer_links(self) -> frozenset[End]:
        """The ports that have a link and counters, which parts of switches need not have."""
        return frozenset(
            end
            for end, port in self.ports.items()
            if port.peer is not None and not self.is_inner(end.guid)
        )

    def peer_switch(self, guid: str, port: int) -> str | None:
        """Return the switch at the other end of that port, None where there is none."""
        mine = self.ports.get(End(guid=guid, port=port))
        if mine is None or mine.peer is None or not self.is_switch(mine.peer.guid):
            return None
        return mine.peer.guid

    def is_inner(self, guid: str) -> bool:
        """Tell whether that node is part of a switch: SHARP's aggregation node."""
        node = self.nodes[guid]
        return node.kind is NodeKind.HOST and _AGGREGATION in node.description

    def is_switch(self, guid: str) -> bool:
        """Tell whether that node is a switch."""
        return self.nodes[guid].kind is NodeKind.SWITCH

    def _is_trunk(self, cable: Cable) -> bool:
        return self.is_switch(cable.one.end.guid) and self.is_switch(cable.other.end.guid)

    def host_of(self, guid: str) -> str | None:
        """Return the host that an adapter is in: the first word of its description, no domain.

        ``rdma-ndd`` writes ``%h %d`` (rdma-core, rdma-ndd.8): host name, then device.  None for
        switches, and for adapters that still have the factory's name.
        """
        node = self.nodes[guid]
        if node.kind is not NodeKind.HOST or _FACTORY.search(node.description):
            return None
        return node.description.split()[0].partition(".")[0]

    def name(self, guid: str) -> str:
        """Return what people call a node; with its GUID where the name says too little."""
        description = self.nodes[guid].description
        if not description or description in self._doubles:
            return f"{description or self.nodes[guid].kind.value} (0x{guid})"
        return description

    def where(self, end: End) -> Where:
        """Return ``leaf1 port 9``; of a host its name, with adapter and port as the rail."""
        name, host = self.name(end.guid), self.host_of(end.guid)
        device = name.partition(" ")[2] if host else ""
        return Where(node=host or name, rail=f"{device} port {end.port}".strip())

    def between(self, cable: Cable) -> Where:
        """Return ``leaf1 port 9 - spine1 port 1``."""
        return replace(self.where(cable.one.end), peer=str(self.where(cable.other.end)))


@dataclass(frozen=True, kw_only=True)
class Manager:
    """One subnet manager, as it answers for itself (``sminfo``).

    ``state`` is the number of the specification (vol. 1, 14.2.5.13 SMInfo): 1 discovering,
    2 standby, 3 master, 0 not active.
    """

    lid: int
    guid: str
    priority: int
    state: int

    @property
    def is_master(self) -> bool:
        """Whether it manages, rather than stands by."""
        return self.state == 3


#: counters of one port by the kernel's names (``symbol_error``)
PortCounters = Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class SubnetLook:
    """One look at a fabric: the cables, and beside them what else was asked.

    Attributes:
        managers: the one that the ports name first, then others; None where nobody asked.
        counters: of the ports whose error counters are not zero; None where nobody asked.
        counted_ports: how many ports were asked for their error counters.
        counted_nodes: how many nodes were.
        not_seen: what was not asked, in words.
        has_states: ``iblinkinfo`` was asked: states of ports, and what both ends of links support.
        complaints: what the tools said beside their output; part of the fabric may be unseen.
    """

    network: Network
    managers: tuple[Manager, ...] | None = None
    counters: Mapping[End, PortCounters] | None = None
    counted_ports: int = 0
    counted_nodes: int = 0
    not_seen: tuple[str, ...] = ()
    has_states: bool = True
    complaints: tuple[str, ...] = field(default=())
