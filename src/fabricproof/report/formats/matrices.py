"""Every node with every node: whom the matrix of a pair campaign blames, as the page shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from fabricproof.core.units import counted
from fabricproof.pairs import (
    KEY,
    MARGIN,
    POPULATION_COLUMNS,
    Picture,
    drawing,
    population_cells,
    side_of,
)

#: of those that a table would name, so many are named
SHOWN = 30

#: leaves up to which a table names each of them with each
_MOST_LEAVES = 64

Table = tuple[str, Sequence[str], Sequence[Sequence[object]]]


def worst_first(pictures: Iterable[Picture]) -> Sequence[Picture]:
    """Return pictures with those that blame somebody before the others, else as they come."""
    return sorted(pictures, key=lambda each: (not each.blame, not each.undecided))


def matrix_view(picture: Picture) -> dict[str, Any]:
    """Return what the page says of one matrix: words, the drawing, and tables of its numbers."""
    label = f"{picture.title}: matrix of {counted(len(picture.nodes), 'node')}"
    attributes = f' role="img" aria-label="{escape(label)}"'
    width = MARGIN + side_of(picture) + 20 + KEY
    blame, undecided = picture.blame, picture.undecided
    said = [
        {"how": f"{each['fact']}, confidence {float(each['confidence']):.2f}", "of": each}
        for each in blame[:SHOWN]
    ]
    said += [{"how": "undecided", "of": each} for each in undecided[:SHOWN]]
    return {
        "picture": picture,
        "label": label,
        "said": said,
        "more": max(len(blame) - SHOWN, 0) + max(len(undecided) - SHOWN, 0),
        # names in it were escaped by what draws it
        "drawing": Markup(drawing(picture, width, attributes=attributes)),  # noqa: S704
        "populations": _populations(picture),
        "tables": [each for each in (_nodes(picture), _low(picture), _by_leaf(picture)) if each],
    }


def _populations(picture: Picture) -> Table | None:
    """Return the values over all nodes in numbers, one rail below the other."""
    rows = [population_cells(each) for each in picture.populations]
    return ("Values over all nodes", tuple(POPULATION_COLUMNS.values()), rows) if rows else None


def _nodes(picture: Picture) -> Table:
    cells, names = picture.cells, _places(picture)
    sends = [_middle(row) for row in cells]
    receives = [_middle(column) for column in cells.T]
    order = np.argsort(np.fmin(sends, receives), kind="stable")[:SHOWN].tolist()
    rows = [
        (names[at], _percent(sends[at]), _percent(receives[at]), int((~np.isnan(cells[at])).sum()))
        for at in order
    ]
    caption = f"Nodes, lowest first ({len(rows)} of {len(names)}): the middle of its pairs"
    return caption, ("node", "sends at", "receives at", "pairs it sends in"), rows


def _low(picture: Picture) -> Table:
    cells, names = picture.cells, _places(picture)
    order = np.argsort(cells, axis=None, kind="stable")[:SHOWN].tolist()
    rows = [
        (names[row], names[column], _percent(cells[row, column]))
        for row, column in (divmod(at, len(cells)) for at in order)
        if not np.isnan(cells[row, column])
    ]
    return f"Pairs, lowest first ({len(rows)})", ("from", "to", "reaches"), rows


def _by_leaf(picture: Picture) -> Table | None:
    leaves, cells = picture.leaves, picture.cells
    if not 1 < len(leaves) <= _MOST_LEAVES or len(cells) != len(picture.nodes):
        return None
    ends = np.cumsum([num for _, num in leaves]).tolist()
    spans = [slice(end - num, end) for end, (_, num) in zip(ends, leaves, strict=True)]
    rows = [
        (name, *(_percent(_middle(cells[mine, other].ravel())) for other in spans))
        for (name, _), mine in zip(leaves, spans, strict=True)
    ]
    head = ("from leaf", *(name for name, _ in leaves))
    return "Leaf to leaf: the middle of their pairs", head, rows


def _percent(share: float) -> str:
    """Return a share, rounded down: 89.9 % of a healthy pair is no 90 %."""
    return "-" if np.isnan(share) else f"{np.floor(100 * share + 1e-9):.0f} %"


def _middle(shares: Any) -> float:
    known = shares[~np.isnan(shares)]
    return float(np.median(known)) if len(known) else float("nan")


def _places(picture: Picture) -> list[str]:
    num, side = len(picture.nodes), len(picture.cells)
    if num == side:
        return list(picture.nodes)
    firsts = [-(-at * num // side) for at in range(side)]
    return [f"{picture.nodes[first]} and those behind it" for first in firsts]
