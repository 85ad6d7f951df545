"""Judge a job's nodes by what one fabric is declared to be, and by each other; one node at once."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence

from fabricproof.core.findings import Finding
from fabricproof.core.group import run_group
from fabricproof.core.measure import Verdict
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.read import LOOK, read_machine
from fabricproof.nodes.preflight import fleet
from fabricproof.nodes.preflight.card import card_notes, far_ranks, judge_card
from fabricproof.nodes.preflight.rail import judge_rail
from fabricproof.nodes.preflight.sight import Preflight, look_up, not_known, wanted_rails
from fabricproof.physics import device_word, find_link
from fabricproof.site import FabricSpec

#: What follows from the fabric's declaration and only root may read (MaxPayload), or a virtual
#: machine hides: unread it is a note.
_MAY_BE_HIDDEN = ("pcie", "max_payload")

#: A health check may take so long; Slurm's default for a prolog is 5 minutes, NHC's 30 s.  What was
#: not seen by then is unknown, which is no PASS where the site states it.
SECONDS = 5.0


def preflight(
    spec: FabricSpec,
    machines: Mapping[str, Machine | None],
    *,
    reasons: Mapping[str, str] | None = None,
    bound_cpus: Mapping[str, Iterable[str]] | None = None,
) -> Preflight:
    """Judge the rails of a fabric on every node.

    ``machines``: node -> what was seen of it, None if nobody saw it, and ``reasons`` says why.
    """
    there = [each for each in machines.values() if each is not None]
    found = list(fleet.node_notes(there))
    rails = wanted_rails(spec)
    of_rails = [[look_up(wanted, each) for each in there] for wanted in rails]
    for wanted, sights in zip(rails, of_rails, strict=True):
        by_node = {each.machine.node: each for each in sights}
        for node in machines:
            if node not in by_node:
                why = (reasons or {}).get(node, "")
                words = f" was never seen: the look at {node} left nothing"
                nothing = look_up(wanted, Machine(node=node))
                reason = words + (f": {why}" if why else "")
                found.append(not_known(nothing, "state", reason, Verdict.MISSING))
                continue
            found += judge_rail(by_node[node], there)
            if by_node[node].facts is not None:
                found += judge_card(by_node[node])
        with_rail = [each for each in sights if each.facts is not None]
        found += fleet.judge_fleet(with_rail)
        found += fleet.judge_addresses(with_rail)
        found += fleet.judge_sizes(with_rail)
        found += fleet.fleet_notes(with_rail)
        for each in with_rail:
            found += card_notes(each)
            found += far_ranks(each, (bound_cpus or {}).get(each.machine.node, ()))
    for wanted in rails[:1]:
        found += fleet.judge_room(there, wanted.rail)
    found += fleet.exchanged_addresses(of_rails)
    found += fleet.cabling([each for sights in of_rails for each in sights])
    for of_node in zip(*of_rails, strict=True):
        found += fleet.shared_wires(of_node)
    allowed = {*_MAY_BE_HIDDEN, *(spec.expect.not_told if spec.expect else ())}
    told = [_as_note(each) if each.fact in allowed else each for each in found]
    return Preflight(
        fabric=spec.name,
        nodes=tuple(machines),
        findings=tuple(each for each in told if each.verdict),
        notes=tuple(each for each in told if each.verdict is None),
        device=device_word(find_link(spec.link).name) if spec.link is not None else "",
    )


def _as_note(finding: Finding) -> Finding:
    if finding.verdict is not Verdict.UNJUDGED:
        return finding
    return Finding(where=finding.where, text=f"not judged: {finding.reason}")


def look_here(fabrics: Sequence[FabricSpec], sysfs: str = "/sys") -> Machine:
    """Return what this node is made of; the rails of ``fabrics`` are kept whatever they are."""
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    rails = [rail.interface for each in fabrics for rail in each.rails]
    command = [sys.executable, "-IS", str(LOOK), "--seconds", f"{SECONDS:g}", "--sys", sysfs]
    _, text, _ = run_group(command, SECONDS + 1, apart=True)
    return read_machine(text, node, rails)


def fabrics_of(machine: Machine, fabrics: Sequence[FabricSpec]) -> list[FabricSpec]:
    """Return the fabrics of which the node has a rail; all of them if it has none of any.

    A node of a partition without this fabric lacks nothing; one that lost all its cards does.
    """
    linked = [each for each in fabrics if each.link is not None]
    found = [
        spec
        for spec in linked
        if any(look_up(wanted, machine).facts is not None for wanted in wanted_rails(spec))
    ]
    return found or linked
