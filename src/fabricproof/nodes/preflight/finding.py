"""What a rail is to be, how it was seen on a node, and the finding about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fabricproof.core import measure
from fabricproof.core.measure import FindingKind, Verdict, worst
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.physics import Fabric, Link, Slot
from fabricproof.site import ExpectSpec, FabricSpec, build_fabric
from fabricproof.verdict.value import Judgement, no_number

#: whether the cards of a rail are alike
FLEET = "fleet"

#: quantities that are about several cards, even where one node has them: they blame no card
_OF_SEVERAL = frozenset({FLEET, "wire"})


@dataclass(frozen=True, kw_only=True)
class RailFinding:
    """One thing that was expected of a rail, and what was seen.

    Attributes:
        nodes: the nodes it speaks of; one, or the minority of a mixed fleet.
        quantity: ``state``, ``rate``, ``mtu``, ``pcie``, ``firmware`` ...
        judgement: value, reference and verdict; its reason is the whole sentence.
        brief: the same in a few words, for the reports of benchmarks that use the rail.
    """

    rail: str
    nodes: tuple[str, ...]
    quantity: str
    judgement: Judgement
    brief: str

    @property
    def verdict(self) -> Verdict:
        """Its verdict."""
        return self.judgement.verdict

    def warning(self) -> measure.Finding:
        """Return what a benchmark over the rail says of it.

        It names a node where it is about that node's card alone.
        """
        one = self.nodes if self.quantity not in _OF_SEVERAL else ()
        return measure.Finding(
            text=f"preflight: {self.brief}",
            kind=FindingKind.PREFLIGHT,
            rail=self.rail,
            node=one[0] if len(one) == 1 else "",
            fact=self.quantity,
        )


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something worth knowing that is no verdict.

    Attributes:
        is_far: it says that ranks are far from the card, which matters to their benchmark.
    """

    rail: str
    node: str
    sentence: str
    is_far: bool = False


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """What the nodes of a job are, judged against what one fabric is declared to be.

    Attributes:
        nodes: all nodes that were due.
        device: ``Soft-RoCE`` where the site declares software for the HCA; empty for all else.
    """

    fabric: str
    nodes: tuple[str, ...]
    findings: tuple[RailFinding, ...] = ()
    notes: tuple[Note, ...] = ()
    device: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings; UNJUDGED where there are none."""
        return worst([each.verdict for each in self.findings])

    def of_rail(self, rail: str) -> tuple[RailFinding, ...]:
        """Return the findings of one rail."""
        return tuple(each for each in self.findings if each.rail == rail)

    def far_ranks(self, rails: Iterable[str], nodes: Iterable[str]) -> tuple[str, ...]:
        """Return what a benchmark must say of ranks that are far from the cards they use."""
        chosen, there = set(rails), set(nodes)
        return tuple(
            each.sentence
            for each in self.notes
            if each.is_far and each.rail in chosen and each.node in there
        )

    def warnings(self, rails: Iterable[str], nodes: Iterable[str]) -> tuple[measure.Finding, ...]:
        """Return what a benchmark over ``rails`` between ``nodes`` must say of its links.

        Only what FAILED: evidence that is missing says nothing about the link.  What is wrong with
        a link of another node is said where it makes the fleet mixed, not otherwise.

        ``nodes`` are those that ran its ranks; none where nobody knows, then all count.
        """
        chosen, there = set(rails), set(nodes) or set(self.nodes)
        return tuple(
            dict.fromkeys(
                each.warning()
                for each in self.findings
                if each.verdict is Verdict.FAIL and each.rail in chosen and there & set(each.nodes)
            )
        )


#: of counts, and of facts that are as stated (1) or not (0)
PLAIN = "1"


def seen(
    name: str,
    *,
    value: float,
    expected: float,
    unit: str,
    reason: str,
    origin: str,
    tolerance: float = 0.0,
) -> Judgement:
    """Return PASS where the value is the expected one, FAIL where it is less or more.

    ``unit`` is ``1`` for counts, and for facts that are as stated (1) or not (0); ``tolerance`` is
    a fraction on either side, 0 to 1.
    """
    lower, upper = expected * (1 - tolerance), expected * (1 + tolerance)
    return Judgement(
        name=name,
        value=float(value),
        unit=unit,
        message_size=None,
        verdict=Verdict.PASS if lower <= value <= upper else Verdict.FAIL,
        reason=reason,
        reference=float(expected),
        lower=lower,
        upper=upper,
        origin=origin,
    )


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
    """

    rail: str
    physics: Fabric
    mtu: int | None
    shaped: bool
    expect: ExpectSpec
    switches: tuple[str, ...] = ()

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
    """One rail on one node, as it was seen."""

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
            physics=build_fabric(spec, (rail.interface,)),
            mtu=spec.mtu,
            shaped=spec.shaper is not None,
            expect=spec.expect or ExpectSpec(),
            switches=tuple(rail.switches),
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


def about(sight: Sight, quantity: str, judgement: Judgement, brief: str = "") -> RailFinding:
    """Return the finding about one thing of a rail on its node.

    ``brief`` is a few words; the reason up to its first colon where empty.
    """
    return RailFinding(
        rail=sight.wanted.rail,
        nodes=(sight.machine.node,),
        quantity=quantity,
        judgement=judgement,
        brief=brief or judgement.reason.partition(": ")[0],
    )


def not_known(sight: Sight, quantity: str, reason: str) -> RailFinding:
    """Return UNJUDGED for what could not be read."""
    return about(sight, quantity, no_number(sight.name(quantity), Verdict.UNJUDGED, reason))


def as_stated(
    sight: Sight, quantity: str, reason: str, *, fits: bool, origin: str, brief: str = ""
) -> RailFinding:
    """Return PASS where a fact is as stated, else FAIL."""
    judgement = seen(
        sight.name(quantity),
        value=float(fits),
        expected=1.0,
        unit=PLAIN,
        reason=reason,
        origin=origin,
    )
    return about(sight, quantity, judgement, brief)
