"""Every leg with its verdict, reason, findings and path; the raw numbers of the red ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fabricproof.core.measure import BADNESS, Quantity, texts_of
from fabricproof.job.run import LegResult
from fabricproof.report.html.headline import measured, rails_of
from fabricproof.report.html.markup import (
    Markup,
    counted,
    details,
    folded,
    joined,
    number,
    section,
    table,
    tag,
    who,
    word,
)
from fabricproof.report.html.payload import Place, Words, place_of, red_raw
from fabricproof.report.model import ReportData
from fabricproof.report.red import again

#: raw numbers of red quantities that stand in the page itself, for paper
ON_PAPER = 120

#: legs in the page itself, where fewer are red; the rest is in the packed data
STATIC = 400


def every_leg(data: ReportData, known: Mapping[Place, int]) -> Markup:
    """Return the table of all legs, the worst first; numbers in ``known`` open their raw ones."""
    order = _in_order(data)
    shown = order[: _num_static(order)]
    head = ("verdict", "stack", "program", "leg", "rails", "nodes", "numbers", "reason", "path")
    rows = [_row(leg, data.site, known) for leg in shown]
    caption = f"Every leg of this run, worst first ({len(order)})"
    more = len(order) - len(shown)
    if more:
        caption += f"; {more} more with PASS or SKIPPED are loaded by a search or the button"
    made = table(head, rows, caption=caption, data_filter="legs")
    return section("legs", "Every leg", made)


def beyond(data: ReportData, known: Mapping[Place, int]) -> dict[str, Any]:
    """Return the green legs that the table leaves to the script, as columns of words.

    Args:
        data: the report.
        known: row of a key for each place.
    """
    order = _in_order(data)
    words = Words()
    rest = order[_num_static(order) :]
    rows = [[known.get(place_of(leg, each)) for each in leg.quantities] for leg in rest]
    return {
        "of": [[words(text) for text in _texts(leg)] for leg in rest],
        "keys": [[row for row in mine if row is not None] for mine in rows],
        "words": words.all,
    }


def _in_order(data: ReportData) -> list[LegResult]:
    return sorted(
        data.session.legs,
        key=lambda leg: (BADNESS.index(leg.verdict), leg.stack, leg.suite, leg.program, leg.leg),
    )


def _num_static(order: Sequence[LegResult]) -> int:
    """Return how many legs stand in the page itself: all red ones, and some more."""
    return max(STATIC, sum(leg.verdict.value not in {"PASS", "SKIPPED"} for leg in order))


def _texts(leg: LegResult) -> list[str]:
    """Return what is said of a green leg: the cells of :func:`_row` without its numbers."""
    return [
        leg.verdict.value,
        leg.stack,
        _program(leg),
        leg.path_name or "-",
        rails_of(leg),
        folded(leg.nodes),
        "; ".join((leg.reason, *texts_of(leg.findings))) or "-",
        _without_path(leg) if leg.net_path is None else str(leg.net_path.get("state", "?")),
    ]


def _program(leg: LegResult) -> str:
    name = leg.program or leg.check
    return f"{name} ({leg.suite})" if leg.suite else name


def _row(leg: LegResult, site: str, known: Mapping[Place, int]) -> list[object]:
    return [
        word(leg.verdict.value),
        leg.stack,
        _program(leg),
        leg.path_name or "-",
        rails_of(leg),
        who(leg.nodes),
        _numbers(leg, known),
        _reason(leg, site),
        _net_path(leg),
    ]


def _numbers(leg: LegResult, known: Mapping[Place, int]) -> Markup:
    named = [each for each in leg.quantities if each.named]
    lines = []
    for each in named:
        row = known.get(place_of(leg, each))
        text = measured(each) + _of_ceiling(each)
        lines.append(tag("li", text if row is None else tag("span", text, data_key=row)))
    points = len(leg.quantities) - len(named)
    if points > 0:
        lines.append(tag("li", f"+ {points} more sizes", class_="remark"))
    return tag("ul", *lines) if lines else joined(["-"])


def _of_ceiling(quantity: Quantity) -> str:
    value, ceiling = quantity.value, quantity.ceiling
    if not value or not ceiling:
        return ""
    if quantity.unit in {"us", "ms"}:
        return f" (floor {number(ceiling)})"
    return f" ({value / ceiling:.0%} of ceiling {number(ceiling)})"


def _reason(leg: LegResult, site: str) -> Markup:
    parts: list[object] = [tag("p", leg.reason)] if leg.reason else []
    if leg.findings:
        lines = tag("ul", *(tag("li", each) for each in texts_of(leg.findings)))
        parts.append(details(counted(len(leg.findings), "finding"), lines))
    if leg.verdict.value not in {"PASS", "SKIPPED"}:
        where = f"; raw output: {leg.stage_folder}" if leg.stage_folder else ""
        job = f"job {leg.job_id}; " if leg.job_id else ""
        parts.append(tag("p", f"{job}repeat: {again(leg, site)}{where}", class_="remark"))
    return joined(parts) if parts else joined(["-"])


def _without_path(leg: LegResult) -> str:
    """Return what stands for a proof where there is none: a relation moves no bytes itself."""
    return "none of its own" if leg.quantities else "-"


def _net_path(leg: LegResult) -> Markup:
    net_path = leg.net_path
    if net_path is None:
        return joined([_without_path(leg)])
    state, reason = str(net_path.get("state", "?")), str(net_path.get("reason", ""))
    moved = [
        f"{name} = {value}" for name, value in net_path.items() if name not in {"state", "reason"}
    ]
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
            tag("span", f"{each.file}:{each.line}", class_="path"),
        ]
        for key, each in red[:ON_PAPER]
    ]
    head = ("quantity", "attempt", "counts", "value", "verdict", "reason", "record")
    num = f"{len(rows)} of {len(red)}"
    caption = f"Raw numbers of this run's red quantities, every attempt ({num})"
    parts.append(table(head, rows, caption=caption, numbers=(3,)))
    return section("raw", "Raw numbers", *parts)
