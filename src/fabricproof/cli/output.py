"""What several subcommands print the same way: judgements as a table, as data, as a status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fabricproof.errors import ExitStatus
from fabricproof.measure import Verdict
from fabricproof.verdict import Judgement, Report

#: verdict -> exit status of a command whose worst verdict it is
STATUSES: dict[Verdict, ExitStatus] = {
    Verdict.PASS: ExitStatus.PASS,
    Verdict.FAIL: ExitStatus.FAIL,
    Verdict.INVALID: ExitStatus.INVALID,
    Verdict.MISSING: ExitStatus.MISSING,
    Verdict.UNJUDGED: ExitStatus.UNJUDGED,
    Verdict.SKIPPED: ExitStatus.NOTHING_JUDGED,
}

#: verdict -> rich style; the word itself always stands beside the colour
STYLES: dict[Verdict, str] = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.INVALID: "bold magenta",
    Verdict.MISSING: "bold yellow",
    Verdict.UNJUDGED: "yellow",
    Verdict.SKIPPED: "dim",
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
        "findings": list(report.findings),
        "road": None
        if road is None
        else {
            "state": road.state.value,
            "reason": road.reason,
            "moved_bytes": dict(road.moved_bytes or {}),
        },
    }


def curve_summary(judgements: Iterable[Judgement]) -> list[str]:
    """Return one line per verdict for the points of the curve that no summary names.

    INVALID points are left out: each is shown by itself.
    """
    points: dict[Verdict, list[str]] = {}
    for each in judgements:
        if not each.named and each.verdict is not Verdict.INVALID:
            points.setdefault(each.verdict, []).append(each.name)
    return [
        f"{verdict:<9}{len(names)} more points of the curve, {names[0]} to {names[-1]}"
        for verdict, names in points.items()
    ]


def format_value(value: float | None, unit: str) -> str:
    """Return a number with its unit for a person; a dash where there is none."""
    if value is None:
        return "-"
    digits = f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{digits} {unit}".strip() if unit != "1" else f"{value:.3f}"
