"""What several subcommands print the same way: judgements as a table, as data, as a status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fabricproof.core.errors import ExitStatus
from fabricproof.core.measure import Verdict, texts_of
from fabricproof.verdict.value import Judgement, Report

#: verdict -> exit status of a command whose worst verdict it is
STATUSES: dict[Verdict, ExitStatus] = {
    Verdict.PASS: ExitStatus.PASS,
    Verdict.FAIL: ExitStatus.FAIL,
    Verdict.INVALID: ExitStatus.INVALID,
    Verdict.MISSING: ExitStatus.MISSING,
    Verdict.UNJUDGED: ExitStatus.UNJUDGED,
    Verdict.SKIPPED: ExitStatus.NOTHING_JUDGED,
}


def judgement_record(judgement: Judgement) -> dict[str, Any]:
    """Return ``judgement`` as plain data, the form of ``--json``."""
    return {
        "name": judgement.name,
        "value": judgement.value,
        "unit": judgement.unit,
        "message_size": judgement.message_size,
        "verdict": judgement.verdict.value,
        "reason": judgement.reason,
        "ceiling": judgement.ceiling,
        "ceiling_name": judgement.ceiling_name,
        "reference": judgement.reference,
        "bounds": {"lower": judgement.lower, "upper": judgement.upper},
        "origin": judgement.origin,
        "named": judgement.named,
    }


def report_record(report: Report) -> dict[str, Any]:
    """Return ``report`` as plain data: verdict, quantities, findings and the road."""
    road = report.road
    return {
        "verdict": report.verdict.value,
        "quantities": [judgement_record(each) for each in report.quantities],
        "findings": texts_of(report.findings),
        "road": None
        if road is None
        else {
            "state": road.state.value,
            "reason": road.reason,
            "moved_bytes": dict(road.moved_bytes or {}),
        },
    }


def shown(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Return the judgements that a person should read one by one, in their order.

    Those a summary names, and of the other points of the curve the worst INVALID and the worst
    FAIL of each quantity; :func:`curve_summary` counts the rest.
    """
    judgements = list(judgements)
    worst: dict[tuple[Verdict, str], Judgement] = {}
    for each in judgements:
        if each.named or each.verdict not in {Verdict.INVALID, Verdict.FAIL}:
            continue
        key = (each.verdict, each.unit)
        if key not in worst or _misses_by(each) > _misses_by(worst[key]):
            worst[key] = each
    chosen = set(worst.values())
    return [each for each in judgements if each.named or each in chosen]


def _misses_by(judgement: Judgement) -> float:
    """Return how far off a number is, as the larger of value over limit and limit over value."""
    is_invalid = judgement.verdict is Verdict.INVALID
    limit = judgement.ceiling if is_invalid else judgement.reference
    if limit is None or judgement.value is None or judgement.value <= 0:
        return float("inf")
    return max(judgement.value / limit, limit / judgement.value)


def curve_summary(judgements: Iterable[Judgement]) -> list[str]:
    """Return one line per verdict and quantity for the points that :func:`shown` leaves out."""
    judgements = list(judgements)
    seen = set(shown(judgements))
    points: dict[tuple[Verdict, str], list[str]] = {}
    for each in judgements:
        if each not in seen:
            points.setdefault((each.verdict, each.unit), []).append(each.name)
    return [
        f"{verdict:<9}{len(names)} more points of the curve, {names[0]} to {names[-1]}"
        if len(names) > 1
        else f"{verdict:<9}1 more point of the curve, {names[0]}"
        for (verdict, _), names in points.items()
    ]


def format_value(value: float | None, unit: str) -> str:
    """Return a number with its unit for a person; a dash where there is none."""
    if value is None:
        return "-"
    digits = f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{digits} {unit}".strip() if unit != "1" else f"{value:.3f}"
