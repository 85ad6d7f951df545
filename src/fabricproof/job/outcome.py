"""Judge what one leg of a job left behind: a folder for each attempt in, a report out.

The same reading serves the second look inside the job and the judgement after it, so that the two
cannot disagree.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from fabricproof.core.findings import Finding, FindingKind, as_notes
from fabricproof.core.measure import Table, Verdict
from fabricproof.job.evidence.declaration import (
    judge_free_path,
    objections_of,
    rails_down,
    what_the_container_lacks,
)
from fabricproof.job.evidence.disturbance import (
    disturbances_of,
    measure_disturbances,
    other_jobs_of,
)
from fabricproof.job.evidence.error_rates import errors_of_all, with_errors
from fabricproof.job.evidence.leg_folder import (
    RankRecord,
    evidence_of,
    failed_rank,
    first_death,
    gather,
    last_words,
    read_ranks,
    read_reason,
    read_refusal,
    read_status,
    read_table,
)
from fabricproof.job.evidence.references import after_baseline, rules_of
from fabricproof.job.leg import MOST_ATTEMPTS, PEER_SUITES, Leg, shell_name
from fabricproof.job.script import SECOND_LOOK_ERRORS
from fabricproof.traffic import (
    Evidence,
    Expectation,
    PathProof,
    PathState,
    prove_one_node,
    prove_path,
    wire_events,
)
from fabricproof.traffic.disturbance import Disturbances
from fabricproof.traffic.error_rates import ErrorRate, added, error_rates
from fabricproof.verdict.causes.suspects import unended
from fabricproof.verdict.objections import FOREIGN, Objection, ObjectionKind
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Judgement, Report, is_of_errors, missing

#: A first attempt with one of these verdicts gets a second look; a wrong path does not need one.
DOUBTFUL = frozenset({Verdict.FAIL, Verdict.INVALID, Verdict.MISSING, Verdict.UNJUDGED})


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One run of one leg."""

    number: int
    folder: Path
    status: int | None  # the launcher's exit status; None if the leg never ended
    table: Table | None  # None if the output could not be read
    ranks: tuple[RankRecord, ...]  # empty if no rank wrote its record
    report: Report
    objections: tuple[Objection, ...] = ()  # that were raised against its numbers
    errors: tuple[ErrorRate, ...] = ()  # on its rails, in this attempt alone
    disturbances: Disturbances = field(default_factory=Disturbances)

    @property
    def foreign(self) -> str:
        """Why its numbers may not be of the leg's device or library; empty if they are."""
        return next((each.reason for each in self.objections if each.kind in FOREIGN), "")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A leg with all its attempts, oldest first, and the report that counts.

    A relation between legs has no attempts of its own; ``nodes`` says where its legs ran.
    """

    leg: Leg
    attempts: tuple[Attempt, ...]
    report: Report
    nodes: tuple[str, ...] = ()

    @property
    def ranks(self) -> tuple[RankRecord, ...]:
        """What each rank of each attempt left."""
        return tuple(rank for attempt in self.attempts for rank in attempt.ranks)

    @property
    def counted(self) -> Attempt | None:
        """The latest attempt that has numbers in the report; None if there is none."""
        return next((each for each in reversed(self.attempts) if self.counts(each)), None)

    def look(self, attempt: Attempt) -> Outcome:
        """Return the leg as one of its attempts alone shows it."""
        return replace(self, attempts=(attempt,), report=attempt.report)

    def counts(self, attempt: Attempt) -> bool:
        """Return whether any number of ``attempt`` stands in the report."""
        return any(self.takes(each) for each in attempt.report.quantities)

    def takes(self, judgement: Judgement) -> bool:
        """Return whether the report holds this judgement, not its twin of another attempt."""
        mine = (judgement.name, judgement.attempt)
        return any(mine == (each.name, each.attempt) for each in self.report.quantities)

    def objected(
        self, objections: Sequence[Objection], findings: Sequence[Finding] = ()
    ) -> Outcome:
        """Return the leg after what speaks against its numbers, in each of its reports.

        ``findings`` come first in the report that counts.
        """

        def after(report: Report) -> Report:
            concerned = any(each.concerns(one) for each in objections for one in report.quantities)
            return report.objected(objections) if concerned else report

        attempts = tuple(replace(each, report=after(each.report)) for each in self.attempts)
        report = after(self.report)
        report = replace(report, findings=(*findings, *report.findings))
        return replace(self, attempts=attempts, report=report)


def first_reason(report: Report) -> str:
    """Return what a report says first, for one whose leg has no number."""
    return report.quantities[0].reason if report.quantities else "it left nothing"


def judge_leg(folder: Path, leg: Leg, channel_attempt: int = 0) -> Outcome:
    """Judge all attempts of ``leg`` below job folder ``folder``.

    What fails twice is red: a quantity that passes in any attempt is cleared, and the report says
    that there were several.  ``channel_attempt``: of its ``channel_leg``; 0 for the latest.
    """
    attempts: tuple[Attempt, ...] = ()
    for number in count(1) if leg.in_turn else range(1, MOST_ATTEMPTS + 1):
        path = folder / "legs" / f"{shell_name(leg.name)}.{number}"
        if not path.is_dir():
            break
        found = _with_errors(_judge_attempt(path, leg, number, channel_attempt), leg, attempts)
        numbered = [replace(each, attempt=number) for each in found.report.quantities]
        report = replace(found.report, quantities=tuple(numbered), judged=None, objections=())
        attempts += (replace(found, report=report),)
    if not attempts:
        why = f"the job left nothing in {folder}; do the nodes share it?"
        why = "the job ended before it" if (folder / "legs").is_dir() else why
        report = missing(leg.required, f"the leg was never started: {why}")
        return Outcome(leg=leg, attempts=(), report=report)
    report = weighed([each.report for each in attempts])
    if len(attempts) > 1:
        # The latest that was counted: one that never ended has none, and clears no other.
        counted = [
            each.report for each in attempts if any(map(is_of_errors, each.report.quantities))
        ]
        report = errors_of_all(report, (counted or [attempts[-1].report])[-1])
    if not (leg.in_turn or leg.same_node or leg.free_path):
        seen = [evidence_of(leg, each.ranks).samples for each in attempts]
        if events := "; ".join(wire_events(seen, leg.rails)):
            event = Objection(kind=ObjectionKind.WIRE_EVENT, reason=events)
            report = report.objected([event], *as_notes([events]))
    outcome = Outcome(leg=leg, attempts=attempts, report=report)
    if len(attempts) == 1 and needs_second_look(outcome):
        said = last_words(folder / SECOND_LOOK_ERRORS)
        text = "no second look was made" + (f": {said}" if said else "")
        outcome = replace(outcome, report=_noted(report, text, FindingKind.NO_SECOND_LOOK))
    return outcome


def _with_errors(attempt: Attempt, leg: Leg, earlier: Sequence[Attempt]) -> Attempt:
    """Return the attempt with what was lost in it judged, together with the attempts before it.

    A lossy link that happens to lose nothing at the second look is a lossy link still.
    """
    net_path = attempt.report.net_path
    is_wrong = net_path is None or net_path.state is PathState.WRONG
    if is_wrong or attempt.foreign or leg.same_node or leg.free_path:
        return attempt
    evidence = evidence_of(leg, attempt.ranks)
    mine = error_rates(evidence, leg.rails)
    rates = added([*(rate for each in earlier for rate in each.errors), *mine])
    report = with_errors(attempt.report, leg, rates, evidence.nodes)
    return replace(attempt, report=report, errors=mine)


def weighed(
    looks: Sequence[Report], *, needs_proven_path: bool = True, in_rounds: Collection[str] = ()
) -> Report:
    """Return the report of the first and the last look: FAIL needs both, red.

    A look without a number counts as one in which it is MISSING.  What only the first look has (a
    point of the curve that the last took for a switch of protocol) counts if the last has no table.

    Args:
        looks: oldest first.  The first counts if it passed, for then no other was for it.
        needs_proven_path: only what was measured on a proven path clears what was red.  A relation
            has no path of its own; its judge asks for those of its legs.
        in_rounds: names of numbers that are decided from several rounds, each of them a look.
    """
    first, last = looks[0], looks[-1]
    if last is first or first.verdict is Verdict.PASS:
        return first
    said = f"the first said {first.verdict}"
    if last.verdict is Verdict.PASS:
        why = next(each for each in first.quantities if each.verdict is first.verdict)
        text = f"second look: passed; {said} ({why.name}: {why.reason})"
        return _noted(last, text, FindingKind.SECOND_LOOK_PASSED)
    again = f"second look: red again on the same nodes; {said}"
    if Verdict.INVALID in {first.verdict, last.verdict}:
        # A stall makes numbers worse, never impossible: nothing is cleared.
        return _noted(last, again, FindingKind.SECOND_LOOK_RED)
    before = [] if last.net_path else [each for each in first.quantities if not is_of_errors(each)]
    clears = first.net_path is not None and first.net_path.state is PathState.PROVEN
    pairs = {}
    for name in dict.fromkeys(each.name for each in (*last.quantities, *before)):
        one, other = _number(first, name), _number(last, name)
        if one.verdict is Verdict.PASS and needs_proven_path and not clears:
            one = replace(one, verdict=Verdict.UNJUDGED)
        pairs[name] = one, other
    joined = last.with_quantities(
        two[-1] if name in in_rounds else _of_looks(two) for name, two in pairs.items()
    )
    if joined.verdict is Verdict.PASS:
        both = (*first.quantities, *last.quantities)
        red = ", ".join(each.name for each in both if each.verdict is not Verdict.PASS)
        text = f"second look: no quantity was red twice; red once: {red}"
        return _noted(joined, text, FindingKind.SECOND_LOOK_PASSED)
    once = [name for name, two in pairs.items() if _is_red_once(two) and name not in in_rounds]
    if joined.verdict is Verdict.UNJUDGED and once:
        text = f"red at one of two looks, and the other could not judge it: {', '.join(once)}"
        return _noted(joined, text, FindingKind.NOTE)
    return _noted(joined, again, FindingKind.SECOND_LOOK_RED)


def _number(look: Report, name: str) -> Judgement:
    found = next((each for each in look.quantities if each.name == name), None)
    return found or missing([name], first_reason(look)).quantities[0]


def _noted(report: Report, text: str, kind: FindingKind) -> Report:
    return replace(report, findings=(Finding(text=text, kind=kind), *report.findings))


def _of_looks(two: Sequence[Judgement]) -> Judgement:
    """Return what one number is by two looks at it, neither of which holds an impossible one.

    What passed once is cleared; what was red at both is red; red at one look alone, it is what the
    other made of it.  What is lost on the way is counted over both looks together: the last has it.
    """
    first, last = two
    if is_of_errors(last) or last.verdict is Verdict.PASS:
        return last
    if first.verdict is Verdict.PASS:
        return first
    if not _is_red_once(two):
        return last
    red, other = (first, last) if first.verdict is Verdict.FAIL else (last, first)
    return replace(other, reason=f"{other.reason}; red at one look alone: {red.reason}")


def _is_red_once(two: Sequence[Judgement]) -> bool:
    """Return whether a number was red at one look, and the other could not judge it."""
    verdicts = [each.verdict for each in two if not is_of_errors(each)]
    return Verdict.PASS not in verdicts and verdicts.count(Verdict.FAIL) == 1 < len(verdicts)


def needs_second_look(outcome: Outcome) -> bool:
    """Return whether a leg should run again before it is called red."""
    report, leg = outcome.report, outcome.leg
    if len(outcome.attempts) != 1 or leg.in_turn or outcome.attempts[0].foreign:
        return False
    if not leg.required and not report.quantities:
        return False  # it measures nothing that could be cleared: preflight's looks are taken once
    state = report.net_path.state if report.net_path else None
    if report.verdict is Verdict.UNJUDGED and state is PathState.PROVEN:
        # If no reference says what it should be, no other number would be judged either.
        open_ones = [each for each in report.quantities if each.verdict is not Verdict.PASS]
        return any(each.reference is not None for each in open_ones)
    return report.verdict in DOUBTFUL and state is not PathState.WRONG


def _judge_attempt(folder: Path, leg: Leg, number: int, channel_attempt: int) -> Attempt:
    status = read_status(folder)
    ranks, trouble = read_ranks(folder)
    if trouble is None and status is None:
        trouble = "the leg was cut off: it never ended"
    if trouble is None and status != 0:
        trouble = _failure(folder, status, leg, ranks)
    if trouble is None and (failed := failed_rank(ranks)):
        trouble = read_reason(folder) or failed
    table: Table | None = None
    if trouble is None:
        table, trouble = read_table(folder, leg)
    others = Disturbances()
    nodes = {each.node for each in ranks}
    if status == 0 and (refusal := read_refusal(folder)):
        report = missing(leg.required, refusal, verdict=Verdict.SKIPPED)
    elif table is None or trouble is not None:
        report = missing(leg.required, trouble or "no table")
        objections, notes = other_jobs_of(report, folder, nodes)
        report = report.objected(objections, *notes)
    elif leg.free_path:
        report = judge_free_path(leg, ranks, _moved(leg, table)[0])
        report = report.objected(objections_of(leg, ranks))
    else:
        rules = rules_of(leg, folder.parents[1], channel_attempt)
        evidence, expected = _meant(leg, ranks, table)
        report = judge_table(table, rules, _net_path(leg, ranks, evidence, expected))
        there = {each.name for each in report.quantities}
        if absent := [name for name in leg.required if name not in there]:
            # What the path says of the others is no number of these.
            lost = missing(absent, "due, but not in the output").quantities
            judged = (*(report.judged or report.quantities), *lost)
            report = replace(report, judged=judged).objected(())
        report = after_baseline(report, leg, ranks, table, folder.parents[1])
        others = measure_disturbances(leg, ranks, evidence, expected)
        # No witness knows what another one said.
        taken, more = disturbances_of(report, others, leg.num_ranks)
        jobs, notes = other_jobs_of(report, folder, nodes)
        report = report.objected((*taken, *jobs, *objections_of(leg, ranks)), *more, *notes)
    return Attempt(
        number=number,
        folder=folder,
        status=status,
        table=table,
        ranks=ranks,
        report=report,
        objections=report.objections,
        disturbances=others,
    )


def _failure(folder: Path, status: int | None, leg: Leg, ranks: Sequence[RankRecord]) -> str:
    """Return why a start that did not end with 0 says nothing; a whole table says no more.

    Without its end nobody counted the path to the end.
    """
    if reason := read_reason(folder):
        return reason
    words = first_death(folder, ranks)
    if not words and status in {124, 137}:  # timeout(1): ended, or killed because it would not end
        words = "it was ended at its time limit"
        table, cut = read_table(folder, leg)
        if cut is not None:
            words += f"; {cut}"
        elif table is not None and leg.suite not in PEER_SUITES:
            ended = len(ranks) == leg.num_ranks and all(each.status == 0 for each in ranks)
            words += f"; {unended(ranks_ended=ended)}"
    words = words or f"exit status {status}"
    if leg.container is not None and ranks and not any(each.inside for each in ranks):
        words += f", before the container {leg.container.image} started it"
    said = last_words(folder / "stderr") or last_words(folder / "stdout")
    why = (rails_down(leg, ranks), what_the_container_lacks(leg, ranks))
    text = f"the benchmark failed, {words}" + (f": {said}" if said else "")
    return "; ".join(filter(None, (*why, text)))


def _moved(leg: Leg, table: Table) -> tuple[tuple[int, int], tuple[int, int] | None]:
    """Return the bytes, and the messages one by one, that each half of the ranks says it sent."""
    traffic = leg.traffic
    if traffic.at_least:
        return (0, 0), None
    if traffic.exact is not None:
        return traffic.exact, traffic.messages
    if "moved_bytes" in table.attributes:
        moved = int(table.attributes["moved_bytes"])
        return ((0, moved) if leg.backward else (moved, 0)), None
    forth, back = traffic.per_repetition or (0, 0)
    counts, sizes = table.column("repetitions"), table.column("message_size")
    payload = sum(int(times * size) for times, size in zip(counts, sizes, strict=True))
    in_turn = int(sum(counts)) if forth == back == 1 and len(leg.rails) == 1 else None
    return (forth * payload, back * payload), None if in_turn is None else (in_turn, in_turn)


def _net_path(
    leg: Leg, ranks: tuple[RankRecord, ...], evidence: Evidence, expected: Expectation
) -> PathProof:
    if leg.same_node:
        return prove_one_node(gather(ranks))
    if lost := [str(each.rank) for each in ranks if each.status is None]:
        reason = f"rank {', '.join(lost)} never came back to be counted"
        return PathProof(state=PathState.UNKNOWN, reason=reason)
    proof = prove_path(evidence, expected)
    lacks = "" if proof.state is PathState.PROVEN else what_the_container_lacks(leg, ranks)
    return replace(proof, reason=f"{lacks}; {proof.reason}") if lacks else proof


def _meant(leg: Leg, ranks: tuple[RankRecord, ...], table: Table) -> tuple[Evidence, Expectation]:
    """Return what was seen, under the names of the leg's rails, and what the leg was to move."""
    sent_bytes, sent_messages = _moved(leg, table)
    least = leg.traffic.at_least
    return evidence_of(leg, ranks), Expectation(
        rails=leg.rails,
        sent_bytes=sent_bytes,
        num_ranks=leg.num_ranks,
        ranks_per_node=leg.ranks_per_node,
        nodes=leg.nodes,
        spread=leg.spread,
        exact=leg.traffic.exact is not None and not least,
        sent_messages=sent_messages,
        least_bytes=tuple((sent, received) for sent, received, _ in least) or None,
        least_packets=tuple(packets for *_, packets in least if packets) or None,
    )
