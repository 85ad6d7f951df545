"""History: events and drifts; the machines, and what changed of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from fabricproof.core.units import percent
from fabricproof.history.trend.model import Event, Trend
from fabricproof.report.html.markup import (
    Markup,
    details,
    folded,
    joined,
    section,
    table,
    tag,
)
from fabricproof.report.model import ReportData

#: steps told of one event; the chart has all
STEPS = 3

#: values of one fact that are told one by one
VALUES = 6

#: rows of drifts
DRIFTS = 40


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
        f"{made.num_short} with too few. The chance of even one false event is {made.alpha:.0%}."
    )
    parts = [tag("p", counts)]
    if made.warnings:
        items = (tag("li", each) for each in made.warnings)
        parts.append(tag("div", tag("h3", "Warnings"), tag("ul", *items), class_="warning"))
    parts.append(_events(made) if made.events else tag("p", "No lasting change was found."))
    if made.drifts:
        parts.append(_drifts(made))
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
    """Return whether it lasts, and what to run about it."""
    lasts = "lasts" if event.lasts else "later steps took it back"
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


def _drifts(made: Trend) -> Markup:
    rows = [
        [
            "worse" if each.worse else "better",
            each.key.label,
            percent(each.drift.total),
            percent(each.drift.per_run),
            f"{each.drift.p:.2g}",
        ]
        for each in made.drifts[:DRIFTS]
    ]
    head = ("to the", "quantity", "in all", "from run to run", "p")
    caption = f"Slow changes that no single night shows ({len(rows)} of {len(made.drifts)})"
    return table(head, rows, caption=caption, numbers=(2, 3, 4))


def inventory(data: ReportData) -> Markup:
    """Return the section of the machines: what changed since the run before, what they are."""
    return section("inventory", "Inventory", _changes(data), _machines(data))


def _changes(data: ReportData) -> Markup:
    if not data.inventory_changes:
        return tag("p", "Nothing is known to have changed since the run before.")
    rows = [
        [
            each.part,
            each.fact,
            folded(each.nodes),
            each.first or "unknown",
            each.second or "unknown",
            each.sentence,
        ]
        for each in data.inventory_changes
    ]
    head = ("part", "fact", "nodes", "before", "now", "in words")
    return table(head, rows, caption=f"What changed since the run before ({len(rows)})")


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
