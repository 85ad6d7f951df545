"""Judge what is to hold between the legs of a job, and say what is to run again for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from fabricproof.core.findings import as_notes
from fabricproof.core.measure import Verdict, worst
from fabricproof.job.evidence.disturbance import counted_seconds, disturbances_of
from fabricproof.job.leg import row_leg
from fabricproof.job.outcome import DOUBTFUL, Outcome, needs_second_look, weighed
from fabricproof.job.relation import Balance, Frames, OwnChoice, Ratio, Relation, owned_legs
from fabricproof.job.relations.measures import (
    Looks,
    NoNumberError,
    balance_of,
    judge_frames,
    judge_threshold,
    legs_in_words,
    ratio_of,
    require_sound,
    shares_of,
)
from fabricproof.job.relations.own_choice import judge_own_choice, legs_in_question
from fabricproof.job.relations.rounds import (
    LEAST,
    MOST_LOST,
    MOST_SECONDS,
    RatioStanding,
    RoundBounds,
    decide_rounds,
    rounds_to_add,
)
from fabricproof.traffic import PathState
from fabricproof.traffic.disturbance import Disturbance, Disturbances
from fabricproof.verdict.value import Judgement, Report, missing, no_number

#: A number is no PASS if so many of its rounds left nothing, or had errors on their path: what
#: runs in turn has no row of its own, so that nobody else would say so.  Once may be chance.
MOST_CUT = 2

Measured = Ratio | Balance


@dataclass(kw_only=True)
class Rounds:
    """The numbers of a relation, round by round."""

    values: list[float] = field(default_factory=list)  # of rounds that nobody disturbed
    made: int = 0
    lost: list[str] = field(default_factory=list)  # why the others do not count
    broken: list[str] = field(default_factory=list)  # a leg left nothing, or errors rose
    disturbed: list[Disturbance] = field(default_factory=list)
    seconds: float = 0.0  # of those after the first

    @property
    def spent(self) -> str:
        """What a relation that stayed open cost, and why rounds do not count."""
        why = f"; {len(self.lost)} do not count: {self.lost[0]}" if self.lost else ""
        if len(self.lost) < MOST_LOST and self.seconds < MOST_SECONDS:
            return why
        return f"; its budget is spent: {self.made} rounds in {self.seconds:.0f} s{why}"


def measure(relation: Relation, what: Measured, looks: Looks) -> Rounds:
    """Return the numbers of the first look and of all rounds after it.

    Raises:
        NoNumberError: the first look has none, or a round took another path or is impossible.
    """
    rounds = Rounds()
    require_sound(relation.legs, looks)
    for index, (legs, looked) in enumerate(_each_round(relation, looks)):
        rounds.made += 1
        if index:
            seconds = (counted_seconds(each.ranks).values() for each in looked.values())
            rounds.seconds += sum(max(each, default=0.0) for each in seconds)
        try:
            require_sound(legs, looked)
            value = ratio_of(what, looked) if isinstance(what, Ratio) else balance_of(what, looked)
        except NoNumberError as error:
            if not index or error.verdict is Verdict.INVALID:
                raise
            rounds.lost.append(error.reason)
            if error.verdict is Verdict.MISSING and looked.keys() >= {*legs}:
                rounds.broken.append(error.reason)
            continue
        rose = [
            f"leg {name}: errors rose while it ran: {path.reason}"
            for name, look in looked.items()
            if (path := look.report.net_path) and path.state is PathState.DISTURBED
        ]
        rounds.broken += rose[:1] if index else []
        others = [each.disturbances for look in looked.values() for each in look.attempts]
        taken = next((each.spoils_round for each in others if each.spoils_round), None)
        if relation.turns and taken is not None:
            rounds.disturbed.append(taken)
            rounds.lost.append(f"disturbed: {taken.reason}")
        else:
            rounds.values.append(value)
    return rounds


def _each_round(relation: Relation, looks: Looks) -> Iterator[tuple[tuple[str, ...], Looks]]:
    """Yield each round's legs and looks: the first look, then what ran in turn."""
    yield relation.legs, {name: looks[name] for name in relation.legs}
    in_turn = {leg: looks[name] for leg, name in relation.turns.items() if name in looks}
    for index in range(max((len(each.attempts) for each in in_turn.values()), default=0)):
        looked = {
            leg: each.look(each.attempts[index])
            for leg, each in in_turn.items()
            if index < len(each.attempts)
        }
        yield tuple(relation.turns), looked


def _bounds(what: Measured) -> RoundBounds | None:
    if what.reference is None:
        return None
    return RoundBounds(lower=what.reference.lower, upper=what.reference.upper, most=what.most)


