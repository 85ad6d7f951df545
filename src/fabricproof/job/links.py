"""What the nodes of a job are made of, held against each leg, and as rows of their own.

A number over a link that is not what the site declares is still what was measured: a PASS stays
one.  But every leg says so, and what is red says it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.core.findings import Finding, as_notes, texts_of
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.records import text_of
from fabricproof.job.evidence.leg_folder import gather
from fabricproof.job.leg import row_leg
from fabricproof.job.outcome import Outcome
from fabricproof.nodes.inventory.facts import Machine, ReadTrouble
from fabricproof.nodes.inventory.read import read_machine
from fabricproof.nodes.preflight import FLEET, Preflight, preflight
from fabricproof.site import FabricSpec
from fabricproof.traffic import CounterSample, read_rises
from fabricproof.verdict.objections import Objection, ObjectionKind
from fabricproof.verdict.value import Judgement, Report, missing

#: suite and program under which the judgement of the links stands in records and reports
SUITE = "preflight"
PROGRAM = "links"


@dataclass(frozen=True, kw_only=True)
class NodeLooks:
    """What the nodes of a job left of themselves before its first leg, by node."""

    machines: Mapping[str, Machine | None]  # None if nothing was seen of it
    reasons: Mapping[str, str] = field(default_factory=dict)  # why not
    cpus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # that its ranks had
    samples: tuple[CounterSample, ...] = ()


def read_looks(folder: Path, outcomes: Sequence[Outcome], due: Iterable[str] = ()) -> NodeLooks:
    """Return what the nodes left in ``folder`` (``NODE.txt``, by ``inventory.sh``).

    ``due`` are names of nodes that must have been seen, beside those of all ranks.
    """
    ranks = [rank for each in outcomes for rank in each.ranks]
    left = {path.stem: path for path in folder.glob("*.txt")}
    machines: dict[str, Machine | None] = {}
    reasons: dict[str, str] = {}
    for node in sorted({*left, *due, *(rank.node for rank in ranks)}):
        machines[node] = None
        if node not in left:
            continue
        try:
            machine = read_machine(text_of(left[node], errors="replace"), node)
        except OSError as error:
            trouble = ReadTrouble(text=f"its file cannot be read: {error.strerror}")
            machine = Machine(node=node, troubles=(trouble,))
        if machine.facts:
            machines[node] = machine
        else:
            reasons[node] = "; ".join(machine.unknown)
    return NodeLooks(
        machines=machines,
        reasons=reasons,
        cpus={
            node: tuple(sorted({rank.cpus for rank in ranks if rank.node == node}))
            for node in machines
        },
        samples=gather(ranks).samples,
    )


def judge_looks(spec: FabricSpec, looks: NodeLooks) -> Preflight:
    """Judge what was seen of a job's nodes by what its fabric is declared to be."""
    return preflight(spec, looks.machines, reasons=looks.reasons, bound_cpus=looks.cpus)


def against_links(
    outcome: Outcome, result: Preflight
) -> tuple[tuple[Objection, ...], tuple[Finding, ...]]:
    """Return what is wrong with the links that a leg used: an objection, and all findings."""
    nodes = {rank.node for rank in outcome.ranks} | {*outcome.nodes}
    warnings = result.warnings(outcome.leg.rails, nodes)
    objections = []
    if warnings:
        more = f" (and {len(warnings) - 1} more)" if len(warnings) > 1 else ""
        reason = f"{texts_of(warnings)[0]}{more}"
        objections.append(Objection(kind=ObjectionKind.LINK_NOT_AS_DECLARED, reason=reason))
    if slow := [each.text for each in warnings if each.fact == "rate"]:
        # What preflight saw red is red: load beside it excuses no bandwidth.
        excused = (q.name for q in outcome.report.quantities if q.disturbance and q.unit == "MB/s")
        kind, names = ObjectionKind.SLOW_LINK, frozenset(excused)
        objections.append(Objection(kind=kind, reason=slow[0], quantities=names))
    return tuple(objections), (*warnings, *result.far_ranks(outcome.leg.rails, nodes))


def rows_of_links(
    rails: Iterable[str], result: Preflight, looks: NodeLooks, num_nodes: int
) -> tuple[Outcome, ...]:
    """Return an outcome for each rail, for the check that judges nothing but the links."""
    return tuple(_row(rail, result, looks, num_nodes) for rail in rails)


def _row(rail: str, result: Preflight, looks: NodeLooks, num_nodes: int) -> Outcome:
    findings = result.of_rail(rail)
    # Of those that pass, a summary names one.
    first = next(iter(sorted(findings, key=lambda each: each.fact != FLEET)), None)
    quantities = [
        Judgement(
            **vars(each.quantity) | {"named": each.verdict is not Verdict.PASS or each is first}
        )
        for each in findings
    ]
    if len(looks.machines) < num_nodes:
        there = ", ".join(looks.machines) or "none"
        reason = f"{num_nodes} nodes were due, {len(looks.machines)} were seen: {there}"
        quantities += missing(["nodes"], reason).quantities
    notes = [each for each in result.notes if each.where.rail in {rail, ""}]
    notes += as_notes(read_rises(looks.samples, [rail]).notes)
    leg = row_leg(rail, SUITE, PROGRAM, (rail,))
    report = Report(
        verdict=worst([each.verdict for each in quantities]),
        quantities=tuple(quantities),
        findings=tuple(dict.fromkeys(notes)),
    )
    return Outcome(leg=leg, attempts=(), report=report, nodes=tuple(looks.machines))
