"""Judge a job's nodes by what one fabric is declared to be, and by each other.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricproof.core.findings import Finding, Where
from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key, first_few
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.remarks import network_notes
from fabricproof.nodes.inventory.words import meaning_of, name_of, shown
from fabricproof.nodes.preflight.card import card, card_notes, far_ranks
from fabricproof.nodes.preflight.rail import mtu, presence, rate
from fabricproof.nodes.preflight.sight import (
    COUNT,
    FLEET,
    Preflight,
    Sight,
    Wanted,
    as_stated,
    look_up,
    measured,
    not_known,
    note,
    wanted_rails,
)
from fabricproof.nodes.preflight.soft import device, shared_wires, soft_notes, soft_rate
from fabricproof.nodes.topology import Against, Hanging, astray, cabling_of
from fabricproof.physics import device_word, find_link
from fabricproof.site import FabricSpec

#: facts of a rail's card in which nodes must be alike unless the site states or allows otherwise
ALIKE = (
    "model",
    "type",
    "psid",
    "board",
    "firmware",
    "driver",
    "driver_version",
    "parent",
    "pcie",
    "max_payload_bytes",
    "fec",
    "mtu",
)

#: facts in which being unlike is said and is no verdict
TUNING = ("rings", "queues", "offloads", "pause", "coalescing", "numa_node", "transceiver")

#: the same of the node
NODE_TUNING = ("kernel", "governor", "tcp_congestion_control", "smt", "irqbalance")

#: what an interface's driver has no word for where nothing hindered the look
_NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Which nodes have which value of one fact; those of which nobody knows are left out."""

    fact: str
    nodes: dict[Value, tuple[str, ...]]

    @property
    def are_unlike(self) -> bool:
        """Whether there are two values."""
        return len(self.nodes) > 1

    @property
    def minority(self) -> tuple[str, ...]:
        """The nodes that have not the most common value; all of them where none is."""
        sizes = [len(each) for each in self.nodes.values()]
        start = 0 if sizes[:1] == sizes[1:2] else 1
        return tuple(node for each in list(self.nodes.values())[start:] for node in each)


def group(fact: str, values: dict[str, Value | None]) -> Groups:
    """Return which nodes have which value, the most common first."""
    known = {node: value for node, value in values.items() if value is not None}
    order = [value for value, _ in Counter(known.values()).most_common()]
    return Groups(
        fact=fact,
        nodes={
            value: tuple(node for node in known if known[node] == value)
            for value in dict.fromkeys(order)
        },
    )