def judge_rounds(
    name: str, what: Measured, rounds: Rounds, *, in_turn: bool, hint: str = ""
) -> Judgement:
    """Judge one number by its rounds; one look alone counts if nothing runs in turn."""
    bounds = _bounds(what)
    if rounds.values and (not in_turn or bounds is None):
        return judge_ratio(name, rounds.values[0], what, hint)
    decision = decide_rounds(rounds.values, bounds) if rounds.values and bounds else None
    if decision is None or decision.rounds < LEAST:
        counted = len(rounds.values)
        reason = (
            f"{counted} of {LEAST} rounds that it takes have a number that counts, "
            f"{LEAST - counted} more are missing{rounds.spent}"
        )
        judged = no_number(name, Verdict.UNJUDGED, reason, "x")
        judged = replace(judged, value=decision.centre if decision else None)
    else:
        judged = judge_ratio(name, decision.centre, what, hint)
        span = f"{decision.low:.3g} to {decision.high:.3g} x in {decision.rounds} rounds"
        if decision.standing is not RatioStanding.OPEN:
            judged = replace(judged, reason=f"{judged.reason} ({span})")
            if judged.verdict is not Verdict.PASS or len(rounds.broken) < MOST_CUT:
                return judged
            cut = f"in {len(rounds.broken)} rounds a leg left nothing, or errors rose"
            reason = f"{judged.reason}; {cut}: {rounds.broken[0]}"
            return replace(judged, verdict=Verdict.UNJUDGED, reason=reason)
        some = f"some {decision.would_tell} rounds like these"
        more = some if decision.would_tell else "no reasonable number of rounds"
        said = f"{_against(decision.centre, what)}; open: {span}; {more} would tell"
        judged = replace(judged, reason=f"{said}{rounds.spent}")
    who = rounds.disturbed[0].kind.value if rounds.disturbed else judged.disturbance
    return replace(judged, verdict=Verdict.UNJUDGED, is_open=True, disturbance=who)


def _against(value: float, what: Measured) -> str:
    assert what.reference is not None, "asked for with a reference alone"
    return f"{value:.3g} x of {what.reference.value:.3g} x expected ({what.reference.origin})"


def judge_ratio(name: str, value: float, what: Measured, hint: str = "") -> Judgement:
    """Judge one number: possible first, then good enough."""
    reference, most = what.reference, what.most
    low, high = (reference.lower, reference.upper) if reference else (None, None)
    verdict = Verdict.PASS
    if most is not None and value > most:
        verdict = Verdict.INVALID
        reason = f"{value:.3g} x is above {most:.3g} x: more than links and slots allow"
    elif reference is None:
        verdict, reason = Verdict.UNJUDGED, f"{value:.3g} x: nobody says what it should be"
    else:
        reason = _against(value, what)
        if low is not None and value < low:
            verdict, reason = Verdict.FAIL, f"{reason}, below the lower bound {low:.3g}"
        elif high is not None and value > high:
            verdict, reason = Verdict.FAIL, f"{reason}, above the upper bound {high:.3g}"
        if verdict is Verdict.FAIL:
            reason = "; ".join(filter(None, (reason, hint, what.hint)))
    return Judgement(
        name=name,
        value=value,
        unit="x",
        message_size=None,
        verdict=verdict,
        reason=reason,
        ceiling=most,
        ceiling_name="what the links and slots allow" if most is not None else None,
        reference=reference.value if reference else None,
        lower=low,
        upper=high,
        origin=reference.origin if reference else None,
    )


def judge_relations(
    relations: Sequence[Relation], outcomes: Sequence[Outcome]
) -> tuple[Outcome, ...]:
    """Judge every relation of a job."""
    return tuple(judge_relation(relation, outcomes) for relation in relations)


def judge_relation(relation: Relation, outcomes: Sequence[Outcome]) -> Outcome:
    """Judge ``relation``: by all its rounds, or on the first and the latest look at its legs."""
    mine = [each for each in outcomes if each.leg.name in relation.legs]
    try:
        report = _judged(relation, _looks(relation, outcomes, 0))
        again = any(len(each.attempts) > 1 for each in mine)
        if again and not isinstance(relation.what, OwnChoice):
            last = _judged(relation, _looks(relation, outcomes, -1))
            in_rounds = [each.name for each in last.quantities[:1] if relation.turns]
            report = weighed([report, last], needs_proven_path=False, in_rounds=in_rounds)
    except Exception as error:  # the records of the legs are worth more
        report = missing([relation.name], f"its judge itself failed: {error!r}")
    row = row_leg(relation.name, relation.suite, relation.program, relation.rails)
    nodes = {rank.node for each in mine for rank in each.ranks}
    return Outcome(leg=row, attempts=(), report=report, nodes=tuple(sorted(nodes)))


