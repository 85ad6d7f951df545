"""Sections of the page: events of history, the machines, every leg, raw numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import BADNESS, Quantity
from fabricproof.core.units import counted, percent
from fabricproof.history.trend.model import Event, Trend
from fabricproof.job.run import LegResult
from fabricproof.report.formats.html.change import changed
from fabricproof.report.formats.html.headline import measured, rails_of
from fabricproof.report.formats.html.markup import (
    Markup,
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
from fabricproof.report.formats.html.payload import Place, Words, place_of, red_raw
from fabricproof.report.model import ReportData
from fabricproof.report.red import again

#: steps told of one event; the chart has all
STEPS = 3

#: values of one fact that are told one by one
VALUES = 6


def trend(data: ReportData) -> Markup:
    """Return the section of history; the chart is the script's."""
    made = data.trend
    said: list[Markup] = []
    if made is None:
        said.append(tag("p", "Nobody looked for changes over time, or there are too few runs."))
    else:
        said += _told(made)
    noscript = tag("noscript", tag("p", "The chart needs JavaScript, which is switched off."))
    chart = tag("div", id="trend-view", class_="view", data_view="trend")
    return section("trend", "History, run after run", *said, noscript, chart)


def _told(made: Trend) -> list[Markup]:
    counts = (
        f"{len(made.runs)} runs, {made.num_quantities} quantities with enough of them, "
        f"{made.num_short} with too few. The chance of even one false event is {made.alpha:.0%}: "
        "of what is not sure yet at one look, of all else in a year of them."
    )
    parts = [tag("p", counts)]
    if made.warnings:
        items = (tag("li", each) for each in made.warnings)
        parts.append(tag("div", tag("h3", "Warnings"), tag("ul", *items), class_="warning"))
    parts.append(_events(made) if made.events else tag("p", "No lasting change was found."))
    return parts


def _events(made: Trend) -> Markup:
    rows = [
        [
            each.run.night,
            each.where or "no common place",
            each.sentence,
            _now(each),
            joined(tag("p", line) for line in each.coincides) or "nothing known",
            _steps(each),
        ]
        for each in made.events
    ]
    head = ("first run after", "where", "what", "now", "changed with it", "largest steps")
    return table(head, rows, caption=f"Lasting changes, newest first ({len(rows)})")


def _now(event: Event) -> Markup:
    lasts = "lasts" if event.lasts else "later steps took it back"
    lasts += "" if event.sure else ", not sure yet"
    step = tag("p", tag("code", event.next_step)) if event.next_step else ""
    return joined([tag("p", lasts), step])


def _steps(event: Event) -> Markup:
    lines = [
        tag(
            "li",
            f"{'worse' if each.worse else 'better'} {percent(each.step.ratio)}: {each.key.label}",
        )
        for each in event.steps[:STEPS]
    ]
    more = len(event.steps) - STEPS
    if more > 0:
        lines.append(tag("li", f"and {more} more"))
    return tag("ul", *lines)


def inventory(data: ReportData) -> Markup:
    """Return the section of the machines: what changed since the run before, what they are."""
    return section("inventory", "Inventory", _changes(data), _machines(data))


def _changes(data: ReportData) -> Markup:
    if not data.inventory_changes:
        return tag("p", "Nothing is known to have changed since the run before.")
    return changed(data.inventory_changes, "now", "What changed since the run before")


def _machines(data: ReportData) -> Markup:
    if not data.machines:
        return tag("p", "Nobody saw what the nodes are made of.")
    facts: dict[str, dict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(dict))
    for node, parts in data.machines.items():
        for part, values in parts.items():
            for fact, value in values.items():
                facts[part][fact].setdefault(str(value), []).append(node)
    shown = [_part(part, values, len(data.machines)) for part, values in sorted(facts.items())]
    return tag("div", tag("h3", f"The nodes: {folded(data.machines)}"), *shown)


def _part(part: str, values: Mapping[str, Mapping[str, list[str]]], num_nodes: int) -> Markup:
    rows = [
        [fact, _alike(found, num_nodes), _who_has(found)] for fact, found in sorted(values.items())
    ]
    unlike = sum(len(found) > 1 for found in values.values())
    summary = f"{part}: {len(rows)} facts" + (f", {unlike} not alike" if unlike else ", all alike")
    return details(summary, table(("fact", "alike", "value"), rows, caption=part))


def _alike(found: Mapping[str, list[str]], num_nodes: int) -> str:
    here = sum(map(len, found.values()))
    if len(found) > 1:
        return f"≠ {len(found)} values"
    return "= on all" if here == num_nodes else f"on {here} of {num_nodes}"


def _who_has(found: Mapping[str, list[str]]) -> Markup:
    if len(found) == 1:
        return joined([next(iter(found))])
    # The rarest value first: it is the node that is unlike the others that is looked for.
    order = sorted(found.items(), key=lambda item: (len(item[1]), item[0]))
    lines = [tag("li", tag("strong", value), f" on {folded(nodes)}") for value, nodes in order]
    first = tag("ul", *lines[:VALUES])
    if len(lines) <= VALUES:
        return first
    return joined([first, details(f"{len(lines) - VALUES} more", tag("ul", *lines[VALUES:]))])


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
    """Return the green legs that the table leaves to the script, as columns of words."""
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
    named = [each for each in leg.quantities if each.named]
    lines = []
    for each in named:
        row = known.get(place_of(leg, each))
        text = measured(each) + _of_ceiling(each)
        lines.append(tag("li", text if row is None else tag("span", text, data_key=row)))
    points = len(leg.quantities) - len(named)
    if points > 0:
        lines.append(tag("li", f"+ {points} more sizes", class_="remark"))
    return [
        word(leg.verdict.value),
        leg.stack,
        _program(leg),
        leg.path_name or "-",
        rails_of(leg),
        who(leg.nodes),
        (tag("ul", *lines) if lines else joined(["-"])),
        _reason(leg, site),
        _net_path(leg),
    ]


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
