"""A comparison, or a trend, as one SVG file for a mail or a ticket."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from markupsafe import Markup, escape

from fabricproof.core.errors import ConfigError
from fabricproof.core.units import percent
from fabricproof.core.whole_file import refusal_of, whole_file
from fabricproof.history.compare.model import Comparison
from fabricproof.history.compare.text import headline
from fabricproof.history.trend.model import Trend
from fabricproof.report.formats import svg

#: rows of a picture: what is worse stands first
MOST_ROWS = 40

_WIDTH, _ROW, _TOP = 900, 22, 44

_STYLE = """
svg { background: #fff; } text { font: 12px sans-serif; fill: #222; } .head { font-weight: bold; }
.margin { fill: #ccc; opacity: .5; } .axis { stroke: #999; fill: none; }
.interval { stroke: #222; stroke-width: 2; fill: none; } .shape { fill: #777; }
.w-WORSE { fill: #b3261e; } .w-BETTER { fill: #1b6e3c; }
.line { fill: none; stroke: #1f4e9c; stroke-width: 2; } .last { fill: #b3261e; }
"""


def comparison_svg(comparison: Comparison) -> str:
    """Return the groups of a comparison with their intervals, the worst first."""
    order = ["WORSE", "UNDECIDED", "BETTER", "SAME"]
    rows = [(each, each.shift) for each in comparison.groups if each.shift and each.shift.ratio]
    rows.sort(key=lambda row: (order.index(row[0].change), -abs((row[1].ratio or 1) - 1)))
    rows = rows[:MOST_ROWS]
    ends = [end for _, shift in rows for end in (shift.low, shift.high) if end]
    reach = svg.reach_of((shift.ratio for _, shift in rows if shift.ratio), ends)
    lines = []
    for group, shift in rows:
        margin, word = comparison.margins[group.metric], group.change.value
        drawing = svg.interval(shift.ratio or 1.0, shift.low, shift.high, margin, reach, word)
        what = f"{word}  {group.where}, {group.what}"
        lines.append((what, drawing, (240, 18), percent(shift.ratio)))
    return _drawn(headline(comparison), lines, _ROW)


def trend_svg(trend: Trend) -> str:
    """Return the values of what changed, run after run: of each event its largest step."""
    lines = []
    for event in trend.events:
        for step in event.steps[:1]:
            drawing = svg.sparkline(step.history, event.sentence, None, None)
            where = f"{event.run.night} {event.where or 'no common place'}: {step.key.label}"
            lines.append((where, drawing, (240, 34), percent(step.step.ratio)))
    for each in trend.drifts:
        drawing = svg.sparkline(each.history, each.key.label, None, None)
        lines.append((f"slowly: {each.key.label}", drawing, (240, 34), percent(each.drift.total)))
    head = f"{trend.site}, {len(trend.runs)} runs to {trend.runs[-1].night} UTC"
    return _drawn(head, lines[:MOST_ROWS], 2 * _ROW)


def _drawn(
    head: str, lines: Iterable[tuple[str, Markup, tuple[int, int], str]], row_height: int
) -> str:
    parts = [f'<text class="head" x="10" y="24">{escape(head)}</text>']
    bottom = _TOP
    for text, drawing, (width, height), change in lines:
        middle = bottom + row_height / 2 + 4
        place = f'<svg x="540" y="{bottom}" width="{width}" height="{height}" '
        parts += [
            f'<text x="10" y="{middle}">{escape(text)}</text>',
            str(drawing).replace("<svg ", place, 1),
            f'<text x="800" y="{middle}">{escape(change)}</text>',
        ]
        bottom += row_height
    size = f'width="{_WIDTH}" height="{bottom + 10}" viewBox="0 0 {_WIDTH} {bottom + 10}"'
    style = f"<style>{_STYLE}</style>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{style}{"".join(parts)}</svg>\n'


def write_plot(name: str, picture: str) -> None:
    """Write a picture to a file that is named ``.svg``.

    Raises:
        ConfigError: it is named otherwise.
        OutputError: it cannot be written.
    """
    path = Path(name)
    if path.suffix != ".svg":
        raise ConfigError(
            "a picture of another kind",
            expected="--plot FILE.svg",
            got=repr(name),
            next_step="a PNG of it: rsvg-convert FILE.svg -o FILE.png",
        )
    with refusal_of("write the picture", path, "another folder"), whole_file(path) as file:
        file.write(picture.encode())