def _looks(relation: Relation, outcomes: Sequence[Outcome], index: int) -> Looks:
    """Return one look at each leg of the relation, and all rounds of those that run in turn.

    An own choice is decided from the spread of times, and so takes every attempt.
    """
    whole = {*relation.turns.values()}
    if isinstance(relation.what, OwnChoice):
        whole |= {*relation.legs}
    return {
        each.leg.name: each.look(each.attempts[index])
        if each.attempts and each.leg.name not in whole
        else each
        for each in outcomes
        if each.leg.name in {*relation.legs, *whole}
    }


def _judged(relation: Relation, looks: Looks) -> Report:
    what, name = relation.what, "frame"
    try:
        if isinstance(what, OwnChoice):
            name, report = "own_choice", judge_own_choice(what, looks)
        elif isinstance(what, Frames):
            found = judge_frames(relation, what, looks)
            report = Report(verdict=found.verdict, quantities=(found,))
        else:
            name = what.over.quantity if isinstance(what, Ratio) else "balance"
            name = f"{name}_{relation.name}"
            report = _measured(name, relation, what, looks)
    except NoNumberError as error:
        name = "own_choice" if isinstance(what, OwnChoice) else name
        number = no_number(name, error.verdict, error.reason, "x")
        return Report(verdict=number.verdict, quantities=(number,))
    # Rounds that were disturbed do not count, and so explain nothing.
    others = [attempt.disturbances for look in looks.values() for attempt in look.attempts]
    others = [each for each in others if not relation.turns or each.spoils_round is None]
    taken = Disturbances(
        found=tuple(found for each in others for found in each.found),
        unknown=tuple(dict.fromkeys(word for each in others for word in each.unknown)),
    )
    objections, notes = disturbances_of(report, taken)
    return report.objected(objections, *notes)


def _measured(name: str, relation: Relation, what: Measured, looks: Looks) -> Report:
    rounds = measure(relation, what, looks)
    if isinstance(what, Ratio):
        words = legs_in_words(what, looks)
        more, said = None, [f"best first: {words}"] if words else []
    else:
        shares = shares_of(what, looks)
        words = "large messages: " + ", ".join(f"{rail} {of:.1%}" for rail, of in shares.items())
        more, threshold = judge_threshold(relation.name, what, looks)
        said = [threshold]
    if len(rounds.values) > 1:
        said.append(f"round by round: {', '.join(f'{each:.3g}' for each in rounds.values)} x")
    said += [f"a round that does not count: {why}" for why in rounds.lost]
    number = judge_rounds(name, what, rounds, in_turn=bool(relation.turns), hint=words)
    quantities = (number, more) if more else (number,)
    return Report(
        verdict=worst([each.verdict for each in quantities]),
        quantities=quantities,
        findings=as_notes(said),
    )


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
        mine = [each for each in outcomes if each.leg.name in relation.legs]
        paths = [each.report.net_path for each in mine]
        hopeless = any(path is not None and path.state is PathState.WRONG for path in paths)
        if hopeless or any(len(each.attempts) != 1 for each in mine):
            continue
        report = judge_relation(relation, outcomes).report
        if report.verdict not in DOUBTFUL:
            continue
        # What has rounds is decided by more of them, and that is no second look: the first number.
        rest = report.quantities[1:] if relation.turns else report.quantities
        is_red = any(each.value is not None and each.verdict in DOUBTFUL for each in rest)
        if isinstance(relation.what, OwnChoice):
            looks = {each.leg.name: each for each in mine}
            doubtful |= legs_in_question(relation.what, looks) if is_red else set()
            continue
        # What a leg lost at first is not held against what its neighbours did minutes before.
        in_parts = bool(doubtful & {*relation.legs})
        in_parts &= not relation.turns or report.quantities[0].value is None
        doubtful |= {*relation.legs} if is_red or in_parts else set()
    return frozenset(doubtful)


def rounds_due(
    relations: Sequence[Relation], outcomes: Sequence[Outcome], most_legs: float = math.inf
) -> tuple[str, ...]:
    """Return the names of legs to run in turn, in that order, until their relations are decided.

    Every other round runs backwards, so that what gets slower with time hits both sides alike.
    ``most_legs`` still fit in the job's time; whole rounds that do not are not due.
    """
    due: dict[tuple[str, ...], int] = {}
    for relation in relations:
        if names := tuple(relation.turns.values()):
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
    bounds = _bounds(relation.what)
    if bounds is None:
        return 0
    for index in (0, -1):
        try:
            rounds = measure(relation, relation.what, _looks(relation, outcomes, index))
        except NoNumberError:
            continue
        lost = rounds.made - len(rounds.values)
        return rounds_to_add(rounds.values, lost, bounds, rounds.seconds)
    return 0
