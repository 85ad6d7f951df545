"""What a rail is to be, how it was seen on a node, and findings about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fabricproof.core.findings import Finding, FindingKind, Where
from fabricproof.core.measure import Quantity, Verdict, worst
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.physics import SOFT_ROCE, Fabric, Link
from fabricproof.site import ExpectSpec, FabricSpec, RailSpec, build_fabric
from fabricproof.verdict.value import no_number

#: facts of findings: whether the cards of a rail are alike; ranks are far from the card
FLEET, FAR = "fleet", "far"

Facts = Mapping[str, Value]


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """What the nodes of a job are, judged against what one fabric is declared to be.

    Attributes:
        nodes: all nodes that were due.
        findings: what was judged; the reason of each one's quantity is the whole sentence.  If it
            is about one card, its node is named; else ``where.nodes`` are the nodes concerned.
        notes: what is worth knowing and is no verdict; of far ranks the fact is :data:`FAR`.
        device: ``Soft-RoCE`` if the site declares software for the HCA; empty for all else.
    """

    fabric: str
    nodes: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    device: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings; UNJUDGED if there are none."""
        return worst([each.verdict for each in self.findings if each.verdict])

    def of_rail(self, rail: str) -> tuple[Finding, ...]:
        """Return the findings of one rail."""
        return tuple(each for each in self.findings if each.where.rail == rail)

    def far_ranks(self, rails: Iterable[str], nodes: Iterable[str]) -> tuple[Finding, ...]:
        """Return what a benchmark must say of ranks that are far from the cards they use."""
        chosen, there = set(rails), set(nodes)
        far = (each for each in self.notes if each.fact == FAR)
        return tuple(e for e in far if e.where.rail in chosen and e.where.node in there)

    def warnings(self, rails: Iterable[str], nodes: Iterable[str]) -> tuple[Finding, ...]:
        """Return what a benchmark over ``rails`` between ``nodes`` must say of its links.

        Only what FAILED: evidence that is missing says nothing about the link.  What is wrong with
        a link of another node is said if it makes the fleet mixed, not otherwise.  The numbers stay
        with preflight.  ``nodes`` are those that ran its ranks; all count if empty.
        """
        chosen, there = set(rails), set(nodes) or set(self.nodes)
        red = (each for each in self.findings if each.verdict is Verdict.FAIL)
        mine = (e for e in red if e.where.rail in chosen and not there.isdisjoint(e.where.hosts))
        return tuple(dict.fromkeys(replace(each, quantity=None) for each in mine))


#: what only the interface of a port says of it
_OF_INTERFACE = (
    *("fec", "rings", "queues", "offloads", "pause", "coalescing", "transceiver", "connector"),
    *("switch", "switch_id"),
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What one rail is to be on every node.

    Attributes:
        rail: as the site calls it.
        spec: its line in fabric.toml.
        physics: the path over this rail alone, from which ceilings follow.
        mtu: in bytes, None if the site does not say.
        shaped: the site declares a shaper, so that the link's own rate is none.
        expect: what else is stated of the cards.
    """

    rail: str
    spec: RailSpec
    physics: Fabric
    mtu: int | None
    shaped: bool
    expect: ExpectSpec

    @property
    def link(self) -> Link:
        """The declared link."""
        return self.physics.link

    @property
    def is_port(self) -> bool:
        """Whether the rail is a port of an HCA rather than a network interface."""
        return ":" in self.rail


@dataclass(frozen=True, kw_only=True)
class Sight:
    """One rail on one node, as it was seen: ``part`` of the inventory, with its facts."""

    wanted: Wanted
    machine: Machine
    part: str
    facts: Facts | None

    @property
    def words(self) -> str:
        """``rail1 on vc2``."""
        return f"{self.wanted.rail} on {self.machine.node}"

    @property
    def is_soft(self) -> bool:
        """Whether a port is a software device."""
        return bool(self.facts) and (self.facts or {}).get("kind") == SOFT_ROCE

    @property
    def parent(self) -> str:
        """The interface below a software device; empty if unknown."""
        return str((self.facts or {}).get("parent", ""))

    @property
    def below(self) -> Facts:
        """What was seen of that interface."""
        return self.machine.facts.get(f"interface {self.parent}", {})


def wanted_rails(spec: FabricSpec) -> tuple[Wanted, ...]:
    """Return what each rail of a declared fabric is to be; none if it has no link."""
    if spec.link is None:
        return ()
    return tuple(
        Wanted(
            rail=rail.interface,
            spec=rail,
            physics=build_fabric(spec, (rail.interface,)),
            mtu=spec.mtu,
            shaped=spec.shaper is not None,
            expect=spec.expect or ExpectSpec(),
        )
        for rail in spec.rails
    )


def look_up(wanted: Wanted, machine: Machine) -> Sight:
    """Return what was seen of a rail on a node, a port with what ethtool says of its interface."""
    kind = "port " if wanted.is_port else "interface "
    there = {each.removeprefix(kind): each for each in machine.facts if each.startswith(kind)}
    addresses = {name: str(machine.facts[each].get("pci", "")) for name, each in there.items()}
    part = kind + wanted.spec.name_on(addresses)
    facts = machine.facts.get(part)
    if facts is not None and "netdev" in facts:
        interface = machine.facts.get(f"interface {facts['netdev']}", {})
        facts = {**{key: interface[key] for key in _OF_INTERFACE if key in interface}, **facts}
    return Sight(wanted=wanted, machine=machine, part=part, facts=facts)


def place(sight: Sight) -> Where:
    """Return the rail and its node."""
    return Where(node=sight.machine.node, rail=sight.wanted.rail)


def _finding(where: Where, fact: str, quantity: Quantity, brief: str = "") -> Finding:
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
    value: float,
    expected: float,
    unit: str,
    origin: str,
    *,
    least: float | None = None,
    most: float | None = None,
    brief: str = "",
    is_other: bool = False,
) -> Finding:
    """Return PASS if the value is the expected one, or from ``least`` to ``most``; else FAIL.

    ``brief`` is a few words for the reports of benchmarks that use the rail, the reason up to its
    first colon if empty; ``is_other``: FAIL whatever the value is.
    """
    lower = expected if least is None else least
    upper = expected if most is None else most
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
    return _finding(where, fact, quantity, brief)


def not_known(sight: Sight, fact: str, reason: str, verdict: Verdict = Verdict.UNJUDGED) -> Finding:
    """Return what could not be read."""
    reason = f"{sight.words}{reason if reason.startswith(' ') else f': {reason}'}"
    quantity = no_number(f"{sight.machine.node}.{fact}", verdict, reason)
    return _finding(place(sight), fact, quantity)


def as_stated(
    sight: Sight, fact: str, reason: str, *, fits: bool, origin: str, brief: str = ""
) -> Finding:
    """Return PASS if a fact is as stated, else FAIL."""
    return measured(place(sight), fact, reason, fits, 1, "1", origin, brief=brief)


def note(sight: Sight, text: str, fact: str = "") -> Finding:
    """Return what is worth knowing of a rail on its node."""
    return Finding(text=text, fact=fact, where=place(sight))
