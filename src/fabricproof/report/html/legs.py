"""Every leg with its verdict, reason, findings and road; the raw numbers of the red ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fabricproof.measure import BADNESS
from fabricproof.report.html.headline import measured, rails_of, repeat
from fabricproof.report.html.markup import (
    Markup,
    details,
    folded,
    joined,
    number,
    section,
    table,
    tag,
    word,
)
from fabricproof.report.html.payload import red_raw
from fabricproof.report.model import ReportData
from fabricproof.session import LegResult
from fabricproof.store import Key

#: raw numbers of red quantities that stand in the page itself, for paper
ON_PAPER = 120

#: partition, fabric, stack, check, leg, quantity
_Place = tuple[str, str, str, str, str, str]


def every_leg(data: ReportData, keys: Sequence[Key]) -> Markup:
    """Return the table of all legs, the worst first."""
    order = sorted(
        data.session.legs,
        key=lambda leg: (BADNESS.index(leg.verdict), leg.stack, leg.suite, leg.program, leg.leg),
    )
    index = {_place_of(key): row for row, key in reversed(list(enumerate(keys)))}
    head = ("verdict", "stack", "program", "leg", "rails", "nodes", "numbers", "reason", "road")
    rows = [_row(leg, index) for leg in order]
    caption = f"Every leg of this run, worst first ({len(rows)})"
    made = table(head, rows, caption=caption, data_filter="legs")
    return section("legs", "Every leg", made)


def _place_of(key: Key) -> _Place:
    return (key.partition, key.fabric, key.stack, key.check, key.leg, key.quantity)


def _row(leg: LegResult, index: Mapping[_Place, int]) -> list[object]:
    return [
        word(leg.verdict.value),
        leg.stack,
        f"{leg.program or leg.check} ({leg.suite})" if leg.suite else leg.program or leg.check,
        leg.leg or "-",
        rails_of(leg),
        folded(leg.nodes),
        _numbers(leg, index),
        _reason(leg),
        _road(leg.road),
    ]


def _numbers(leg: LegResult, index: Mapping[_Place, int]) -> Markup:
    named = [each for each in leg.quantities if each.get("quantity_named")]
    lines = []
    for each in named:
        name = str(each.get("quantity_name"))
        row = index.get((leg.partition, leg.fabric, leg.stack, leg.check, leg.leg, name))
        share = _of_ceiling(each)
        text = measured(each) + share
        is_known = row is not None
        lines.append(tag("li", tag("span", text, data_key=row) if is_known else text))
    points = len(leg.quantities) - len(named)
    if points > 0:
        lines.append(tag("li", f"+ {points} more sizes", class_="remark"))
    return tag("ul", *lines) if lines else joined(["-"])


def _of_ceiling(quantity: Mapping[str, Any]) -> str:
    value, ceiling = quantity.get("quantity_value"), quantity.get("quantity_ceiling")
    if not value or not ceiling:
        return ""
    if quantity.get("quantity_unit") in {"us", "ms"}:
        return f" (floor {number(ceiling)})"
    return f" ({value / ceiling:.0%} of ceiling {number(ceiling)})"


def _reason(leg: LegResult) -> Markup:
    parts: list[object] = [tag("p", leg.reason)] if leg.reason else []
    if leg.findings:
        lines = tag("ul", *(tag("li", each) for each in leg.findings))
        parts.append(details(f"{len(leg.findings)} findings", lines))
    if leg.verdict.value not in {"PASS", "SKIPPED"}:
        where = f"; raw output: {leg.stage_folder}" if leg.stage_folder else ""
        job = f"job {leg.job_id}; " if leg.job_id else ""
        parts.append(tag("p", f"{job}repeat: {repeat(leg)}{where}", class_="remark"))
    return joined(parts) if parts else joined(["-"])


def _road(road: Mapping[str, Any] | None) -> Markup:
    if road is None:
        return joined(["not proved"])
    state, reason = str(road.get("state", "?")), str(road.get("reason", ""))
    moved = [f"{name} = {value}" for name, value in road.items() if name not in {"state", "reason"}]
    if not moved and not reason:
        return joined([state])
    inside = tag("ul", *(tag("li", each) for each in (reason, *moved) if each))
    return details(state, inside)


def raw_numbers(data: ReportData) -> Markup:
    """Return the section of raw numbers: the search is the script's, the red ones are printed."""
    red = red_raw(data)
    parts: list[object] = [
        tag(
            "p",
            "Every point, cell and row of this page opens every raw number behind it: each attempt "
            "in each run, with file and line of its record. Numbers are shown with five "
            "significant digits; the records have all of them.",
        ),
        tag("div", id="raw-view", class_="view", data_view="raw"),
    ]
    if not red:
        parts.append(tag("p", "No quantity of this run is red."))
        return section("raw", "Raw numbers", *parts)
    rows = [
        [
            key.label,
            str(each.attempt) if each.attempt else "relation",
            "yes" if each.counts else "no",
            number(each.value, key.unit),
            word(each.verdict),
            each.reason,
            f"{each.file}:{each.line}",
        ]
        for key, each in red[:ON_PAPER]
    ]
    head = ("quantity", "attempt", "counts", "value", "verdict", "reason", "record")
    num = f"{len(rows)} of {len(red)}"
    caption = f"Raw numbers of this run's red quantities, every attempt ({num})"
    parts.append(table(head, rows, caption=caption, numbers=(3,)))
    return section("raw", "Raw numbers", *parts)
