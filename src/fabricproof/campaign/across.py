"""Judge what is to hold between the legs of a job: outcomes in, outcomes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from fabricproof.campaign.outcome import DOUBTFUL, Attempt, Outcome, needs_second_look
from fabricproof.campaign.relation import Relation
from fabricproof.measure import Verdict
from fabricproof.reference import Reference
from fabricproof.road import RoadState
from fabricproof.units import size_label
from fabricproof.verdict import Judgement, Report, missing

#: legs by name, each with one look at it
Looks = Mapping[str, Outcome]
Judge = Callable[[Relation, Looks], Report]

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
        reference: a :class:`~fabricproof.reference.Reference` in unit ``x``, as its fields.
        most: a ratio above this is impossible; absent where there is no such limit.
        hint: what is usually wrong where it is red.
    """
    wanted = relation.settings
    label = f"{wanted['quantity']}_{relation.name}"
    spoiled = _spoiled_leg(relation, looks)
    if spoiled is not None:
        return _one(_not_judged(label, *spoiled))
    ratios = [
        _combined(wanted, "over", size, looks) / below
        for size in wanted["sizes"]
        if (below := _combined(wanted, "under", size, looks)) > 0
    ]
    if len(ratios) != len(wanted["sizes"]) or not all(map(math.isfinite, ratios)):
        sizes = ", ".join(size_label(size) for size in wanted["sizes"])
        reason = f"{' and '.join(relation.legs)} do not both have {wanted['quantity']} at {sizes}"
        return _one(_not_judged(label, Verdict.MISSING, reason))
    return _one(judge_against(label, median(ratios), wanted))


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
    name = quantity if size is None else f"{quantity}_{size_label(size)}"
    found = (each.value for each in look.report.quantities if each.name == name)
    value = next(found, None)
    return math.nan if value is None else value


def _spoiled_leg(relation: Relation, looks: Looks) -> tuple[Verdict, str] | None:
    """Return what keeps the relation from being judged: a leg without numbers that count.

    A leg that is only too slow has numbers, and so has one that nobody has a reference for.
    """
    for name in relation.legs:
        if name not in looks:
            return Verdict.MISSING, f"leg {name} was never planned"
        report = looks[name].report
        if report.verdict in {Verdict.INVALID, Verdict.MISSING}:
            reason = next(e.reason for e in report.quantities if e.verdict is report.verdict)
            return report.verdict, f"leg {name} is {report.verdict}: {reason}"
        road = report.road
        if road is None or road.state in {RoadState.UNKNOWN, RoadState.WRONG}:
            reason = road.reason if road else "no road was shown"
            return Verdict.UNJUDGED, f"leg {name}: {reason}"
    return None


def _not_judged(label: str, verdict: Verdict, reason: str) -> Judgement:
    return Judgement(
        name=label, value=None, unit="x", message_size=None, verdict=verdict, reason=reason
    )


def _one(judgement: Judgement) -> Report:
    return Report(verdict=judgement.verdict, quantities=(judgement,))


#: how each kind of relation is judged
JUDGES: dict[str, Judge] = {"ratio": judge_ratio}


def judge_relation(relation: Relation, outcomes: Sequence[Outcome]) -> Outcome:
    """Judge ``relation`` on the first and on the latest look at its legs; one PASS clears it.

    Args:
        relation: what is to hold.
        outcomes: of all legs of the job.
    """
    mine = [outcome for outcome in outcomes if outcome.leg.name in relation.legs]
    nodes = {rank.node for each in mine for attempt in each.attempts for rank in attempt.ranks}
    judge = JUDGES.get(relation.kind)
    if judge is None:
        report = missing([relation.name], f"nobody judges relations of kind {relation.kind!r}")
        return Outcome(leg=relation.as_leg(), attempts=(), report=report)
    first = judge(relation, _looks(mine, 0))
    report = first
    if any(len(outcome.attempts) > 1 for outcome in mine):
        report = _weighed(first, judge(relation, _looks(mine, -1)))
    return Outcome(leg=relation.as_leg(), attempts=(), report=report, nodes=tuple(sorted(nodes)))


def _weighed(first: Report, last: Report) -> Report:
    if first.verdict is Verdict.PASS:
        return first
    if last.verdict is Verdict.PASS:
        note = f"second look: passed; the first said {first.verdict}: {first.quantities[0].reason}"
    else:
        note = f"second look: red again on the same nodes; the first said {first.verdict}"
    return replace(last, findings=(note, *last.findings))


def _looks(outcomes: Sequence[Outcome], index: int) -> Looks:
    return {
        outcome.leg.name: _look(outcome, outcome.attempts[index]) if outcome.attempts else outcome
        for outcome in outcomes
    }


def _look(outcome: Outcome, attempt: Attempt) -> Outcome:
    return replace(outcome, attempts=(attempt,), report=attempt.report)


def judge_relations(
    relations: Sequence[Relation], outcomes: Sequence[Outcome]
) -> tuple[Outcome, ...]:
    """Judge every relation of a job."""
    return tuple(judge_relation(relation, outcomes) for relation in relations)


def legs_to_repeat(relations: Sequence[Relation], outcomes: Sequence[Outcome]) -> frozenset[str]:
    """Return the names of the legs that deserve a second attempt before anything is called red.

    A leg that is doubtful by itself does, and so do all legs of a relation that is: unless one of
    them took another road, for then no other number would help.
    """
    doubtful = {outcome.leg.name for outcome in outcomes if needs_second_look(outcome)}
    for relation in relations:
        result = judge_relation(relation, outcomes)
        mine = [outcome for outcome in outcomes if outcome.leg.name in relation.legs]
        hopeless = any(_on_another_road(outcome) for outcome in mine)
        unrepeated = all(len(outcome.attempts) == 1 for outcome in mine)
        has_value = any(each.value is not None for each in result.report.quantities)
        if result.report.verdict in DOUBTFUL and has_value and not hopeless and unrepeated:
            doubtful |= set(relation.legs)
    return frozenset(doubtful)


def _on_another_road(outcome: Outcome) -> bool:
    road = outcome.report.road
    return road is not None and road.state is RoadState.WRONG
