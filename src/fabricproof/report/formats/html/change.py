"""Before and after: groups as dots with intervals around one, quantities, what else differs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fabricproof.core.units import counted, percent
from fabricproof.history.compare.model import Comparison, FieldChange, Group
from fabricproof.history.stats.shifts import Shift
from fabricproof.report.formats.html.markup import (
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
from fabricproof.report.model import ReportData

#: groups of one kind shown at once; the rest opens on a click
SHOWN = 12

#: quantities in the table that needs no script
STATIC = 60

#: said of a field that does not tell the sides apart by itself
PARTLY = " (some runs of the two sides have one value in common)"

#: what was not compared, at most so many lines
UNPAIRED = 200

#: the forest's drawing: width and height of its view, and the widest ratio it shows
_WIDTH, _HEIGHT = 240.0, 18.0

_KINDS = ("overall", "rail", "node", "pair", "stack", "program")
_ORDER = ("WORSE", "BETTER", "UNDECIDED", "SAME")


def before_and_after(data: ReportData) -> Markup:
    """Return the section; where nobody compared it says so."""
    made = data.comparison
    title = "Before and after"
    if made is None:
        hint = tag("code", "fabricproof report RUN A")
        return section("change", title, tag("p", "Nothing was compared: ", hint, "."))
    reach = _reach([group.shift for group in made.groups])
    parts = []
    for kind in _KINDS:
        groups = sorted(
            (group for group in made.groups if group.kind == kind),
            key=lambda group: _ORDER.index(group.change.value),
        )
        if groups:
            parts += _forest(kind, groups, reach, made)
    return section(
        "change",
        title,
        tag("p", f"Before: {_side(made, 1)}. After: {_side(made, 2)}."),
        *([_warnings(made)] if made.warnings else []),
        joined(parts),
        _differences(made),
        *([_suspects(made)] if made.suspects else []),
        _quantities(made),
        *_without_direction(made),
        _unpaired(made),
    )


def _side(made: Comparison, which: int) -> str:
    side = made.first if which == 1 else made.second
    if side.baseline:
        return f"{side.words} (baseline {side.baseline})"
    if not side.runs:
        return f"{side.words} (no runs)"
    span = side.runs[0].night
    if len(side.runs) > 1:
        span += f" to {side.runs[-1].night}"
    return f"{side.words} ({counted(len(side.runs), 'run')}, {span})"


def _warnings(made: Comparison) -> Markup:
    items = (tag("li", each) for each in made.warnings)
    return tag("div", tag("h3", "Warnings"), tag("ul", *items), class_="warning")


def _forest(kind: str, groups: Sequence[Group], reach: float, made: Comparison) -> list[Markup]:
    head = ("word", kind, "of", "ratio after / before", "change", "interval", "in words")
    rows = [_group_row(group, reach, made) for group in groups]
    axis = f"axis from {percent(1 / reach)} to {percent(reach)}, grey: the margin"
    caption = f"{'All together' if kind == 'overall' else f'By {kind}'} ({axis})"
    first = table(head, rows[:SHOWN], caption=caption, class_="forest")
    if len(rows) <= SHOWN:
        return [first]
    rest = table(head, rows[SHOWN:], caption=f"{caption}, the rest", class_="forest")
    return [first, details(f"{len(rows) - SHOWN} more by {kind}", rest)]


def _group_row(group: Group, reach: float, made: Comparison) -> list[object]:
    shift = group.shift
    margin = made.margins.get(group.metric)
    interval = "-"
    if shift is not None and shift.low is not None and shift.high is not None:
        interval = f"{percent(shift.low)} to {percent(shift.high)}"
    return [
        word(group.change.value),
        tag("strong", group.name),
        group.what or "everything",
        dot_and_interval(shift, group.change.value, margin, reach) if shift else "-",
        percent(shift.ratio) if shift else "-",
        interval,
        group.sentence,
    ]


def _reach(shifts: Sequence[Shift | None]) -> float:
    """Return the ratio at the right end of the drawings; the left end is one over it.

    Every estimate has its place.  An interval of few and noisy runs may be a hundred times as
    long, and would squeeze all others into one line: those beyond three quarters of all ends
    leave the drawing with an arrow.
    """
    known = [shift for shift in shifts if shift is not None and shift.ratio]
    estimates = [abs(math.log(shift.ratio)) for shift in known if shift.ratio]
    ends = sorted(abs(math.log(end)) for shift in known for end in (shift.low, shift.high) if end)
    usual = ends[3 * len(ends) // 4] if ends else 0.0
    return math.exp(1.1 * max(usual, *estimates, 0.05))


def dot_and_interval(shift: Shift, change: str, margin: float | None, reach: float) -> Markup:
    """Return the drawing of one ratio: margin band, line at one, interval, and the estimate.

    ``margin`` is a fraction; None draws no band.  ``reach`` is the ratio at the right end; the left
    end is one over it.
    """
    if shift.ratio is None:
        return tag("span", "no number", class_="remark")

    def at(ratio: float) -> float:
        place = 0.5 + 0.5 * math.log(ratio) / math.log(reach)
        return round(6 + min(max(place, 0.0), 1.0) * (_WIDTH - 12), 1)

    parts = [_band(at(1 / (1 + margin)), at(1 + margin))] if margin else []
    parts.append(tag("line", x1=at(1), x2=at(1), y1=0, y2=_HEIGHT, class_="one"))
    if shift.low and shift.high:
        low, high = at(shift.low), at(shift.high)
        parts.append(tag("line", x1=low, x2=high, y1=9, y2=9, class_="interval"))
        parts += [_end(low, beyond=shift.low < 1 / reach), _end(high, beyond=shift.high > reach)]
    x = at(shift.ratio)
    forms = {
        "BETTER": f"{x},3 {x + 6},14 {x - 6},14",
        "WORSE": f"{x},15 {x + 6},4 {x - 6},4",
        "SAME": f"{x - 5},4 {x + 5},4 {x + 5},14 {x - 5},14",
        "UNDECIDED": f"{x},3 {x + 6},9 {x},15 {x - 6},9",
    }
    parts.append(
        tag("polygon", points=forms.get(change, forms["UNDECIDED"]), class_=f"dot d-{change}")
    )
    said = f"ratio {shift.ratio:.4g}, axis from {1 / reach:.3g} to {reach:.3g}"
    return tag(
        "svg",
        tag("title", said),
        *parts,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        width=f"{_WIDTH:g}",
        height=f"{_HEIGHT:g}",
        role="img",
        class_="dots",
    )


def _end(place: float, *, beyond: bool) -> Markup:
    if not beyond:
        return tag("line", x1=place, x2=place, y1=5, y2=13, class_="interval")
    back = 5 if place < _WIDTH / 2 else -5
    points = f"{place + back:g},5 {place:g},9 {place + back:g},13"
    return tag("polyline", points=points, fill="none", class_="interval")


def _band(left: float, right: float) -> Markup:
    return tag("rect", x=left, y=0, width=round(right - left, 1), height=_HEIGHT, class_="margin")


def _differences(made: Comparison) -> Markup:
    if not made.changes:
        text = "No field of the inventory, setting or build is known to differ between the sides."
        return tag("p", text)
    return changed(made.changes, "after", "What else differs between the sides")


def changed(changes: Sequence[FieldChange], after: str, caption: str) -> Markup:
    """Return the table of fields that are not what they were; ``after`` is the head of what is."""
    rows = [
        [
            each.part,
            each.fact,
            folded(each.nodes),
            each.first or "unknown",
            each.second or "unknown",
            f"{each.sentence}{PARTLY if each.partly else ''}",
        ]
        for each in changes
    ]
    head = ("part", "fact", "nodes", "before", after, "in words")
    return table(head, rows, caption=f"{caption} ({len(rows)})")


def _quantities(made: Comparison) -> Markup:
    shown = made.quantities[:STATIC]
    rows = [
        [
            word(each.shift.change.value),
            each.key.label,
            number(each.shift.median_first, each.key.unit),
            number(each.shift.median_second, each.key.unit),
            percent(each.shift.ratio),
            _ends(each.shift),
            f"{each.shift.p:.2g}",
            f"{each.shift.num_first} / {each.shift.num_second}",
            _left_to_do(each.shift, each.note),
        ]
        for each in shown
    ]
    head = ("word", "quantity", "before", "after", "change", "interval", "p", "runs", "note")
    caption = f"Quantities, the surest worsening first ({len(shown)} of {len(made.quantities)})"
    made_table = table(head, rows, caption=caption, numbers=(2, 3, 4, 5, 6, 7))
    return tag("div", made_table, id="quantities", data_view="quantities")


def _suspects(made: Comparison) -> Markup:
    lines = (
        tag("li", f"{each.key.label}: {percent(each.shift.ratio)}, {_ends(each.shift)}")
        for each in made.suspects
    )
    title = "Looks worse, and too few runs to be sure: neither SAME nor BETTER can be said"
    return tag("div", tag("h3", title), tag("ul", *lines), class_="warning")


def _without_direction(made: Comparison) -> list[Markup]:
    if not made.directionless:
        return []
    told = "states and counts on both sides, which are neither better nor worse"
    return [tag("p", f"Left to the inventory: {made.directionless} {told}.")]


def _ends(shift: Shift) -> str:
    if shift.low is None or shift.high is None:
        return "none: too few runs"
    level = f" ({shift.level:.0%})" if shift.level and shift.level != 0.95 else ""
    return f"{percent(shift.low)} to {percent(shift.high)}{level}"


def _left_to_do(shift: Shift, note: str) -> str:
    if shift.change.value != "UNDECIDED":
        return note
    if shift.more_runs is None:
        more = "no number of runs up to 1000 would decide it"
    elif shift.more_runs:
        more = f"needs {shift.more_runs} more runs on each side"
    else:
        more = ""
    return "; ".join(part for part in (more, note) if part)


def _unpaired(made: Comparison) -> Markup:
    if not made.unpaired:
        return tag("p", "Every quantity of either side was compared.")
    rows = [
        ["before" if each.side == 1 else "after", each.key.label, each.reason]
        for each in made.unpaired[:UNPAIRED]
    ]
    num = len(made.unpaired)
    beyond = f"; the first {UNPAIRED} are shown, --json has all" if num > UNPAIRED else ""
    caption = f"Not compared ({num}{beyond})"
    return details(
        f"{num} quantities were not compared",
        table(("only", "quantity", "why"), rows, caption=caption),
    )
