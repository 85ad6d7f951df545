"""What the site expects of each rail, out of its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.preflight.finding import Finding
from fabricproof.physics import Fabric, Link, Slot
from fabricproof.site.physics import build_fabric
from fabricproof.site.schema import ExpectSpec, FabricSpec
from fabricproof.verdict.value import Judgement

Facts = Mapping[str, Value]

#: what only the interface of a port says of it
_OF_INTERFACE = frozenset(
    {"fec", "rings", "queues", "offloads", "pause", "coalescing", "transceiver", "connector"}
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What one rail is to be on every node.  None: the site does not say.

    Attributes:
        rail: interface or port (``mlx5_0:1``).
        fabric: the fabric's name.
        physics: the road over this rail alone, from which ceilings follow.
        mtu: in bytes.
        shaped: the site declares a shaper, so that the link's own rate is none.
        expect: what else is stated of the cards.
    """

    rail: str
    fabric: str
    physics: Fabric
    mtu: int | None
    shaped: bool
    expect: ExpectSpec

    @property
    def link(self) -> Link:
        """The declared link."""
        return self.physics.link

    @property
    def slot(self) -> Slot | None:
        """The declared PCIe slot."""
        return self.physics.slot

    @property
    def is_port(self) -> bool:
        """Whether the rail is a port of an HCA rather than a network interface."""
        return ":" in self.rail

    @property
    def part(self) -> str:
        """What an inventory calls it."""
        return f"{'port' if self.is_port else 'interface'} {self.rail}"


@dataclass(frozen=True, kw_only=True)
class Sight:
    """One rail on one node, as it was seen.

    Attributes:
        wanted: what it is to be.
        machine: the node.
        facts: of the rail; None where the node has none of that name.
    """

    wanted: Wanted
    machine: Machine
    facts: Facts | None

    @property
    def where(self) -> str:
        """``rail1 on vc2``."""
        return f"{self.wanted.rail} on {self.machine.node}"

    def name(self, quantity: str) -> str:
        """Return the name of a quantity of this node: ``vc2.rate``."""
        return f"{self.machine.node}.{quantity}"


def wanted_rails(spec: FabricSpec) -> tuple[Wanted, ...]:
    """Return what each rail of a declared fabric is to be; none where it has no link."""
    if spec.link is None:
        return ()
    return tuple(
        Wanted(
            rail=rail.interface,
            fabric=spec.name,
            physics=build_fabric(spec, (rail.interface,)),
            mtu=spec.mtu,
            shaped=spec.shaper is not None,
            expect=spec.expect or ExpectSpec(),
        )
        for rail in spec.rails
    )


def look_up(wanted: Wanted, machine: Machine) -> Sight:
    """Return what was seen of a rail on a node, a port with what ethtool says of its interface."""
    facts = machine.facts.get(wanted.part)
    if facts is not None and "netdev" in facts:
        interface = machine.facts.get(f"interface {facts['netdev']}", {})
        told = {name: value for name, value in interface.items() if name in _OF_INTERFACE}
        facts = {**told, **facts}
    return Sight(wanted=wanted, machine=machine, facts=facts)


def about(sight: Sight, quantity: str, judgement: Judgement, brief: str = "") -> Finding:
    """Return the finding about one thing of a rail on its node.

    Args:
        sight: the rail on the node.
        quantity: ``rate``, ``mtu`` ...
        judgement: the verdict on it.
        brief: a few words; the reason up to its first colon where empty.
    """
    return Finding(
        rail=sight.wanted.rail,
        nodes=(sight.machine.node,),
        quantity=quantity,
        judgement=judgement,
        brief=brief or judgement.reason.partition(": ")[0],
    )
