"""What a job left beside its legs: looks at its nodes before the first, its own end after the last.

A number over a link that is not what the site declares is still what was measured: a PASS stays
one.  But every leg says so, and what is red says it first.

A scheduler without accounting forgets how a job ended, and one that does not answer looks the same
as one that no longer knows the job.  So the job script writes a last file of its own, and that
decides; the scheduler lends words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabricproof.core.errors import FabricproofError
from fabricproof.core.findings import Finding, as_notes, texts_of
from fabricproof.core.hostlist import expand
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.records import text_of
from fabricproof.job.evidence.leg_folder import gather
from fabricproof.job.leg import Relation
from fabricproof.job.outcome import Outcome
from fabricproof.job.script import JOB_END_FILE
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
class Looks:
    """What the nodes of a job left of themselves before its first leg.

    Attributes:
        machines: node -> what was seen of it, None where nothing was.
        reasons: node -> why nothing was.
        cpus: node -> the CPUs that its ranks were bound to.
    """

    machines: Mapping[str, Machine | None]
    reasons: Mapping[str, str] = field(default_factory=dict)
    cpus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    samples: tuple[CounterSample, ...] = ()


def read_looks(folder: Path, outcomes: Sequence[Outcome], due: Iterable[str] = ()) -> Looks:
    """Return what the nodes left in ``folder``.

    ``inventory.sh`` left ``NODE.txt`` there; ``due`` are names of nodes that must have been seen.
    """
    ranks = [rank for each in outcomes for rank in each.ranks]
    left = {path.stem: path for path in folder.glob("*.txt")}
    machines: dict[str, Machine | None] = {}
    reasons: dict[str, str] = {}
    for node in sorted({*left, *due, *(rank.node for rank in ranks)}):
        machine = None
        if node in left:
            try:
                machine = read_machine(text_of(left[node], errors="replace"), node)
            except OSError as error:
                trouble = ReadTrouble(text=f"its file cannot be read: {error.strerror}")
                machine = Machine(node=node, troubles=(trouble,))
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


def judge_looks(spec: FabricSpec, looks: Looks) -> Preflight:
    """Judge what was seen of a job's nodes by what its fabric is declared to be."""
    return preflight(spec, looks.machines, reasons=looks.reasons, bound_cpus=looks.cpus)


def with_preflight(outcome: Outcome, result: Preflight) -> Outcome:
    """Return the outcome, saying what is wrong with the links that it used."""
    nodes = {rank.node for rank in outcome.ranks} | {*outcome.nodes}
    warnings = result.warnings(outcome.leg.rails, nodes)
    notes = (*warnings, *result.far_ranks(outcome.leg.rails, nodes))
    if not notes:
        return outcome
    more = f" (and {len(warnings) - 1} more)" if len(warnings) > 1 else ""
    raised = [
        Objection(kind=ObjectionKind.LINK_NOT_AS_DECLARED, reason=f"{each}{more}")
        for each in texts_of(warnings[:1])
    ]
    told = outcome.objected(lambda _: raised)
    return replace(told, report=replace(told.report, findings=(*notes, *told.report.findings)))


def links_of(
    rails: Iterable[str], result: Preflight, looks: Looks, num_nodes: int
) -> tuple[Outcome, ...]:
    """Return an outcome for each rail, for the check that judges nothing but the links."""
    return tuple(_link(rail, result, looks, num_nodes) for rail in rails)


def _link(rail: str, result: Preflight, looks: Looks, num_nodes: int) -> Outcome:
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
    relation = Relation(name=rail, kind=SUITE, legs=(), suite=SUITE, program=PROGRAM, rails=(rail,))
    return Outcome(
        leg=relation.as_leg(),
        attempts=(),
        report=Report(
            verdict=worst([each.verdict for each in quantities]),
            quantities=tuple(quantities),
            findings=tuple(dict.fromkeys(notes)),
        ),
        nodes=tuple(looks.machines),
    )


#: What Slurm says of a job whose output file slurmd could not open on the node (ExitCode 0:53).
_NO_FILES = 53
_UNOPENED = "slurmd could not open the job's files; do all nodes see this folder at this path?"

#: First of all in the job script, before any module is loaded: whatever ends it writes the file.
#: Bash runs a trap on EXIT after a fatal signal too, then with any status: so the last command of
#: the script must have said that it was reached.  The name is absolute, as a module may change the
#: folder; the file appears whole or not at all.
RECORD_END = f"""\
fabricproof_end=$PWD/{JOB_END_FILE} fabricproof_reached=no
rm -f "$fabricproof_end"
fabricproof_ends() {{ # how this job ended, for who judges it
    local status=$?
    printf 'job %s\\nnodes %s\\nreached %s\\nstatus %s\\n' \\
        "${{SLURM_JOB_ID:-none}}" "${{SLURM_JOB_NODELIST:-none}}" \\
        "$fabricproof_reached" "$status" >"$fabricproof_end.part" &&
        mv -f "$fabricproof_end.part" "$fabricproof_end"
}}
trap fabricproof_ends EXIT"""

