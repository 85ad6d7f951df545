"""Judge a ratio of what some legs measured to what others did; and what every relation needs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from fabricproof.core.findings import Finding, as_notes
from fabricproof.core.measure import Table, Verdict
from fabricproof.core.units import at_size, size_label
from fabricproof.job.leg import Relation
from fabricproof.job.outcome import Outcome
from fabricproof.job.rounds import (
    LEAST,
    Decision,
    RatioStanding,
    RoundBounds,
    decide_rounds,
)
from fabricproof.traffic import PathState
from fabricproof.traffic.disturbance import Disturbance
from fabricproof.verdict.value import Judgement, Reference, Report, no_number

#: legs by name, each with one look at it
Looks = Mapping[str, Outcome]
Judge = Callable[[Relation, Looks], Report]
#: the numbers of one look at a relation by their labels, or why there are none
Values = Mapping[str, float] | Judgement
ValuesOf = Callable[[Relation, Looks], Values]

#: quantity -> the column of a table that has it
_COLUMNS = {"bandwidth": "bandwidth_mb_s", "latency": "latency_us"}

#: A number is no PASS where so many of its rounds left nothing, or had errors on their path: what
#: runs in turn has no row of its own, so that nobody else would say so.  Once may be chance.
MOST_CUT = 2

#: how several legs on one side of a ratio become one number
_COMBINE: Mapping[str, Callable[[Iterable[float]], float]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "median": median,
}


def judge_ratio(relation: Relation, looks: Looks) -> Report:
    """Judge one column of some legs over that of others.

    Settings:
        quantity: ``bandwidth`` or ``latency``.
        sizes: message sizes in bytes; the median of the ratios of all of them counts.
        over, under: names of legs above and below the line.
        combine: what becomes of several legs on one side: sum, max, min or median.
        scale: what every ratio is multiplied by, for a program that prints a part of what it moves;
            1 where absent.
        reference: a :class:`~fabricproof.verdict.value.Reference` in unit ``x``, as its fields.
        slack: what both sides may differ by all the same, in the quantity's own unit.
        most: a ratio above this is impossible; absent where there is no such limit.
        hint: what is usually wrong where it is red.
    """
    return judge_value(relation, looks, ratio_of)


def ratio_of(relation: Relation, looks: Looks) -> Values:
    """Return the ratio of one look at its legs, or why there is none."""
    wanted = relation.settings
    label = f"{wanted['quantity']}_{relation.name}"
    spoiled = spoiled_leg(relation, looks)
    if spoiled is not None:
        return not_judged(label, *spoiled)
    ratios = [
        _combined(wanted, "over", size, looks) / below
        for size in wanted["sizes"]
        if (below := _combined(wanted, "under", size, looks)) > 0
    ]
    if len(ratios) != len(wanted["sizes"]) or not all(map(math.isfinite, ratios)):
        sizes = ", ".join(
            "any size" if size is None else size_label(size) for size in wanted["sizes"]
        )
        reason = f"{' and '.join(relation.legs)} do not both have {wanted['quantity']} at {sizes}"
        return not_judged(label, Verdict.MISSING, reason)
    return {label: median(ratios) * wanted.get("scale", 1.0)}


def with_slack(relation: Relation, looks: Looks) -> Relation:
    """Return the relation with bounds no narrower than what its sides may differ by.

    How much of the ratio that is says the side below the line, in the first look at its legs.
    """
    settings = relation.settings
    slack, reference = settings.get("slack", 0.0), settings.get("reference")
    if not slack or not reference or any(name not in looks for name in settings["under"]):
        return relation
    measured = median(_combined(settings, "under", size, looks) for size in settings["sizes"])
    if not measured > 0:  # also where it is not there
        return relation
    share = slack * settings.get("scale", 1.0) / measured
    lower, upper = reference["lower"], reference["upper"]
    wider = {
        "lower": None if lower is None else min(lower, reference["value"] - share),
        "upper": None if upper is None else max(upper, reference["value"] + share),
    }
    return replace(relation, settings={**settings, "reference": {**reference, **wider}})


def judge_value(relation: Relation, looks: Looks, values_of: ValuesOf) -> Report:
    """Judge one number of a relation by all its rounds, or by its only look where it has none."""
    rounds = rounds_of(relation, looks, values_of)
    if isinstance(rounds, Judgement):
        return report_of(rounds)
    ((label, values),) = rounds.values.items()
    judgement = judge_rounds(label, values, rounds, relation)
    return replace(report_of(judgement), findings=rounds.findings())


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """The numbers of a relation, round by round.

    Attributes:
        values: label -> its number of each round that has one and whose legs nobody disturbed.
        made: how many rounds there were.
        lost: why whole rounds do not count.
        broken: why those of them do not whose legs ran and left nothing; and, of those that count,
            what rose on their path where errors did.
        disturbed: label -> what others took of the rounds that do not count for it.
    """

    values: Mapping[str, tuple[float, ...]]
    made: int
    lost: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    disturbed: Mapping[str, tuple[Disturbance, ...]] = field(default_factory=dict)

    def lost_of(self, label: str) -> tuple[str, ...]:
        """Return why rounds do not count for a number."""
        return (*self.lost, *(f"disturbed: {each.reason}" for each in self.disturbed_of(label)))

    def disturbed_of(self, label: str) -> tuple[Disturbance, ...]:
        """Return what others took of the rounds of a number."""
        return self.disturbed.get(label, ())

    def findings(self) -> tuple[Finding, ...]:
        """Return what is worth reading of several rounds."""
        shown = tuple(
            f"{label}, round by round: {', '.join(f'{each:.3g}' for each in values)} x"
            for label, values in self.values.items()
            if len(values) > 1
        )
        lost: Counter[str] = Counter(self.lost)
        for label in self.disturbed:  # of several numbers, as many rounds as it cost one of them
            lost |= Counter(self.lost_of(label))
        said = (f"a round that does not count: {why}" for why in lost.elements())
        return as_notes((*shown, *said))


def rounds_of(relation: Relation, looks: Looks, values_of: ValuesOf) -> Rounds | Judgement:
    """Return the numbers of the first look and of all rounds after it.

    A round that took another path, or is impossible, spoils the relation as its first look would.

    ``values_of`` returns the numbers of one look; a label that a look lacks has a round less.
    """
    first = values_of(relation, looks)
    if isinstance(first, Judgement):
        return first
    values: dict[str, list[float]] = {label: [] for label in first}
    lost: list[str] = []
    broken: list[str] = []
    disturbed: dict[str, list[Disturbance]] = {}
    made = 0
    for index, (mine, looked) in enumerate(each_round(relation, looks)):
        found = values_of(mine, looked) if index else first
        made += 1
        if isinstance(found, Judgement):
            if found.verdict is Verdict.INVALID:
                return found
            lost.append(found.reason)
            if found.verdict is Verdict.MISSING and looked.keys() >= {*mine.legs}:
                broken.append(found.reason)
            continue
        broken += _with_errors(looked) if index else []
        for label, value in found.items():
            disturbance = _disturbance(looked) if relation.turns else None
            if disturbance is not None:
                disturbed.setdefault(label, []).append(disturbance)
            else:
                values.setdefault(label, []).append(value)
    return Rounds(
        values={label: tuple(each) for label, each in values.items()},
        made=made,
        lost=tuple(lost),
        broken=tuple(broken),
        disturbed={label: tuple(each) for label, each in disturbed.items()},
    )


def _with_errors(looks: Looks) -> list[str]:
    """Return what rose on the path of a leg of one round, once a round; empty where nothing did."""
    paths = ((name, look.report.net_path) for name, look in looks.items())
    found = [
        f"leg {name}: errors rose while it ran: {path.reason}"
        for name, path in paths
        if path is not None and path.state is PathState.DISTURBED
    ]
    return found[:1]


def unless_cut(judgement: Judgement, why: Sequence[str], said: str) -> Judgement:
    """Return a PASS as UNJUDGED where ``why`` names enough rounds; ``said`` comes before them."""
    if judgement.verdict is not Verdict.PASS or len(why) < MOST_CUT:
        return judgement
    reason = f"{judgement.reason}; in {len(why)} {said}: {why[0]}"
    return replace(judgement, verdict=Verdict.UNJUDGED, reason=reason)


def each_round(relation: Relation, looks: Looks) -> Iterator[tuple[Relation, Looks]]:
    """Yield the legs of each round, and the relation between them: first looks, then in turn."""
    yield relation, {name: looks[name] for name in relation.legs if name in looks}
    in_turn = [looks[name].attempts for name in relation.turns.values() if name in looks]
    mine = replace(relation, legs=tuple(relation.turns))
    for index in range(max(map(len, in_turn), default=0)):
        yield mine, _round(relation, looks, index)


def _disturbance(looks: Looks) -> Disturbance | None:
    """Return what disturbed any leg of one round; None where nothing did."""
    found = (each.disturbances.spoils_round for look in looks.values() for each in look.attempts)
    return next((each for each in found if each is not None), None)


def _round(relation: Relation, looks: Looks, index: int) -> Looks:
    found = {}
    for leg, name in relation.turns.items():
        attempts = looks[name].attempts if name in looks else ()
        if index < len(attempts):
            found[leg] = looks[name].look(attempts[index])
    return found


def judge_rounds(
    label: str,
    values: tuple[float, ...],
    rounds: Rounds,
    relation: Relation,
    settings: Mapping[str, Any] | None = None,
) -> Judgement:
    """Judge one number by its rounds; one look alone counts where the relation has no turns."""
    settings = relation.settings if settings is None else settings
    bounds = bounds_of(settings)
    if not values:
        return _with_cause(not_judged(label, Verdict.UNJUDGED, _too_few(0, label, rounds)), rounds)
    if not relation.turns or bounds is None:
        return judge_against(label, values[0], settings)
    decision = decide_rounds(values, bounds)
    judged = judge_against(label, decision.centre, settings)
    span = f"{decision.low:.3g} to {decision.high:.3g} x in {decision.rounds} rounds"
    if decision.standing is not RatioStanding.OPEN:
        judged = replace(judged, reason=f"{judged.reason} ({span})")
        return unless_cut(judged, rounds.broken, "rounds a leg left nothing, or errors rose")
    reason = f"{_expected(decision.centre, settings)}; {_open(decision, label, rounds, bounds)}"
    return _with_cause(replace(judged, verdict=Verdict.UNJUDGED, reason=reason), rounds)


def _open(decision: Decision, label: str, rounds: Rounds, bounds: RoundBounds) -> str:
    if decision.rounds < LEAST:
        return _too_few(decision.rounds, label, rounds)
    near = [each for each in (bounds.lower, bounds.upper, bounds.most) if each is not None]
    limits = " and ".join(f"{each:.3g}" for each in near)
    told = decision.would_tell
    more = "no reasonable number of rounds" if told is None else f"some {told} rounds like these"
    without = ""
    if disturbed := rounds.disturbed_of(label):
        without = f"; {len(disturbed)} do not count, disturbed: {disturbed[0].reason}"
    return (
        f"{decision.rounds} rounds leave {decision.low:.3g} to {decision.high:.3g} x open and the "
        f"bound is {limits}: {more} would tell{without}"
    )


def _too_few(count: int, label: str, rounds: Rounds) -> str:
    lost = rounds.lost_of(label)
    why = f": {lost[0]}" if lost else ""
    return (
        f"{count} of {LEAST} rounds that it takes have a number that counts, {LEAST - count} more "
        f"are missing{why}"
    )


def _with_cause(judgement: Judgement, rounds: Rounds) -> Judgement:
    """Return a number marked as open, with who disturbed its rounds."""
    disturbed = rounds.disturbed_of(judgement.name)
    cause = disturbed[0].kind.value if disturbed else judgement.disturbance
    return replace(judgement, is_open=True, disturbance=cause)


def bounds_of(settings: Mapping[str, Any]) -> RoundBounds | None:
    """Return what a number is held against; None where nobody says."""
    if not settings.get("reference"):
        return None
    reference = Reference(**settings["reference"])
    return RoundBounds(lower=reference.lower, upper=reference.upper, most=settings.get("most"))


def _expected(value: float, settings: Mapping[str, Any]) -> str:
    reference = Reference(**settings["reference"])
    return f"{value:.3g} x of {reference.value:.3g} x expected ({reference.origin})"


def judge_against(label: str, value: float, settings: Mapping[str, Any]) -> Judgement:
    """Judge a ratio against the ``reference``, ``most`` and ``hint`` of ``settings``."""
    reference = Reference(**settings["reference"]) if settings.get("reference") else None
    most = settings.get("most")
    verdict, reason = _verdict(value, reference, most, str(settings.get("hint", "")))
    return Judgement(
        name=label,
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


def _verdict(
    value: float, reference: Reference | None, most: float | None, hint: str
) -> tuple[Verdict, str]:
    if most is not None and value > most:
        reason = f"{value:.3g} x is above {most:.3g} x: more than links and slots allow"
        return Verdict.INVALID, reason
    if reference is None:
        return Verdict.UNJUDGED, f"{value:.3g} x: nobody says what it should be"
    advice = f"; {hint}" if hint else ""
    said = f"{value:.3g} x of {reference.value:.3g} x expected ({reference.origin})"
    if reference.lower is not None and value < reference.lower:
        return Verdict.FAIL, f"{said}, below the lower bound {reference.lower:.3g}{advice}"
    if reference.upper is not None and value > reference.upper:
        return Verdict.FAIL, f"{said}, above the upper bound {reference.upper:.3g}{advice}"
    return Verdict.PASS, said


def _combined(wanted: Mapping[str, Any], side: str, size: int, looks: Looks) -> float:
    values = [value_at(looks[name], wanted["quantity"], size) for name in wanted[side]]
    return _COMBINE[wanted.get("combine", "sum")](values)


def value_at(look: Outcome, quantity: str, size: int | None) -> float:
    """Return what a leg measured for one message size, NaN where it did not."""
    name = at_size(quantity, size)
    found = (each.value for each in look.report.quantities if each.name == name)
    value = next(found, None)
    if value is None and look.attempts:
        # IMB's PingPong is judged by one of its two columns at each size, and has both.
        value = _in_table(look.attempts[-1].table, _COLUMNS.get(quantity, ""), size)
    return math.nan if value is None else value


def _in_table(table: Table | None, column: str, size: int | None) -> float | None:
    if table is None or not {"message_size", column} <= set(table.columns):
        return None
    rows = zip(table.column("message_size"), table.column(column), strict=True)
    return next((value for at, value in rows if at == size), None)


def spoiled_leg(relation: Relation, looks: Looks) -> tuple[Verdict, str] | None:
    """Return what keeps the relation from being judged: a leg without numbers that count.

    A leg that is only too slow has numbers, and so has one that nobody has a reference for.
    """
    for name in relation.legs:
        if name not in looks:
            return Verdict.MISSING, f"leg {name} was never planned"
        report = looks[name].report
        if report.verdict is Verdict.SKIPPED:
            return Verdict.SKIPPED, report.quantities[0].reason
        if report.verdict in {Verdict.INVALID, Verdict.MISSING}:
            reason = next(e.reason for e in report.quantities if e.verdict is report.verdict)
            return report.verdict, f"leg {name} is {report.verdict}: {reason}"
        foreign = next((each.foreign for each in looks[name].attempts if each.foreign), "")
        if foreign:
            return Verdict.UNJUDGED, f"leg {name}: {foreign}"
        net_path = report.net_path
        if net_path is None or net_path.state in {PathState.UNKNOWN, PathState.WRONG}:
            reason = net_path.reason if net_path else "no path was shown"
            return Verdict.UNJUDGED, f"leg {name}: {reason}"
    return None


def not_judged(label: str, verdict: Verdict, reason: str) -> Judgement:
    """Return the judgement of a relation that has no number."""
    return no_number(label, verdict, reason, "x")


def report_of(judgement: Judgement) -> Report:
    """Return the report that holds one judgement."""
    return Report(verdict=judgement.verdict, quantities=(judgement,))
