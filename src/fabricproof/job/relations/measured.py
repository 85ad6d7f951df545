"""A ratio or a balance by all its rounds, judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.disturbance import counted_seconds
from fabricproof.job.relation import Balance, Ratio, Relation
from fabricproof.job.relations.numbers import Looks, NoNumberError, ratio_of, require_sound
from fabricproof.job.relations.rounds import (
    LEAST,
    MOST_LOST,
    MOST_SECONDS,
    RatioStanding,
    RoundBounds,
    decide_rounds,
    rounds_to_add,
)
from fabricproof.job.relations.sharing import balance_of
from fabricproof.traffic import PathState
from fabricproof.traffic.disturbance import Disturbance
from fabricproof.verdict.value import Judgement, no_number

#: A number is no PASS where so many of its rounds left nothing, or had errors on their path: what
#: runs in turn has no row of its own, so that nobody else would say so.  Once may be chance.
MOST_CUT = 2

Measured = Ratio | Balance


@dataclass(kw_only=True)
class Rounds:
    """The numbers of a relation, round by round.

    Attributes:
        values: of each round that has a number and that nobody disturbed.
        made: how many rounds there were.
        lost: why the others do not count.
        broken: rounds whose legs ran and left nothing, and rounds with errors on their path.
        disturbed: who disturbed a round.
        seconds: what those after the first took.
    """

    values: list[float] = field(default_factory=list)
    made: int = 0
    lost: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    disturbed: list[Disturbance] = field(default_factory=list)
    seconds: float = 0.0

    def to_add(self, what: Measured) -> int:
        """Return how many rounds the job should add now."""
        bounds = _bounds(what)
        if bounds is None:
            return 0
        return rounds_to_add(self.values, self.made - len(self.values), bounds, self.seconds)

    def notes(self) -> list[str]:
        """Return what is worth reading of several rounds."""
        shown = ", ".join(f"{each:.3g}" for each in self.values)
        said = [f"round by round: {shown} x"] if len(self.values) > 1 else []
        return [*said, *(f"a round that does not count: {why}" for why in self.lost)]


def name_of(relation: Relation, what: Measured) -> str:
    """Return the name of the relation's number: ``bandwidth_scaling``."""
    quantity = what.over.quantity if isinstance(what, Ratio) else "balance"
    return f"{quantity}_{relation.name}"


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
        if index:
            rounds.broken += _errors(looked)
        if relation.turns and (disturbance := _disturbance(looked)) is not None:
            rounds.disturbed.append(disturbance)
            rounds.lost.append(f"disturbed: {disturbance.reason}")
        else:
            rounds.values.append(value)
    return rounds


def _each_round(relation: Relation, looks: Looks) -> Iterator[tuple[tuple[str, ...], Looks]]:
    """Yield each round's legs and looks: the first look, then what ran in turn."""
    yield relation.legs, {name: looks[name] for name in relation.legs}
    in_turn = {leg: looks[name] for leg, name in relation.turns.items() if name in looks}
    for index in range(max((len(each.attempts) for each in in_turn.values()), default=0)):
        yield (
            tuple(relation.turns),
            {
                leg: each.look(each.attempts[index])
                for leg, each in in_turn.items()
                if index < len(each.attempts)
            },
        )


def _errors(looks: Looks) -> list[str]:
    """Return what rose on the path of a leg of one round, once a round."""
    paths = ((name, look.report.net_path) for name, look in looks.items())
    return [
        f"leg {name}: errors rose while it ran: {path.reason}"
        for name, path in paths
        if path is not None and path.state is PathState.DISTURBED
    ][:1]


def _disturbance(looks: Looks) -> Disturbance | None:
    """Return what disturbed any leg of one round; None if nothing did."""
    found = (each.disturbances.spoils_round for look in looks.values() for each in look.attempts)
    return next((each for each in found if each is not None), None)


