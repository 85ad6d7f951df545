"""Judge what is to hold between the legs of a job: outcomes in, outcomes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from fabricproof.job.evidence.disturbance import disturbances_of
from fabricproof.job.leg import Relation, owned_legs
from fabricproof.job.outcome import (
    DOUBTFUL,
    Outcome,
    needs_second_look,
    weighed,
)
from fabricproof.job.relations.comparison import (
    gains_of,
    held_ratio_of,
    judge_best,
    judge_hops,
    judge_locality,
    judge_share,
    share_of,
)
from fabricproof.job.relations.own_choice import judge_own_choice, legs_in_question
from fabricproof.job.relations.rails import balance_of, judge_frames, judge_sharing
from fabricproof.job.relations.ratio import (
    Judge,
    Looks,
    Rounds,
    ValuesOf,
    bounds_of,
    judge_ratio,
    ratio_of,
    rounds_of,
    with_slack,
)
from fabricproof.job.rounds import rounds_to_add
from fabricproof.traffic import PathState
from fabricproof.traffic.disturbance import Disturbances
from fabricproof.verdict.value import Report, missing

#: how each kind of relation is judged
JUDGES: dict[str, Judge] = {
    "ratio": judge_ratio,
    "sharing": judge_sharing,
    "share": judge_share,
    "best": judge_best,
    "frames": judge_frames,
    "own_choice": judge_own_choice,
    "locality": judge_locality,
    "hops": judge_hops,
}

#: the numbers of those that are measured in rounds
VALUES: dict[str, ValuesOf] = {
    "ratio": ratio_of,
    "sharing": balance_of,
    "share": share_of,
    "best": gains_of,
    "locality": held_ratio_of,
    "hops": ratio_of,
}

#: which legs a red relation wants again, where not all of them
AGAIN: dict[str, Callable[[Relation, Looks], frozenset[str]]] = {"own_choice": legs_in_question}


def judge_relation(relation: Relation, outcomes: Sequence[Outcome]) -> Outcome:
    """Judge ``relation`` on the first and on the latest look at its legs; one PASS clears it."""
    mine, in_turn = _legs_of(relation, outcomes)
    nodes = {rank.node for each in mine for rank in each.ranks}
    report = _judged(relation, {**_looks(mine, 0), **in_turn})
    if any(len(outcome.attempts) > 1 for outcome in mine):
        # What is decided from the spread of times is decided from all of them.
        both = {outcome.leg.name: outcome for outcome in mine}
        last = both if relation.kind in AGAIN else _looks(mine, -1)
        again = _judged(relation, {**last, **in_turn})
        # Its judge takes no number of an unproven path.
        decided = again.quantities if relation.kind in AGAIN else again.quantities[:1]
        rounds = [each.name for each in decided if relation.turns or relation.kind in AGAIN]
        report = weighed([report, again], needs_proven_path=False, in_rounds=rounds)
    return Outcome(leg=relation.as_leg(), attempts=(), report=report, nodes=tuple(sorted(nodes)))


def _legs_of(relation: Relation, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], Looks]:
    """Return the relation's legs, and by name those that run in turn for it."""
    in_turn = {*relation.turns.values()}
    return (
        [outcome for outcome in outcomes if outcome.leg.name in relation.legs],
        {outcome.leg.name: outcome for outcome in outcomes if outcome.leg.name in in_turn},
    )


def _judged(relation: Relation, looks: Looks) -> Report:
    judge = JUDGES.get(relation.kind)
    if judge is None:
        return missing([relation.name], f"nobody judges relations of kind {relation.kind!r}")
    try:
        report = judge(with_slack(relation, looks), looks)
        objections, notes = disturbances_of(report, _disturbances(relation, looks))
        return report.objected(objections, *notes)
    except Exception as error:  # the records of the legs are worth more
        return missing([relation.name], f"its judge itself failed: {error!r}")


def _disturbances(relation: Relation, looks: Looks) -> Disturbances:
    """Return what others took from any of the legs: a relation is disturbed where one was.

    Rounds that were disturbed do not count, and so explain nothing.
    """
    others = [attempt.disturbances for look in looks.values() for attempt in look.attempts]
    others = [each for each in others if not relation.turns or each.spoils_round is None]
    return Disturbances(
        found=tuple(found for each in others for found in each.found),
        unknown=tuple(dict.fromkeys(word for each in others for word in each.unknown)),
    )


def _looks(outcomes: Sequence[Outcome], index: int) -> Looks:
    return {
        outcome.leg.name: outcome.look(outcome.attempts[index]) if outcome.attempts else outcome
        for outcome in outcomes
    }


def judge_relations(
    relations: Sequence[Relation], outcomes: Sequence[Outcome]
) -> tuple[Outcome, ...]:
    """Judge every relation of a job."""
    return tuple(judge_relation(relation, outcomes) for relation in relations)


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
    result = judge_relation(relation, outcomes)
    mine, _ = _legs_of(relation, outcomes)
    hopeless = any(_on_another_path(outcome) for outcome in mine)
    unrepeated = all(len(outcome.attempts) == 1 for outcome in mine)
    if result.report.verdict not in DOUBTFUL or hopeless or not unrepeated:
        return frozenset()
    # What a leg lost at first is not held against what its neighbours did minutes before.
    in_parts = bool(doubtful & set(relation.legs)) and relation.kind not in AGAIN
    # What has rounds is decided by more of them: the first number.
    in_rounds = 1 if relation.turns else 0
    open_ones = result.report.quantities[in_rounds:]
    has_value = any(each.value is not None and each.verdict in DOUBTFUL for each in open_ones)
    if relation.turns:
        in_parts = in_parts and result.report.quantities[0].value is None
    if not (has_value or in_parts):
        return frozenset()
    again = AGAIN.get(relation.kind)
    return again(relation, _looks(mine, 0)) if again else frozenset(relation.legs)


def rounds_due(
    relations: Sequence[Relation], outcomes: Sequence[Outcome], most_legs: float = math.inf
) -> tuple[str, ...]:
    """Return the names of legs to run in turn, in that order, until their relations are decided.

    Every other round runs backwards, so that what gets slower with time hits both sides alike.

    Args:
        relations: of the job.
        outcomes: of its legs so far.
        most_legs: how many legs still fit in the job's time; whole rounds that do not are not due.
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
    mine, in_turn = _legs_of(relation, outcomes)
    relation = with_slack(relation, _looks(mine, 0))
    for index in {0, -1}:
        found = rounds_of(relation, {**_looks(mine, index), **in_turn}, VALUES[relation.kind])
        if isinstance(found, Rounds):
            bounds = bounds_of(relation.settings)
            if bounds is None:
                return 0
            # A number that not every round has is no reason for ever more of them.
            due = (
                rounds_to_add(values, found.made - len(values), bounds)
                for values in found.values.values()
            )
            return max(due, default=0)
    return 0


def _on_another_path(outcome: Outcome) -> bool:
    net_path = outcome.report.net_path
    return net_path is not None and net_path.state is PathState.WRONG
