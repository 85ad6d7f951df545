"""Judge a ratio of what some legs measured to what others did; and what every relation needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

from fabricproof.campaign.outcome import Outcome
from fabricproof.campaign.relation import Relation
from fabricproof.measure import Verdict
from fabricproof.reference import Reference
from fabricproof.road import RoadState
from fabricproof.units import size_label
from fabricproof.verdict import Judgement, Report

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
        scale: what every ratio is multiplied by, for a program that prints a part of what it moves;
            1 where absent.
        reference: a :class:`~fabricproof.reference.Reference` in unit ``x``, as its fields.
        most: a ratio above this is impossible; absent where there is no such limit.
        hint: what is usually wrong where it is red.
    """
    wanted = relation.settings
    label = f"{wanted['quantity']}_{relation.name}"
    spoiled = spoiled_leg(relation, looks)
    if spoiled is not None:
        return report_of(not_judged(label, *spoiled))
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
        return report_of(not_judged(label, Verdict.MISSING, reason))
    value = median(ratios) * wanted.get("scale", 1.0)
    return report_of(judge_against(label, value, wanted))


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
        road = report.road
        if road is None or road.state in {RoadState.UNKNOWN, RoadState.WRONG}:
            reason = road.reason if road else "no road was shown"
            return Verdict.UNJUDGED, f"leg {name}: {reason}"
    return None


def not_judged(label: str, verdict: Verdict, reason: str) -> Judgement:
    """Return the judgement of a relation that has no number."""
    return Judgement(
        name=label, value=None, unit="x", message_size=None, verdict=verdict, reason=reason
    )


def report_of(judgement: Judgement) -> Report:
    """Return the report that holds one judgement."""
    return Report(verdict=judgement.verdict, quantities=(judgement,))
