"""The matrix as a picture: SVG, or letters for a terminal.

Nodes stand in the order of their leaves, then of their names.  A cell is the worst of what its
pair reached of a healthy one; with more nodes than cells it is the worst of many.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from fabricproof.pairs.judge import Judged

Shares = npt.NDArray[np.float64]

#: cells along a side at most
MOST_CELLS = 1000

#: nodes up to which a terminal gets a map
MOST_LETTERS = 64

#: cells are drawn in runs of one colour out of so many
_COLOURS = 16

_SIDE = 800
_MARGIN = 110
_LEGEND = 300
_ROW = 16

#: share from which on a pair is shown as healthy
_HEALTHY = 0.95

_CRISP = 'shape-rendering="crispEdges"'

#: lines of the legend
_WORST = 24


def cells_of(judged: Judged, most: int) -> tuple[Shares, list[int]]:
    """Return the worst share of each cell, NaN where nothing was measured, and the node order.

    Args:
        judged: the matrix.
        most: cells along a side.
    """
    matrix = judged.matrix
    num = len(matrix.nodes)
    order = np.arange(num) if judged.leaves is None else judged.leaves.by_leaf
    place = np.empty(num, dtype=np.int64)
    place[order] = np.arange(num)
    side = min(num, most)
    cells = np.full(side * side, np.inf)
    share = np.minimum(np.exp(np.minimum(judged.shortfall, 0.0)), 1.0)
    row = place[matrix.source] * side // num
    column = place[matrix.destination] * side // num
    np.minimum.at(cells, row * side + column, share)
    both = matrix.both_ways
    np.minimum.at(cells, column[both] * side + row[both], share[both])
    cells[np.isinf(cells)] = np.nan
    return cells.reshape(side, side), order.tolist()


def letter(share: float) -> str:
    """Return the letter of a cell: ``.`` healthy, 9 to 0 for what it reaches, blank for nothing."""
    if np.isnan(share):
        return " "
    return "." if share >= _HEALTHY - 0.05 else str(min(int(share * 10), 9))


def text_map(judged: Judged) -> str:
    """Return the matrix as letters: a row sends, a column receives; empty with too many nodes."""
    names = judged.matrix.nodes
    if len(names) > MOST_LETTERS:
        return ""
    cells, order = cells_of(judged, MOST_LETTERS)
    width = max(len(names[number]) for number in order)
    lines = [
        f"{names[number]:>{width}} {''.join(letter(each) for each in cells[at])}"
        for at, number in enumerate(order)
    ]
    key = "row to column, in the same order: . healthy, 9 to 0 tenths of healthy, blank unmeasured"
    return "\n".join([*lines, key])


def _colour(step: int) -> str:
    """Return a colour from red (0) over yellow to pale green."""
    part = step / (_COLOURS - 1)
    red = round(200 + 40 * part) if part < 0.5 else round(250 - 60 * (part - 0.5) * 2)
    green = round(30 + 190 * min(part * 2, 1))
    blue = round(40 + 120 * part)
    return f"#{red:02x}{green:02x}{blue:02x}"


def svg(judged: Judged, worst_first: Sequence[str], title: str) -> str:
    """Return the matrix as an SVG document.

    Args:
        judged: the matrix.
        worst_first: sentences of the legend, worst first; the first two dozen are shown.
        title: above the picture.
    """
    cells, order = cells_of(judged, MOST_CELLS)
    side = len(cells)
    scale = _SIDE / side
    height = _MARGIN + _SIDE + 40
    legend = list(worst_first[:_WORST])
    if len(worst_first) > _WORST:
        legend.append(f"and {len(worst_first) - _WORST} more")
    width = _MARGIN + _SIDE + 2 * _LEGEND
    binned = _binned(side, len(order))
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
        ),
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="24" font-size="16">{escape(title)}</text>',
        f'<text x="{_MARGIN}" y="42">row sends, column receives; {binned}</text>',
        f'<g transform="translate({_MARGIN} {_MARGIN}) scale({scale:.6g})" {_CRISP}>',
        f'<rect width="{side}" height="{side}" fill="#e8e8e8"/>',
        *_runs(cells),
        "</g>",
        *_leaf_lines(judged, order, scale * side / len(order)),
        *_names(judged, order),
        *_key(),
    ]
    for number, sentence in enumerate(legend):
        y = _MARGIN + 90 + number * _ROW
        parts.append(f'<text x="{_MARGIN + _SIDE + 20}" y="{y}">{escape(sentence[:90])}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _binned(side: int, num: int) -> str:
    return "a cell is a pair" if side == num else f"a cell is the worst of {num / side:.1f} nodes"


def _runs(cells: Shares) -> list[str]:
    """Return one path for each colour: runs of cells of it, row by row."""
    steps = np.where(
        np.isnan(cells), -1, np.minimum(cells / _HEALTHY * (_COLOURS - 1), _COLOURS - 1)
    ).astype(np.int64)
    paths: dict[int, list[str]] = {}
    for row, line in enumerate(steps):
        starts = np.flatnonzero(np.diff(line, prepend=-2) != 0)
        ends = np.append(starts[1:], len(line))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            if line[start] >= 0:
                paths.setdefault(int(line[start]), []).append(
                    f"M{start} {row}h{end - start}v1H{start}z"
                )
    return [
        f'<path fill="{_colour(step)}" d="{"".join(runs)}"/>'
        for step, runs in sorted(paths.items())
    ]


def _leaf_lines(judged: Judged, order: list[int], scale: float) -> list[str]:
    if judged.leaves is None:
        return []
    leaf = judged.leaves.leaf_of[order]
    lines = []
    for at in np.flatnonzero(np.diff(leaf)).tolist():
        where = (at + 1) * scale
        lines.append(
            f'<path stroke="#ffffff" stroke-width="0.7" d="M{_MARGIN + where:.1f} {_MARGIN}v{_SIDE}'
            f'M{_MARGIN} {_MARGIN + where:.1f}h{_SIDE}"/>'
        )
    return lines


def _names(judged: Judged, order: list[int]) -> list[str]:
    """Return as many names of nodes along the left side as there is room for."""
    step = -(-len(order) * 14 // _SIDE)
    scale = _SIDE / len(order)
    return [
        f'<text x="{_MARGIN - 6}" y="{_MARGIN + (at + 0.5) * scale + 4:.1f}" text-anchor="end">'
        f"{escape(judged.matrix.nodes[order[at]][:14])}</text>"
        for at in range(0, len(order), step)
    ]


def _key() -> list[str]:
    x, y = _MARGIN + _SIDE + 20, _MARGIN
    boxes = [
        f'<rect x="{x + step * 16}" y="{y}" width="16" height="16" fill="{_colour(step)}"/>'
        for step in range(_COLOURS)
    ]
    return [
        *boxes,
        f'<text x="{x}" y="{y + 32}">0 %</text>',
        f'<text x="{x + _COLOURS * 16}" y="{y + 32}" text-anchor="end">healthy</text>',
        f'<text x="{x}" y="{y + 60}" font-weight="bold">worst first</text>',
    ]