def judge_rounds(
    name: str, what: Measured, rounds: Rounds, *, in_turn: bool, hint: str = ""
) -> Judgement:
    """Judge one number by its rounds; one look alone counts if nothing runs in turn."""
    bounds = _bounds(what)
    if rounds.values and (not in_turn or bounds is None):
        return judge_ratio(name, rounds.values[0], what, hint)
    if bounds is None or len(rounds.values) < LEAST:
        few = no_number(name, Verdict.UNJUDGED, _too_few(rounds), "x")
        value = decide_rounds(rounds.values, bounds).centre if rounds.values and bounds else None
        return _left_open(replace(few, value=value), rounds)
    decision = decide_rounds(rounds.values, bounds)
    judged = judge_ratio(name, decision.centre, what, hint)
    span = f"{decision.low:.3g} to {decision.high:.3g} x in {decision.rounds} rounds"
    if decision.standing is RatioStanding.OPEN:
        told = decision.would_tell
        more = f"some {told} rounds like these" if told else "no reasonable number of rounds"
        said = f"{_against(decision.centre, what)}; open: {span}; {more} would tell"
        return _left_open(replace(judged, reason=f"{said}{_spent(rounds)}"), rounds)
    reason = f"{judged.reason} ({span})"
    if judged.verdict is not Verdict.PASS or len(rounds.broken) < MOST_CUT:
        return replace(judged, reason=reason)
    cut = f"in {len(rounds.broken)} rounds a leg left nothing, or errors rose: {rounds.broken[0]}"
    return replace(judged, verdict=Verdict.UNJUDGED, reason=f"{reason}; {cut}")


def _left_open(judgement: Judgement, rounds: Rounds) -> Judgement:
    who = rounds.disturbed[0].kind.value if rounds.disturbed else judgement.disturbance
    return replace(judgement, verdict=Verdict.UNJUDGED, is_open=True, disturbance=who)


def _too_few(rounds: Rounds) -> str:
    counted = len(rounds.values)
    return (
        f"{counted} of {LEAST} rounds that it takes have a number that counts, {LEAST - counted} "
        f"more are missing{_spent(rounds)}"
    )


def _spent(rounds: Rounds) -> str:
    """Return what a relation that stayed open cost, and why rounds do not count."""
    why = f"; {len(rounds.lost)} do not count: {rounds.lost[0]}" if rounds.lost else ""
    is_spent = len(rounds.lost) >= MOST_LOST or rounds.seconds >= MOST_SECONDS
    budget = f"; its budget is spent: {rounds.made} rounds in {rounds.seconds:.0f} s"
    return (budget if is_spent else "") + why


def _bounds(what: Measured) -> RoundBounds | None:
    if what.reference is None:
        return None
    return RoundBounds(lower=what.reference.lower, upper=what.reference.upper, most=what.most)


def _against(value: float, what: Measured) -> str:
    assert what.reference is not None, "asked for with a reference alone"
    return f"{value:.3g} x of {what.reference.value:.3g} x expected ({what.reference.origin})"


def judge_ratio(name: str, value: float, what: Measured, hint: str = "") -> Judgement:
    """Judge one number: possible first, then good enough."""
    reference, most = what.reference, what.most
    if most is not None and value > most:
        verdict = Verdict.INVALID
        reason = f"{value:.3g} x is above {most:.3g} x: more than links and slots allow"
    elif reference is None:
        verdict, reason = Verdict.UNJUDGED, f"{value:.3g} x: nobody says what it should be"
    else:
        verdict, reason = Verdict.PASS, _against(value, what)
        low, high = reference.lower, reference.upper
        if low is not None and value < low:
            verdict, reason = Verdict.FAIL, f"{reason}, below the lower bound {low:.3g}"
        elif high is not None and value > high:
            verdict, reason = Verdict.FAIL, f"{reason}, above the upper bound {high:.3g}"
        advice = "; ".join(filter(None, (hint, what.hint)))
        reason += f"; {advice}" if advice and verdict is Verdict.FAIL else ""
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
        lower=reference.lower if reference else None,
        upper=reference.upper if reference else None,
        origin=reference.origin if reference else None,
    )
