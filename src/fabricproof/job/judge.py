"""Judge a whole job: its legs, what is to hold between them, its nodes and its end.

Each witness objects, and all objections of a row are applied once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.core.units import stamp
from fabricproof.job.job_end import JobEnd, find_strangers
from fabricproof.job.leg import Leg, Plan
from fabricproof.job.links import SUITE, against_links, judge_looks, read_looks
from fabricproof.job.outcome import Outcome
from fabricproof.job.outcomes import against_directions, judge_legs
from fabricproof.job.recording import LEGS_KEY, describe_outcome, environment_digest
from fabricproof.job.relation import owned_legs
from fabricproof.job.relations.judge import judge_relations
from fabricproof.job.script import INVENTORY_FOLDER
from fabricproof.nodes.inventory.store import inventory_of_job
from fabricproof.site import FabricSpec
from fabricproof.verdict.objections import Objection, ObjectionKind


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """What is known of a job beside its folder and its plan."""

    spec: FabricSpec  # as the site declares it
    identity: Mapping[str, Any]  # of site, check, run and job, in each record
    builds: Mapping[str, Mapping[str, Any]]  # suite -> what records say of the stack's build
    end: JobEnd | None = None  # what the job left at its end
    doubt: Objection | None = None  # what is wrong with its end
    #: rails -> findings of references that do not apply to them
    declined: Callable[[tuple[str, ...]], Sequence[Finding]] = lambda _: ()
    binary: Callable[[Leg], str] = lambda _: ""  # SHA-256 of a leg's program; empty if unknown
    inventory: Path | None = None  # folder; None if the nodes were not looked at


@dataclass(frozen=True, kw_only=True)
class JobOutcome:
    """What a job came to."""

    outcomes: tuple[Outcome, ...]  # the rows: legs by themselves, and what holds between legs
    legs: tuple[Outcome, ...]  # all, as they were measured
    identity: Mapping[str, Any]  # what stands in each record of the job
    records: tuple[dict[str, Any], ...]  # of the rows

    @property
    def environment_digest(self) -> str:
        """One short digest of what all legs ran in."""
        return environment_digest(self.legs)

    @property
    def leg_records(self) -> tuple[dict[str, Any], ...]:
        """The record with the verdict of each row."""
        return tuple(each for each in self.records if each["kind"] == "leg")


def judge_job(
    folder: Path,
    plan: Plan,
    facts: JobFacts,
    rows: Callable[[Sequence[Outcome]], Sequence[Outcome]] | None = None,
) -> JobOutcome:
    """Judge what the job in ``folder`` left.

    Args:
        folder: of the job.
        plan: what it was to measure.
        facts: what else is known of it.
        rows: what counts of its legs; None for the legs by themselves and the plan's relations.
    """
    legs = judge_legs(folder, plan.legs)
    if rows is None:
        owned = owned_legs(plan.relations)
        own_rows = [each for each in legs if each.leg.name not in owned]
        counted = [*own_rows, *judge_relations(plan.relations, legs)]
    else:
        counted = [*rows(legs)]
    outcomes = _after_witnesses(counted, legs, folder, facts)
    identity = dict(facts.identity)
    if facts.inventory is not None:
        nodes = {rank.node for each in legs for rank in each.ranks}
        digests, trouble = inventory_of_job(
            facts.inventory,
            folder / INVENTORY_FOLDER,
            nodes,
            run_id=str(identity.get("run_id", "")),
            time=stamp(),
        )
        identity |= {"inventory": digests, **({"inventory_trouble": trouble} if trouble else {})}
    records = [
        record
        for each in outcomes
        for record in describe_outcome(
            each,
            {**facts.builds[each.leg.suite], **identity},
            facts.declined(each.leg.rails),
            facts.binary(each.leg),
        )
    ]
    for each in records:
        if each["kind"] == "leg":
            each[LEGS_KEY] = len(outcomes)
    return JobOutcome(outcomes=outcomes, legs=legs, identity=identity, records=tuple(records))


def _after_witnesses(
    rows: Sequence[Outcome], legs: Sequence[Outcome], folder: Path, facts: JobFacts
) -> tuple[Outcome, ...]:
    """Return the rows after directions, links and the job's end."""
    directions = against_directions(rows)
    links = judge_looks(facts.spec, read_looks(folder / INVENTORY_FOLDER, legs))
    doubt = facts.doubt or find_strangers(facts.end, legs)
    told = any(each.report.verdict is Verdict.MISSING for each in rows)
    after = []
    for each in rows:
        raised, findings = [*directions.get(each.leg.name, ())], list[Finding]()
        if each.leg.suite != SUITE:  # whose rows are the links themselves
            of_links, more = against_links(each, links)
            raised, findings = [*raised, *of_links], [*more]
        if doubt is not None:
            raised += of_doubt(each, doubt, told=told)
            findings.insert(0, Finding(text=doubt.reason))
        after.append(each.objected(raised, findings))
    return tuple(after)


def of_doubt(outcome: Outcome, doubt: Objection, *, told: bool) -> list[Objection]:
    """Return what a job that cannot be believed says against one row of it.

    Args:
        outcome: the row.
        doubt: what is wrong with the job.
        told: a row of the job is MISSING, and so tells that the job was cut off: a leg that came to
            its own end before stays what it is.  If none is, every PASS is MISSING.
    """
    raised = [] if told and doubt.kind is ObjectionKind.JOB_CUT_OFF else [doubt]
    if outcome.leg.commands and not outcome.attempts:
        reason = f"the leg was never started: {doubt.reason}"
        raised.append(Objection(kind=ObjectionKind.NEVER_STARTED, reason=reason))
    return raised