def fleet(wanted: Wanted, sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yield one finding: the cards of a rail are alike on all nodes, or in what they are not."""
    if len(sights) < 2:
        return
    judged = [fact for fact in ALIKE if fact not in _stated(wanted) | set(wanted.expect.mixed)]
    unlike = [each for each in (_groups(fact, sights) for fact in judged) if each.are_unlike]
    odd = {node for each in unlike for node in each.minority}
    reason = f"{wanted.rail} is alike on {len(sights)} nodes"
    if unlike:
        reason = f"mixed fleet on {wanted.rail}: {'; '.join(_words(each) for each in unlike)}"
    nodes = sorted(odd) or [each.machine.node for each in sights]
    yield measured(
        Where(rail=wanted.rail, nodes=tuple(nodes)),
        FLEET,
        reason,
        value=len(sights) - len(odd),
        expected=len(sights),
        unit=COUNT,
        origin="nodes of one partition are alike",
        brief=_brief(wanted, unlike, sorted(odd)) if unlike else "",
    )


def _brief(wanted: Wanted, unlike: Sequence[Groups], odd: Sequence[str]) -> str:
    facts = ", ".join(name_of(each.fact) for each in unlike)
    return f"mixed fleet on {wanted.rail}: {facts} of {first_few(odd)} not as elsewhere"


def _stated(wanted: Wanted) -> set[str]:
    """Return the facts that are judged by what the site states."""
    expect = wanted.expect
    facts = {
        name
        for name in ("model", "psid", "firmware", "driver", "driver_version", "fec")
        if getattr(expect, name) is not None
    }
    facts |= {"type"} if "model" in facts else set()
    facts |= {"board"} if "psid" in facts else set()
    facts |= {"mtu"} if wanted.mtu is not None else set()
    facts |= {"pcie"} if wanted.slot is not None else set()
    return facts | (
        {"max_payload_bytes"} if wanted.physics.max_payload_bytes is not None else set()
    )


def _groups(fact: str, sights: Sequence[Sight]) -> Groups:
    values = {each.machine.node: (each.facts or {}).get(fact) for each in sights}
    if fact == "firmware" and any(value is not None for value in values.values()):
        # A driver that names none on one node and some on another is a difference, where both
        # were asked.
        values = {
            each.machine.node: _NONE
            if values[each.machine.node] is None and _was_asked(each.machine)
            else values[each.machine.node]
            for each in sights
        }
    return group(fact, values)


def _was_asked(machine: Machine) -> bool:
    """Tell whether nothing hindered ethtool: else what it did not say is not known."""
    return not any(
        each.is_of_all or (each.tool == "ethtool" and "-m" not in each.command)
        for each in machine.troubles
    )


def _words(groups: Groups) -> str:
    """Return ``firmware 20.41 on vc1, vc3 (2 of 4 nodes), 20.35 on vc2``, and what it may mean."""
    total = sum(len(each) for each in groups.nodes.values())
    named = [
        f"{shown(groups.fact, value)} on {first_few(nodes)} ({len(nodes)} of {total})"
        for value, nodes in groups.nodes.items()
    ]
    first, second = list(groups.nodes)[:2]
    sides = (first_few(groups.nodes[first]), first_few(groups.nodes[second]))
    meaning = meaning_of(groups.fact, first, second, sides)
    return f"{name_of(groups.fact)} {', '.join(named)}" + (f": {meaning}" if meaning else "")


def fleet_notes(wanted: Wanted, sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yield what is unlike between nodes and is no verdict; what is allowed to be is said too."""
    facts = (*TUNING, *(fact for fact in ALIKE if fact in wanted.expect.mixed))
    for fact in facts:
        if fact in wanted.expect.tuning:
            continue
        groups = _groups(fact, sights)
        if groups.are_unlike:
            text = f"{wanted.rail} is unlike between nodes: {_words(groups)}"
            yield Finding(where=Where(rail=wanted.rail), text=text)


def node_notes(machines: Sequence[Machine]) -> Iterator[Finding]:
    """Yield in what the nodes themselves are unlike, and whose IP networks overlap."""
    overlaps = by_key(
        (each.where.rail, each) for machine in machines for each in network_notes(machine)
    )
    for first, *others in overlaps.values():
        nodes = [each.where.node for each in others]
        more = f"; likewise on {first_few(nodes)}" if others else ""
        yield Finding(where=Where(node="" if others else first.where.node), text=first.text + more)
    for fact in NODE_TUNING:
        values = {
            each.node: next(
                (
                    part[fact]
                    for part in map(each.facts.get, ("node", "tuning"))
                    if part and fact in part
                ),
                None,
            )
            for each in machines
        }
        groups = group(fact, values)
        if groups.are_unlike:
            yield Finding(text=f"nodes are unlike: {_words(groups)}")


#: What follows from the fabric's declaration and only root may read (MaxPayload), or a virtual
#: machine hides: unread it is a note.
_MAY_BE_HIDDEN = ("pcie", "max_payload")


def preflight(
    spec: FabricSpec,
    machines: Mapping[str, Machine | None],
    *,
    reasons: Mapping[str, str] | None = None,
    bound_cpus: Mapping[str, Iterable[str]] | None = None,
) -> Preflight:
    """Judge the rails of a fabric on every node.

    ``machines``: node -> what was seen of it, None where nobody saw it, and ``reasons`` says why.
    """
    there = [each for each in machines.values() if each is not None]
    found = list(node_notes(there))
    rails = wanted_rails(spec)
    of_rails = [[look_up(wanted, each) for each in there] for wanted in rails]
    for wanted, sights in zip(rails, of_rails, strict=True):
        for node, machine in machines.items():
            if machine is None:
                found.append(_never_seen(wanted, node, (reasons or {}).get(node, "")))
            else:
                found += _of_node(look_up(wanted, machine), there)
        with_rail = [each for each in sights if each.facts is not None]
        found += fleet(wanted, with_rail)
        found += [told for each in with_rail for told in card_notes(each)]
        found += fleet_notes(wanted, with_rail)
        found += soft_notes(with_rail)
        for each in with_rail:
            found += far_ranks(each, (bound_cpus or {}).get(each.machine.node, ()))
    found += cabling([each for sights in of_rails for each in sights])
    for of_node in zip(*of_rails, strict=True):
        found += shared_wires(of_node)
    told = [_told(spec, each) for each in found]
    return Preflight(
        fabric=spec.name,
        nodes=tuple(machines),
        findings=tuple(each for each in told if each.verdict),
        notes=tuple(each for each in told if each.verdict is None),
        device=device_word(find_link(spec.link).name) if spec.link is not None else "",
    )


def _of_node(sight: Sight, machines: Sequence[Machine]) -> Iterator[Finding]:
    yield presence(sight, machines)
    if sight.facts is None:
        return
    kind = device(sight)
    if kind is not None:
        yield kind
    if kind is None:
        yield rate(sight)
    elif kind.verdict is Verdict.PASS:
        yield soft_rate(sight)
    size = mtu(sight)
    if size is not None:
        yield size
    yield from card(sight)


def _never_seen(wanted: Wanted, node: str, reason: str) -> Finding:
    why = f": {reason}" if reason else ""
    sight = Sight(wanted=wanted, machine=Machine(node=node), facts=None)
    words = f"{wanted.rail} on {node} was never seen: the look at {node} left nothing{why}"
    return not_known(sight, "state", words, Verdict.MISSING)


def _told(spec: FabricSpec, finding: Finding) -> Finding:
    """Return a note instead of what need not be told: for want of rights, or as the site says."""
    allowed = {*_MAY_BE_HIDDEN, *(spec.expect.not_told if spec.expect else ())}
    if finding.fact not in allowed or finding.verdict is not Verdict.UNJUDGED:
        return finding
    return Finding(where=finding.where, text=f"not judged: {finding.reason}")


def cabling(sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yield findings and notes on the switches that the nodes' rails hang on; LLDP says where.

    The rule is that of ``subnet check`` (``nodes.topology.cabling``).  The nodes of a job are
    alike, so that a rail in the wrong switch is a FAIL too; where few nodes say so it is a note.
    Where the site declares the switches of all rails, its word counts in place of the majority.
    """
    where = {
        (each.machine.node, each.wanted.rail): (each, str(each.facts["switch_id"]))
        for each in sights
        if each.facts is not None and each.facts.get("switch_id")
    }
    names = {switch: _name(sight, switch) for sight, switch in where.values()}
    hangings = [
        Hanging(node=node, rail=rail, switch=switch) for (node, rail), (_, switch) in where.items()
    ]
    declared = {each.wanted.rail: each.wanted.switches for each, _ in where.values()}
    if declared and all(declared.values()):
        # A switch that tells no name may be the declared one.
        plain = {
            switch: str(sight.facts["switch"])
            for sight, switch in where.values()
            if sight.facts is not None and sight.facts.get("switch")
        }
        stray = astray([each for each in hangings if each.switch in plain], declared, plain)
        for each in stray:
            sight = where[each.hanging.node, each.hanging.rail][0]
            reason = (
                f"{sight.words} is in the wrong switch: it hangs on {names[each.hanging.switch]}, "
                f"which the site declares for {' and '.join(each.rails) or 'no rail'} (LLDP)"
            )
            yield as_stated(sight, "cabling", reason, fits=False, origin="the site's rails")
        return
    found = cabling_of(hangings)
    few = f"; {len(found.fitting)} nodes are cabled alike, too few to judge"
    for against in found.against:
        for wrong, reason in _sentences(against, names):
            sight = where[against.node, wrong.rail][0]
            if found.is_sure:
                yield as_stated(sight, "cabling", reason, fits=False, origin="most nodes' rails")
            elif len(found.against) == 1:
                yield note(sight, reason + few)


def _name(sight: Sight, switch: str) -> str:
    """Return what people call a switch; several may have the same name, none the same id."""
    assert sight.facts is not None
    name = sight.facts.get("switch")
    return f"{name} ({switch})" if name else switch


def _sentences(each: Against, names: dict[str, str]) -> Iterator[tuple[Hanging, str]]:
    for wrong in each.wrong:
        what = "crossed" if each.is_crossed else "in the wrong switch"
        others = " and ".join(each.others[wrong.switch])
        sentence = (
            f"{wrong.rail} on {each.node} is {what}: it hangs on {names[wrong.switch]}, where "
            f"other nodes have {others} (LLDP)"
        )
        yield wrong, sentence
