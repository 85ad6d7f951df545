"""What a job's nodes are, judged beside what its legs measured.

A number over a link that is not what the site declares is still what was measured: a PASS stays
one.  But every leg says so, and what is red says it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabricproof.core.measure import Verdict, as_notes, texts_of, worst
from fabricproof.job.evidence.ranks import gather
from fabricproof.job.leg import Relation
from fabricproof.job.outcome import Outcome, mended
from fabricproof.nodes.inventory.facts import Machine, ReadTrouble
from fabricproof.nodes.inventory.read import read_machine
from fabricproof.nodes.preflight.finding import Preflight, RailFinding
from fabricproof.nodes.preflight.judge import preflight
from fabricproof.site.schema import FabricSpec
from fabricproof.traffic.counters import CounterSample, read_rises
from fabricproof.verdict.value import Judgement, Report, missing

#: suite and program under which the judgement of the links stands in records and reports
SUITE = "preflight"
PROGRAM = "links"


@dataclass(frozen=True, kw_only=True)
class Looks:
    """What the nodes of a job left of themselves before its first leg.

    Attributes:
        machines: node -> what was seen of it, None where nothing was.
        reasons: node -> why nothing was.
        cpus: node -> the CPUs that its ranks were bound to.
        samples: counters around the legs.
    """

    machines: Mapping[str, Machine | None]
    reasons: Mapping[str, str] = field(default_factory=dict)
    cpus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    samples: tuple[CounterSample, ...] = ()


def read_looks(folder: Path, outcomes: Sequence[Outcome], due: Iterable[str] = ()) -> Looks:
    """Return what the nodes left in ``folder``.

    Args:
        folder: where ``inventory.sh`` left ``NODE.txt``.
        outcomes: of the job's legs, whose ranks say which nodes took part.
        due: names of nodes that must have been seen.
    """
    ranks = [rank for each in outcomes for rank in each.ranks]
    left = {path.stem: path for path in folder.glob("*.txt")}
    machines: dict[str, Machine | None] = {}
    reasons: dict[str, str] = {}
    for node in sorted({*left, *due, *(rank.node for rank in ranks)}):
        machine = _read(left[node], node) if node in left else None
        machines[node] = machine if machine is not None and machine.facts else None
        if machine is not None and not machine.facts:
            reasons[node] = "; ".join(machine.unknown)
    return Looks(
        machines=machines,
        reasons=reasons,
        cpus={
            node: tuple(sorted({rank.cpus for rank in ranks if rank.node == node}))
            for node in machines
        },
        samples=gather(ranks).samples,
    )


def _read(path: Path, node: str) -> Machine:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        trouble = ReadTrouble(text=f"its file cannot be read: {error.strerror}")
        return Machine(node=node, troubles=(trouble,))
    return read_machine(text, node)


def judge_looks(spec: FabricSpec, looks: Looks) -> Preflight:
    """Judge what was seen of a job's nodes by what its fabric is declared to be."""
    return preflight(spec, looks.machines, reasons=looks.reasons, bound_cpus=looks.cpus)


def with_preflight(outcome: Outcome, result: Preflight) -> Outcome:
    """Return the outcome, saying what is wrong with the links that it used.

    Args:
        outcome: of a leg, or of a relation between legs.
        result: of preflight, on the nodes of the same job.
    """
    nodes = {rank.node for rank in outcome.ranks} | {*outcome.nodes}
    warnings = result.warnings(outcome.leg.rails, nodes)
    notes = (*warnings, *as_notes(result.far_ranks(outcome.leg.rails, nodes)))
    if not notes:
        return outcome
    told = mended(outcome, lambda each: _with_warnings(each, texts_of(warnings)))
    return replace(told, report=replace(told.report, findings=(*notes, *told.report.findings)))


def _with_warnings(judgement: Judgement, warnings: Sequence[str]) -> Judgement:
    if judgement.verdict in {Verdict.PASS, Verdict.SKIPPED} or not warnings:
        return judgement
    more = f" (and {len(warnings) - 1} more)" if len(warnings) > 1 else ""
    return replace(judgement, reason=f"{warnings[0]}{more}; {judgement.reason}")


def links_of(
    rails: Iterable[str], result: Preflight, looks: Looks, num_nodes: int
) -> tuple[Outcome, ...]:
    """Return an outcome for each rail, for the check that judges nothing but the links.

    Args:
        rails: of the fabric.
        result: of preflight.
        looks: what it was judged from.
        num_nodes: how many nodes were due.
    """
    return tuple(_link(rail, result, looks, num_nodes) for rail in rails)


def _link(rail: str, result: Preflight, looks: Looks, num_nodes: int) -> Outcome:
    findings = result.of_rail(rail)
    quantities = [_named(each, findings) for each in findings]
    if len(looks.machines) < num_nodes:
        there = ", ".join(looks.machines) or "none"
        reason = f"{num_nodes} nodes were due, {len(looks.machines)} were seen: {there}"
        quantities += missing(["nodes"], reason).quantities
    notes = [each.sentence for each in result.notes if each.rail in {rail, ""}]
    notes += read_rises(looks.samples, [rail]).notes
    relation = Relation(name=rail, kind=SUITE, legs=(), suite=SUITE, program=PROGRAM, rails=(rail,))
    return Outcome(
        leg=relation.as_leg(),
        attempts=(),
        report=Report(
            verdict=worst([each.verdict for each in quantities]),
            quantities=tuple(quantities),
            findings=as_notes(dict.fromkeys(notes)),
        ),
        nodes=tuple(looks.machines),
    )


def _named(finding: RailFinding, findings: Sequence[RailFinding]) -> Judgement:
    """Return its judgement; of those that pass, a summary names one."""
    first = next((each for each in findings if each.quantity == "fleet"), findings[0])
    is_named = finding.verdict is not Verdict.PASS or finding is first
    return replace(finding.judgement, named=is_named)
