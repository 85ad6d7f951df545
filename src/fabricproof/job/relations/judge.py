"""Judge what is to hold between the legs of a job, and say what is to run again for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from fabricproof.core.findings import as_notes
from fabricproof.core.measure import worst
from fabricproof.job.evidence.disturbance import disturbances_of
from fabricproof.job.leg import row_leg
from fabricproof.job.outcome import DOUBTFUL, Outcome, needs_second_look, weighed
from fabricproof.job.relation import Balance, Frames, OwnChoice, Ratio, Relation, owned_legs
from fabricproof.job.relations.frames import judge_frames
from fabricproof.job.relations.measured import judge_rounds, measure, name_of
from fabricproof.job.relations.numbers import Looks, NoNumberError, legs_in_words
from fabricproof.job.relations.own_choice import judge_own_choice, legs_in_question
from fabricproof.job.relations.sharing import judge_threshold, shares_of
from fabricproof.traffic import PathState
from fabricproof.traffic.disturbance import Disturbances
from fabricproof.verdict.value import Report, missing, no_number


def judge_relations(
    relations: Sequence[Relation], outcomes: Sequence[Outcome]
) -> tuple[Outcome, ...]:
    """Judge every relation of a job."""
    return tuple(judge_relation(relation, outcomes) for relation in relations)


def judge_relation(relation: Relation, outcomes: Sequence[Outcome]) -> Outcome:
    """Judge ``relation``: by all its rounds, or on the first and the latest look at its legs."""
    mine = [each for each in outcomes if each.leg.name in relation.legs]
    try:
        if isinstance(relation.what, OwnChoice):
            report = _of_choice(relation, relation.what, mine)
        else:
            report = _judged(relation, _looks(relation, outcomes, 0))
            if any(len(each.attempts) > 1 for each in mine):
                last = _judged(relation, _looks(relation, outcomes, -1))
                in_rounds = [each.name for each in last.quantities[:1] if relation.turns]
                report = weighed([report, last], needs_proven_path=False, in_rounds=in_rounds)
    except Exception as error:  # the records of the legs are worth more
        report = missing([relation.name], f"its judge itself failed: {error!r}")
    row = row_leg(relation.name, relation.suite, relation.program, relation.rails)
    nodes = {rank.node for each in mine for rank in each.ranks}
    return Outcome(leg=row, attempts=(), report=report, nodes=tuple(sorted(nodes)))


def _looks(relation: Relation, outcomes: Sequence[Outcome], index: int) -> Looks:
    """Return one look at each leg of the relation, and all rounds of those that run in turn."""
    in_turn = {*relation.turns.values()}
    return {
        each.leg.name: each.look(each.attempts[index])
        if each.attempts and each.leg.name not in in_turn
        else each
        for each in outcomes
        if each.leg.name in {*relation.legs, *in_turn}
    }


def _of_choice(relation: Relation, what: OwnChoice, mine: Sequence[Outcome]) -> Report:
    """Return the report by every attempt: what is decided from the spread of times needs all."""
    looks = {each.leg.name: each for each in mine}
    try:
        return _excused(relation, looks, judge_own_choice(what, looks))
    except NoNumberError as error:
        number = no_number("own_choice", error.verdict, error.reason, "x")
        return Report(verdict=number.verdict, quantities=(number,))


def _judged(relation: Relation, looks: Looks) -> Report:
    what = relation.what
    name = name_of(relation, what) if isinstance(what, Ratio | Balance) else "frame"
    try:
        if isinstance(what, Frames):
            found = judge_frames(relation, what, looks)
            report = Report(verdict=found.verdict, quantities=(found,))
        else:
            assert not isinstance(what, OwnChoice), "it has no looks"
            report = _measured(relation, what, looks)
        return _excused(relation, looks, report)
    except NoNumberError as error:
        number = no_number(name, error.verdict, error.reason, "x")
        return Report(verdict=number.verdict, quantities=(number,))


def _measured(relation: Relation, what: Ratio | Balance, looks: Looks) -> Report:
    rounds = measure(relation, what, looks)
    if isinstance(what, Ratio):
        words = legs_in_words(what, looks)
        more, said = None, [f"best first: {words}"] if words else []
    else:
        shares = shares_of(what, looks)
        words = "large messages: " + ", ".join(f"{rail} {of:.1%}" for rail, of in shares.items())
        more, threshold = judge_threshold(relation.name, what, looks)
        said = [threshold]
    name, in_turn = name_of(relation, what), bool(relation.turns)
    number = judge_rounds(name, what, rounds, in_turn=in_turn, hint=words)
    quantities = (number, more) if more else (number,)
    return Report(
        verdict=worst([each.verdict for each in quantities]),
        quantities=quantities,
        findings=as_notes([*said, *rounds.notes()]),
    )


def _excused(relation: Relation, looks: Looks, report: Report) -> Report:
    """Return the report with what others took from any leg as an objection.

    Rounds that were disturbed do not count, and so explain nothing.
    """
    others = [attempt.disturbances for look in looks.values() for attempt in look.attempts]
    others = [each for each in others if not relation.turns or each.spoils_round is None]
    taken = Disturbances(
        found=tuple(found for each in others for found in each.found),
        unknown=tuple(dict.fromkeys(word for each in others for word in each.unknown)),
    )
    objections, notes = disturbances_of(report, taken)
    return report.objected(objections, *notes)


def legs_to_repeat(relations: Sequence[Relation], outcomes: Sequence[Outcome]) -> frozenset[str]:
    """Return the names of the legs that deserve a second attempt before anything is called red.

    A leg that is doubtful by itself does, and so do all legs of a relation that is: unless one of
    them took another path, for then no other number would help.
    """
    owned = owned_legs(relations)
    doubtful = {
        outcome.leg.name
        for outcome in outcomes
        if outcome.leg.name not in owned and needs_second_look(outcome)
    }
    for relation in relations:
        doubtful |= _again_for(relation, outcomes, doubtful)
    return frozenset(doubtful)


def _again_for(
    relation: Relation, outcomes: Sequence[Outcome], doubtful: AbstractSet[str]
) -> frozenset[str]:
    """Return the legs that one relation wants again; rounds in turn are no second look."""
    mine = [each for each in outcomes if each.leg.name in relation.legs]
    paths = [each.report.net_path for each in mine]
    hopeless = any(path is not None and path.state is PathState.WRONG for path in paths)
    if hopeless or any(len(each.attempts) != 1 for each in mine):
        return frozenset()
    report = judge_relation(relation, outcomes).report
    if report.verdict not in DOUBTFUL:
        return frozenset()
    # What has rounds is decided by more of them: the first number.
    rest = report.quantities[1:] if relation.turns else report.quantities
    is_red = any(each.value is not None and each.verdict in DOUBTFUL for each in rest)
    if isinstance(relation.what, OwnChoice):
        looks = {each.leg.name: each for each in mine}
        return legs_in_question(relation.what, looks) if is_red else frozenset()
    # What a leg lost at first is not held against what its neighbours did minutes before.
    in_parts = bool(doubtful & {*relation.legs})
    if relation.turns:
        in_parts = in_parts and report.quantities[0].value is None
    return frozenset(relation.legs) if is_red or in_parts else frozenset()


def rounds_due(
    relations: Sequence[Relation], outcomes: Sequence[Outcome], most_legs: float = math.inf
) -> tuple[str, ...]:
    """Return the names of legs to run in turn, in that order, until their relations are decided.

    Every other round runs backwards, so that what gets slower with time hits both sides alike.
    ``most_legs`` still fit in the job's time; whole rounds that do not are not due.
    """
    due: dict[tuple[str, ...], int] = {}
    for relation in relations:
        names = tuple(relation.turns.values())
        if names:
            due[names] = max(due.get(names, 0), _rounds_of_one(relation, outcomes))
    for names, number in due.items():
        due[names] = int(min(number, max(0, most_legs) // len(names)))
        most_legs -= due[names] * len(names)
    return tuple(
        name
        for names, number in due.items()
        for index in range(number)
        for name in (names if index % 2 else reversed(names))
    )


def _rounds_of_one(relation: Relation, outcomes: Sequence[Outcome]) -> int:
    assert isinstance(relation.what, Ratio | Balance), "nothing else runs in turn"
    for index in (0, -1):
        try:
            looks = _looks(relation, outcomes, index)
            return measure(relation, relation.what, looks).to_add(relation.what)
        except NoNumberError:
            continue
    return 0
