"""Judge what was seen of a job's nodes by what one fabric is declared to be.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fabricproof.core.measure import Verdict
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.preflight.card import card, card_notes, far_ranks
from fabricproof.nodes.preflight.expect import Sight, Wanted, about, look_up, wanted_rails
from fabricproof.nodes.preflight.finding import Finding, Note, Preflight, unseen
from fabricproof.nodes.preflight.fleet import fleet, fleet_notes, node_notes
from fabricproof.nodes.preflight.rail import mtu, presence, rate
from fabricproof.nodes.preflight.soft import device, shared_wires, soft_notes, soft_rate
from fabricproof.physics import device_word, find_link
from fabricproof.site.schema import FabricSpec

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

    Args:
        spec: the fabric as the site declares it.
        machines: node -> what was seen of it, None where nobody saw it.
        reasons: node -> why nobody did.
        bound_cpus: node -> CPUs its ranks are bound to, as the kernel lists them.
    """
    there = [each for each in machines.values() if each is not None]
    findings: list[Finding] = []
    notes: list[Note] = list(node_notes(there))
    rails = wanted_rails(spec)
    for wanted in rails:
        sights = [look_up(wanted, each) for each in there]
        for node, machine in machines.items():
            if machine is None:
                findings.append(_never_seen(wanted, node, (reasons or {}).get(node, "")))
            else:
                findings += _of_node(look_up(wanted, machine), there)
        with_rail = [each for each in sights if each.facts is not None]
        findings += fleet(wanted, with_rail)
        notes += [note for each in with_rail for note in card_notes(each)]
        notes += fleet_notes(wanted, with_rail)
        notes += soft_notes(with_rail)
        for each in with_rail:
            notes += far_ranks(each, (bound_cpus or {}).get(each.machine.node, ()))
    for machine in there:
        findings += shared_wires([look_up(wanted, machine) for wanted in rails])
    told = [_told(spec, each) for each in findings]
    return Preflight(
        fabric=spec.name,
        nodes=tuple(machines),
        findings=tuple(each for each in told if isinstance(each, Finding)),
        notes=(*notes, *(each for each in told if isinstance(each, Note))),
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
    return about(sight, "state", unseen(sight.name("state"), words, Verdict.MISSING))


def _told(spec: FabricSpec, finding: Finding) -> Finding | Note:
    """Return a note instead of what need not be told: for want of rights, or as the site says."""
    allowed = {*_MAY_BE_HIDDEN, *(spec.expect.not_told if spec.expect else ())}
    if finding.quantity not in allowed or finding.verdict is not Verdict.UNJUDGED:
        return finding
    return Note(
        rail=finding.rail, node=finding.nodes[0], sentence=f"not judged: {finding.judgement.reason}"
    )