#: the last command of the job script
REACHED_END = "fabricproof_reached=yes"


@dataclass(frozen=True, kw_only=True)
class JobEnd:
    """What the job script left at its end.

    Attributes:
        job_id: the scheduler's; None outside Slurm.
        nodes: that the job had; empty outside Slurm.
        reached: whether it came to its last command.
        status: its exit status; of one that a signal ended it says nothing.
    """

    job_id: str | None
    nodes: tuple[str, ...]
    reached: bool
    status: int


@dataclass(frozen=True, kw_only=True)
class SchedulerSays:
    """What the scheduler knows of a job that has ended; None and empty where it does not know.

    Attributes:
        state: in Slurm's words, ``COMPLETED``.
    """

    state: str | None = None
    exit_status: int | None = None
    nodes: tuple[str, ...] = ()

    @property
    def unfinished(self) -> bool:
        """Whether it says that the job has not ended."""
        return self.state in {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "STOPPED"}


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """Why what a job measured does not stand: a sentence, and what is objected."""

    sentence: str
    kind: ObjectionKind = ObjectionKind.JOB_CUT_OFF


def read_end(folder: Path) -> JobEnd | None:
    """Return what the job in ``folder`` left at its end; None where it left nothing whole."""
    try:
        text = text_of(folder / JOB_END_FILE)
        facts = dict(line.split(" ", 1) for line in text.splitlines())
        if not text.endswith("\n"):
            return None
        return JobEnd(
            job_id=None if facts["job"] == "none" else facts["job"],
            nodes=() if facts["nodes"] == "none" else expand(facts["nodes"]),
            reached=facts["reached"] == "yes",
            status=int(facts["status"]),
        )
    except (OSError, ValueError, KeyError, FabricproofError):
        return None


def find_doubt(
    end: JobEnd | None, job_id: str, says: SchedulerSays, last_words: str = ""
) -> Doubt | None:
    """Return what is wrong with the end of a job; None where it came to its last command."""
    if end is None or end.job_id not in {None, job_id}:
        if says.unfinished:
            return Doubt(sentence=f"the job has not ended: the scheduler says {says.state}")
        unopened = f": {_UNOPENED}" if says.exit_status == _NO_FILES else ""
        left = f"it left no {JOB_END_FILE}{_said(says)}{unopened}"
        return Doubt(sentence=f"the job did not come to its end: {left}")
    if end.reached and end.status == 0:
        return None
    where = "" if end.reached else " before its last command"
    words = f": {last_words}" if last_words else ""
    return Doubt(
        sentence=f"the job ended{where}, with exit status {end.status}{_said(says)}{words}"
    )


def _said(says: SchedulerSays) -> str:
    words = [says.state] if says.state else []
    words += [f"exit status {says.exit_status}"] if says.exit_status else []
    return f"; the scheduler says {', '.join(words)}" if words else ""


def find_strangers(end: JobEnd | None, outcomes: Sequence[Outcome]) -> Doubt | None:
    """Return a doubt where ranks of a job ran on nodes that it did not have; None where none did.

    A launcher that goes by a list of nodes of its own starts them elsewhere.  A leg may leave nodes
    of its job idle; outside Slurm a job has no list.  A domain behind a name is no other node.
    """
    if end is None or not end.nodes:
        return None
    ran_on = {rank.node for each in outcomes for rank in each.ranks}
    own = {node.partition(".")[0] for node in end.nodes}
    strange = sorted({node for node in ran_on if node.partition(".")[0] not in own})
    if not strange:
        return None
    there = ", ".join(end.nodes)
    sentence = f"the job had {there}, and its ranks say that they ran on {', '.join(strange)}"
    return Doubt(sentence=sentence, kind=ObjectionKind.STRANGE_NODES)


def with_doubt(outcomes: Sequence[Outcome], doubt: Doubt | None) -> tuple[Outcome, ...]:
    """Return what the legs of a job came to, none of them PASS by a job that cannot be believed.

    A leg that came to its own end before the job was cut off stays what it is where another leg is
    MISSING and so tells of it; where none is, every PASS is MISSING.  Where the ranks ran on other
    nodes, every PASS is UNJUDGED.
    """
    if doubt is None:
        return tuple(outcomes)
    told = any(each.report.verdict is Verdict.MISSING for each in outcomes)
    kept = doubt.kind is ObjectionKind.JOB_CUT_OFF and told
    return tuple(_doubted(each, doubt, kept=kept) for each in outcomes)


def _doubted(outcome: Outcome, doubt: Doubt, *, kept: bool) -> Outcome:
    raised = [] if kept else [Objection(kind=doubt.kind, reason=doubt.sentence)]
    if outcome.leg.commands and not outcome.attempts:
        reason = f"the leg was never started: {doubt.sentence}"
        raised.append(Objection(kind=ObjectionKind.NEVER_STARTED, reason=reason))
    changed = outcome.objected(lambda _: raised)
    report = replace(
        changed.report, findings=(Finding(text=doubt.sentence), *changed.report.findings)
    )
    return replace(changed, report=report)
