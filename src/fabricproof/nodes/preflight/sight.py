"""What a rail is to be, how it was seen on a node, and findings about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fabricproof.core.findings import Finding, FindingKind, Where
from fabricproof.core.measure import Quantity, Verdict, worst
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.physics import Fabric, Link, Slot
from fabricproof.site import ExpectSpec, FabricSpec, RailSpec, build_fabric
from fabricproof.verdict.value import no_number

#: whether the cards of a rail are alike
FLEET = "fleet"

#: ranks are far from the card, which matters to their benchmark
FAR = "far"


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """What the nodes of a job are, judged against what one fabric is declared to be.

    Attributes:
        nodes: all nodes that were due.
        findings: what was judged; the reason of each one's quantity is the whole sentence.  Where
            it is about one card, its node is named; else ``where.nodes`` are the nodes concerned.
        notes: what is worth knowing and is no verdict; of far ranks the fact is :data:`FAR`.
        device: ``Soft-RoCE`` where the site declares software for the HCA; empty for all else.
    """

    fabric: str
    nodes: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    device: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings; UNJUDGED where there are none."""
        return worst([each.verdict for each in self.findings if each.verdict])

    def of_rail(self, rail: str) -> tuple[Finding, ...]:
        """Return the findings of one rail."""
        return tuple(each for each in self.findings if each.where.rail == rail)

    def far_ranks(self, rails: Iterable[str], nodes: Iterable[str]) -> tuple[Finding, ...]:
        """Return what a benchmark must say of ranks that are far from the cards they use."""
        chosen, there = set(rails), set(nodes)
        return tuple(
            each
            for each in self.notes
            if each.fact == FAR and each.where.rail in chosen and each.where.node in there
        )

    def warnings(self, rails: Iterable[str], nodes: Iterable[str]) -> tuple[Finding, ...]:
        """Return what a benchmark over ``rails`` between ``nodes`` must say of its links.

        Only what FAILED: evidence that is missing says nothing about the link.  What is wrong with
        a link of another node is said where it makes the fleet mixed, not otherwise.  The numbers
        stay with preflight.

        ``nodes`` are those that ran its ranks; empty if unknown, then all count.
        """
        chosen, there = set(rails), set(nodes) or set(self.nodes)
        return tuple(
            dict.fromkeys(
                replace(each, quantity=None)
                for each in self.findings
                if each.verdict is Verdict.FAIL
                and each.where.rail in chosen
                and not there.isdisjoint(each.where.hosts)
            )
        )


#: unit of counts, and of facts that are as stated (1) or not (0)
COUNT = "1"


Facts = Mapping[str, Value]

#: what only the interface of a port says of it
_OF_INTERFACE = frozenset(
    {
        *("fec", "rings", "queues", "offloads", "pause", "coalescing", "transceiver", "connector"),
        *("switch", "switch_id"),
    }
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What one rail is to be on every node.  None: the site does not say.

    Attributes:
        physics: the path over this rail alone, from which ceilings follow.
        shaped: the site declares a shaper, so that the link's own rate is none.
        expect: what else is stated of the cards.
        switches: patterns of the names of those that it hangs on; none where nobody says.
        names: what the nodes call it; None: as ``rail``.
    """

    rail: str
    physics: Fabric
    mtu: int | None
    shaped: bool
    expect: ExpectSpec
    switches: tuple[str, ...] = ()
    names: RailSpec | None = None

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

    def part_of(self, machine: Machine) -> str:
        """Return what the inventory of a node calls it."""
        kind = "port " if self.is_port else "interface "
        parts = {each.removeprefix(kind): each for each in machine.facts if each.startswith(kind)}
        addresses = {name: str(machine.facts[each].get("pci", "")) for name, each in parts.items()}
        return kind + (self.names.name_on(addresses) if self.names else self.rail)


@dataclass(frozen=True, kw_only=True)
class Sight:
    """One rail on one node, as it was seen."""

    wanted: Wanted
    machine: Machine
    facts: Facts | None

    @property
    def place(self) -> Where:
        """The rail and its node."""
        return Where(node=self.machine.node, rail=self.wanted.rail)

    @property
    def part(self) -> str:
        """What the node's inventory calls the rail."""
        return self.wanted.part_of(self.machine)

    @property
    def words(self) -> str:
        """``rail1 on vc2``."""
        return f"{self.wanted.rail} on {self.machine.node}"


def wanted_rails(spec: FabricSpec) -> tuple[Wanted, ...]:
    """Return what each rail of a declared fabric is to be; none where it has no link."""
    if spec.link is None:
        return ()
    return tuple(
        Wanted(
            rail=rail.interface,
            physics=build_fabric(spec, (rail.interface,)),
            mtu=spec.mtu,
            shaped=spec.shaper is not None,
            expect=spec.expect or ExpectSpec(),
            switches=tuple(rail.switches),
            names=rail,
        )
        for rail in spec.rails
    )


def look_up(wanted: Wanted, machine: Machine) -> Sight:
    """Return what was seen of a rail on a node, a port with what ethtool says of its interface."""
    facts = machine.facts.get(wanted.part_of(machine))
    if facts is not None and "netdev" in facts:
        interface = machine.facts.get(f"interface {facts['netdev']}", {})
        told = {name: value for name, value in interface.items() if name in _OF_INTERFACE}
        facts = {**told, **facts}
    return Sight(wanted=wanted, machine=machine, facts=facts)


def finding_of(where: Where, fact: str, quantity: Quantity, brief: str = "") -> Finding:
    """Return the finding about one thing of a rail.

    ``brief`` is a few words for the reports of benchmarks that use the rail; the reason up to its
    first colon where empty.
    """
    return Finding(
        kind=FindingKind.PREFLIGHT,
        verdict=quantity.verdict,
        fact=fact,
        where=where,
        quantity=quantity,
        text=brief or quantity.reason.partition(": ")[0],
    )


def measured(
    where: Where,
    fact: str,
    reason: str,
    *,
    value: float,
    expected: float,
    unit: str,
    origin: str,
    tolerance: float = 0.0,
    brief: str = "",
    is_other: bool = False,
) -> Finding:
    """Return PASS where the value is the expected one, FAIL where it is less or more.

    ``tolerance`` is a fraction on either side, 0 to 1; ``is_other``: FAIL whatever the value is.
    """
    lower, upper = expected * (1 - tolerance), expected * (1 + tolerance)
    fits = lower <= value <= upper and not is_other
    quantity = Quantity(
        name=f"{where.node}.{fact}" if where.node else fact,
        value=float(value),
        unit=unit,
        message_size=None,
        verdict=Verdict.PASS if fits else Verdict.FAIL,
        reason=reason,
        reference=float(expected),
        lower=lower,
        upper=upper,
        origin=origin,
    )
    return finding_of(where, fact, quantity, brief)


def not_known(sight: Sight, fact: str, reason: str, verdict: Verdict = Verdict.UNJUDGED) -> Finding:
    """Return what could not be read, UNJUDGED where no other verdict is given."""
    quantity = no_number(f"{sight.machine.node}.{fact}", verdict, reason)
    return finding_of(sight.place, fact, quantity)


def as_stated(
    sight: Sight, fact: str, reason: str, *, fits: bool, origin: str, brief: str = ""
) -> Finding:
    """Return PASS where a fact is as stated, else FAIL."""
    return measured(
        sight.place, fact, reason, value=fits, expected=1, unit=COUNT, origin=origin, brief=brief
    )


def note(sight: Sight, text: str, fact: str = "") -> Finding:
    """Return what is worth knowing of a rail on its node."""
    return Finding(text=text, fact=fact, where=sight.place)
