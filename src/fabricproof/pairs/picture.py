"""The matrix as a picture, in SVG.

Nodes stand in the order of their leaves, then of their names.  A cell is the worst of what its
pair reached of a healthy one; with more nodes than cells it is the worst of many.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from fabricproof.core.errors import ParseError
from fabricproof.pairs.blame.judge import Judged, MatrixVerdict
from fabricproof.pairs.blame.say import Said
from fabricproof.pairs.population import POPULATION_COLUMNS, populations_of

Shares = npt.NDArray[np.float64]

#: cells along a side at most
MOST_CELLS = 1000

#: cells are drawn in runs of one colour out of so many
_COLOURS = 16

_SIDE = 800
MARGIN = 110
_LEGEND = 300
_ROW = 16

#: share from which on a pair is shown as healthy
_HEALTHY = 0.95

_CRISP = 'shape-rendering="crispEdges"'

#: lines of the legend
_WORST = 24

#: the key stands beside even the smallest matrix, and is so high
_LEAST_SIDE = _COLOURS * 16

#: the key is so wide
KEY = 90

#: letters of a name above its column
_ABOVE = 8

_BOLD = ' font-weight="bold"'

#: stands in a record for a cell that was not measured; others are whole percents, rounded down
_UNMEASURED = 255

#: of the records that keep a picture
RECORD_KIND = "pair matrix"


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """What is drawn of a judged matrix, and said beside it.

    Attributes:
        leaves: name of each leaf, and how many of ``nodes`` hang there, in their order; empty where
            nobody knows.
        cells: worst share of a healthy pair, 0 to 1, of each cell; NaN where nothing was measured.
        blame: as :meth:`fabricproof.pairs.blame.say.Blame.record` gives them.
        undecided: as :meth:`fabricproof.core.findings.Finding.record` gives them.
        populations: as :meth:`fabricproof.pairs.population.Population.record` gives them.
        next_step: a command; empty where there is none to be run.
    """

    title: str
    verdict: MatrixVerdict
    reason: str
    nodes: tuple[str, ...]
    leaves: tuple[tuple[str, int], ...]
    cells: Shares
    healthy: tuple[str, ...]
    blame: tuple[Mapping[str, Any], ...]
    undecided: tuple[Mapping[str, Any], ...]
    populations: tuple[Mapping[str, Any], ...] = ()
    next_step: str = ""

    def record(self) -> dict[str, Any]:
        """Return it as plain data: a share has whole percents there, rounded down."""
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        cells = np.where(np.isnan(self.cells), _UNMEASURED, np.floor(100 * self.cells))
        packed = zlib.compress(cells.astype(np.uint8).tobytes(), 9)
        return {
            **fields,
            "kind": RECORD_KIND,
            "verdict": self.verdict.value,
            "cells": base64.b64encode(packed).decode(),
        }


def read_picture(record: Mapping[str, Any], source: str) -> Picture:
    """Return the picture that a record keeps.

    What the record has more is passed over.
    """
    try:
        packed = zlib.decompress(base64.b64decode(record["cells"], validate=True))
        cells = np.frombuffer(packed, dtype=np.uint8).astype(np.float64)
        side = math.isqrt(len(cells))
        nodes = tuple(map(str, record["nodes"]))
        leaves = tuple((str(name), int(num)) for name, num in record["leaves"])
        if side != min(len(nodes), MOST_CELLS) or side < 1:
            raise ValueError(side)
        if leaves and sum(num for _, num in leaves) != len(nodes):
            raise ValueError(leaves)
        cells[cells == _UNMEASURED] = np.nan
        return Picture(
            title=str(record["title"]),
            verdict=MatrixVerdict(record["verdict"]),
            reason=str(record["reason"]),
            nodes=nodes,
            leaves=leaves,
            cells=cells.reshape(side, side) / 100,
            healthy=tuple(map(str, record["healthy"])),
            blame=tuple({**_BLAME, **each} for each in record["blame"]),
            undecided=tuple({**_UNDECIDED, **each} for each in record["undecided"]),
            populations=tuple({**_POPULATION, **each} for each in record.get("populations", ())),
            next_step=str(record.get("next_step", "")),
        )
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise ParseError(
            "the record of a pair matrix is damaged", source=source, got=repr(error)[:80]
        ) from None


#: what each of them has at least
_POPULATION = {**dict.fromkeys(POPULATION_COLUMNS, 0), "unit": "", "rail": "", "distance": "",
               "together": ""}  # fmt: skip
_UNDECIDED = {"fact": "", "text": "", "next_step": ""}
_BLAME = {**_UNDECIDED, "where": {}, "name": "", "confidence": 0.0, "cannot_tell_from": ()}


def cells_of(judged: Judged) -> tuple[Shares, list[int]]:
    """Return the worst share of each cell, NaN where nothing was measured, and the node order."""
    matrix = judged.matrix
    num = len(matrix.nodes)
    order = np.arange(num) if judged.leaves is None else judged.leaves.by_leaf
    place = np.empty(num, dtype=np.int64)
    place[order] = np.arange(num)
    side = min(num, MOST_CELLS)
    cells = np.full(side * side, np.inf)
    share = np.minimum(np.exp(np.minimum(judged.shortfall, 0.0)), 1.0)
    row = place[matrix.source] * side // num
    column = place[matrix.destination] * side // num
    np.minimum.at(cells, row * side + column, share)
    both = matrix.both_ways
    np.minimum.at(cells, column[both] * side + row[both], share[both])
    cells[np.isinf(cells)] = np.nan
    return cells.reshape(side, side), order.tolist()


def _colour(step: int) -> str:
    part = step / (_COLOURS - 1)
    red = round(200 + 40 * part) if part < 0.5 else round(250 - 60 * (part - 0.5) * 2)
    green = round(30 + 190 * min(part * 2, 1))
    blue = round(40 + 120 * part)
    return f"#{red:02x}{green:02x}{blue:02x}"


def picture_of(judged: Judged, said: Said, title: str, next_step: str = "") -> Picture:
    """Return what is drawn of a judged matrix."""
    cells, order = cells_of(judged)
    matrix, leaves = judged.matrix, judged.leaves
    hung: list[tuple[str, int]] = []
    if leaves is not None:
        hung = [
            (leaves.names[leaf], len(list(nodes)))
            for leaf, nodes in groupby(leaves.leaf_of[order].tolist())
        ]
    return Picture(
        title=title,
        verdict=judged.verdict,
        reason=judged.reason,
        nodes=tuple(matrix.nodes[number] for number in order),
        leaves=tuple(hung),
        cells=cells,
        healthy=tuple(healthy_words(judged)),
        blame=tuple(each.record() for each in said.blame),
        undecided=tuple(each.record() for each in said.undecided),
        populations=tuple(each.record() for each in populations_of(judged)),
        next_step=next_step,
    )


def healthy_words(judged: Judged) -> list[str]:
    """Return what a healthy pair has, a sentence for each rail."""
    matrix = judged.matrix
    return [
        " ".join(filter(None, ("a healthy pair has", f"{value:.4g}", matrix.kind.unit,
                               f"{matrix.kind.words}{matrix.over(rail)}")))
        for rail, value in sorted(judged.yardsticks.items())
    ]  # fmt: skip


def svg(picture: Picture) -> str:
    """Return a picture as an SVG document, with a legend of what is low, worst first."""
    sentences = [str(each["text"]) for each in (*picture.blame, *picture.undecided)]
    legend = sentences[:_WORST]
    if len(sentences) > _WORST:
        legend.append(f"and {len(sentences) - _WORST} more")
    side = side_of(picture)
    x = MARGIN + side + 20 + KEY
    parts = [
        f'<text x="{x}" y="{MARGIN - 6}">{escape(picture.reason[:90])}</text>',
        f'<text x="{x}" y="{MARGIN + 12}" font-weight="bold">worst first</text>',
        *(
            f'<text x="{x}" y="{MARGIN + 12 + (at + 1) * _ROW}">{escape(sentence[:90])}</text>'
            for at, sentence in enumerate(legend)
        ),
    ]
    return drawing(picture, x + 2 * _LEGEND, parts)


def drawing(picture: Picture, width: int, beside: Sequence[str] = (), attributes: str = "") -> str:
    """Return the matrix with names, leaves and key, as an ``svg`` element."""
    side = side_of(picture)
    legend = _ROW * (_WORST + 3) if beside else 0
    height = MARGIN + max(side, _LEAST_SIDE, legend) + 40
    title = escape(f"{picture.title}: {picture.verdict.value}")
    scale = side / max(len(picture.cells), 1)
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                f'width="{width}" height="{height}" font-family="sans-serif" font-size="12"'
                f"{attributes}>"
            ),
            f"<title>{title}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            f'<text x="{MARGIN}" y="24" font-size="16">{title}</text>',
            f'<text x="{MARGIN}" y="42">row sends, column receives; {_binned(picture)}</text>',
            f'<g transform="translate({MARGIN} {MARGIN}) scale({scale:.6g})" {_CRISP}>',
            f'<rect width="{len(picture.cells)}" height="{len(picture.cells)}" fill="#e8e8e8"/>',
            *_runs(picture.cells),
            "</g>",
            *_leaf_lines(picture, side / max(len(picture.nodes), 1)),
            *_names(picture),
            *_key(MARGIN + side + 20),
            *beside,
            "</svg>\n",
        ]
    )


def side_of(picture: Picture) -> int:
    """Return how wide the matrix is drawn, in pixels: two a cell where there are many."""
    num = len(picture.cells)
    return max(min(40 * num, _SIDE), 2 * num)


def _binned(picture: Picture) -> str:
    side, num = len(picture.cells), len(picture.nodes)
    if side < num:
        return f"a cell is the worst of {num / side:.1f} nodes"
    measured = int((~np.isnan(picture.cells)).sum())
    return f"a cell is a pair; {measured} of {num * (num - 1)} directions measured"


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


def _leaf_lines(picture: Picture, scale: float) -> list[str]:
    lines, at, side = [], 0, side_of(picture)
    for _, num in picture.leaves[:-1]:
        at += num
        where = MARGIN + at * scale
        lines.append(
            f'<path stroke="#ffffff" stroke-width="0.7" d="M{where:.1f} {MARGIN}v{side}'
            f'M{MARGIN} {where:.1f}h{side}"/>'
        )
    return lines


def _names(picture: Picture) -> list[str]:
    """Return as many names of nodes along both sides as there is room for; the blamed in bold.

    A blamed one takes the place of its neighbours.
    """
    num, side = len(picture.nodes), side_of(picture)
    scale = side / max(num, 1)
    step = max(math.ceil(14 / max(scale, 1e-9)), 1)
    guilty = {each["where"].get("node") for each in picture.blame}
    bold = [at for at, node in enumerate(picture.nodes) if node in guilty]
    plain = [at for at in range(0, num, step) if all(abs(at - each) >= step for each in bold)]
    lines = []
    for at in sorted({*plain, *bold}):
        name, where = picture.nodes[at], MARGIN + (at + 0.5) * scale + 4
        weight = _BOLD if at in bold else ""
        above = name if len(name) <= _ABOVE else f"\u2026{name[1 - _ABOVE :]}"
        lines += [
            (
                f'<text x="{MARGIN - 6}" y="{where:.1f}" text-anchor="end"{weight}>'
                f"{escape(name[:14])}</text>"
            ),
            (
                f'<text transform="translate({where:.1f} {MARGIN - 6}) rotate(-90)"{weight}>'
                f"{escape(above)}</text>"
            ),
        ]
    return lines


def _key(x: int) -> list[str]:
    boxes = [
        f'<rect x="{x}" y="{MARGIN + (_COLOURS - 1 - step) * 16}" width="16" height="16" '
        f'fill="{_colour(step)}"/>'
        for step in range(_COLOURS)
    ]
    return [
        *boxes,
        f'<text x="{x + 22}" y="{MARGIN + 12}">healthy</text>',
        f'<text x="{x + 22}" y="{MARGIN + _COLOURS * 16 - 4}">0 %</text>',
    ]
