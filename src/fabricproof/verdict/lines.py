"""Judgements as lines for a person: what is named one by one, the rest counted."""

from __future__ import annotations

from collections.abc import Iterable

from fabricproof.core.measure import Quantity, Verdict
from fabricproof.core.units import by_key


def shown(judgements: Iterable[Quantity]) -> list[Quantity]:
    """Return the judgements that a person should read one by one, in their order.

    Those a summary names, and of the other points of the curve the worst INVALID and the worst
    FAIL of each quantity; :func:`curve_summary` counts the rest.
    """
    judgements = list(judgements)
    worst: dict[tuple[Verdict, str], Quantity] = {}
    for each in judgements:
        if each.named or each.verdict not in {Verdict.INVALID, Verdict.FAIL}:
            continue
        key = (each.verdict, each.unit)
        if key not in worst or _misses_by(each) > _misses_by(worst[key]):
            worst[key] = each
    chosen = set(worst.values())
    return [each for each in judgements if each.named or each in chosen]


def _misses_by(judgement: Quantity) -> float:
    """Return how far off a number is, as the larger of value over limit and limit over value."""
    is_invalid = judgement.verdict is Verdict.INVALID
    limit = judgement.ceiling if is_invalid else judgement.reference
    if limit is None or judgement.value is None or judgement.value <= 0:
        return float("inf")
    return max(judgement.value / limit, limit / judgement.value)


def curve_summary(judgements: Iterable[Quantity]) -> list[str]:
    """Return one line per verdict and quantity for the points that :func:`shown` leaves out."""
    judgements = list(judgements)
    seen = set(shown(judgements))
    points = by_key(
        ((each.verdict, each.unit), each.name) for each in judgements if each not in seen
    )
    return [
        f"{verdict:<9}{len(names)} more points of the curve, {names[0]} to {names[-1]}"
        if len(names) > 1
        else f"{verdict:<9}1 more point of the curve, {names[0]}"
        for (verdict, _), names in points.items()
    ]


def format_value(value: float | None, unit: str) -> str:
    """Return a number with its unit for a person; a dash if there is none."""
    if value is None:
        return "-"
    digits = f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{digits} {unit}".strip() if unit != "1" else f"{value:.3f}"


def lines_of(judgements: Iterable[Quantity], notes: Iterable[object]) -> list[str]:
    """Return a line for each judgement that is shown, for the rest of the curve, for each note."""
    judgements = list(judgements)
    named = [
        f"{each.verdict:<9}{each.name:<18}{format_value(each.value, each.unit):>14}  {each.reason}"
        for each in shown(judgements)
    ]
    return [*named, *curve_summary(judgements), *(f"note     {each}" for each in notes)]
