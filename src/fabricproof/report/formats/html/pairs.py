"""Every node with every node: whom the matrix of a pair campaign blames, and the matrix itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

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
from fabricproof.report.formats.html.markup import (
    Markup,
    details,
    escaped,
    joined,
    section,
    speakable,
    table,
    tag,
    word,
)

#: of those that a table would tell, so many are told
SHOWN = 30

#: leaves up to which a table tells each of them with each
_MOST_LEAVES = 64


def pair_matrices(pictures: Iterable[Picture]) -> Markup:
    """Return the section of the pair campaigns.

    Args:
        pictures: one for each quantity over each choice of rails; the worst is to be first.
    """
    return section(
        "pairs",
        "All pairs",
        tag(
            "p",
            "Every node measured with others. A cell says how much of a healthy pair its pair "
            "reaches, from its row's node to its column's; nodes stand in the order of their "
            "leaves. Whom this blames is said above each matrix, and the tables below it say in "
            "numbers what the colours say.",
        ),
        *(_matrix(each) for each in pictures),
    )


def _matrix(picture: Picture) -> Markup:
    label = f"{picture.title}: matrix of {counted(len(picture.nodes), 'node')}"
    attributes = f' role="img" aria-label="{escaped(label)}"'
    width = MARGIN + side_of(picture) + 20 + KEY
    blame, undecided = picture.blame, picture.undecided
    said = [
        _item(each, f"{each['fact']}, confidence {float(each['confidence']):.2f}: ")
        for each in blame[:SHOWN]
    ]
    said += [_item(each, "undecided: ") for each in undecided[:SHOWN]]
    more = max(len(blame) - SHOWN, 0) + max(len(undecided) - SHOWN, 0)
    said += [tag("li", f"and {more} more")] if more else []
    if picture.next_step:
        said.append(tag("li", tag("strong", "Next: "), tag("code", picture.next_step)))
    cells, names = picture.cells, _places(picture)
    sends = [_middle(row) for row in cells]
    receives = [_middle(column) for column in cells.T]
    order = np.argsort(np.fmin(sends, receives), kind="stable")
    rows = [
        (names[at], _percent(sends[at]), _percent(receives[at]), int((~np.isnan(cells[at])).sum()))
        for at in order[:SHOWN].tolist()
    ]
    return joined(
        [
            tag("h3", f"{picture.title}: ", word(picture.verdict.value)),
            tag("p", f"{picture.reason}."),
            (tag("ul", *said) if said else tag("p", "Nobody is blamed.")),
            _populations(picture),
            tag("p", "; ".join(picture.healthy), class_="remark"),
            tag(
                "div",
                speakable(drawing(picture, width, attributes=attributes)),
                class_="scroll",
                tabindex="0",
                role="region",
                aria_label=label,
            ),
            details(
                "The matrix in numbers",
                table(
                    ("node", "sends at", "receives at", "pairs it sends in"),
                    rows,
                    caption=f"Nodes, lowest first ({len(rows)} of {len(names)}): "
                    "the middle of its pairs",
                    numbers=(1, 2, 3),
                ),
                _low(picture),
                _by_leaf(picture),
            ),
        ],
        "\n",
    )


def _populations(picture: Picture) -> Markup:
    """Return the values over all nodes in numbers, one rail below the other."""
    rows = [population_cells(each) for each in picture.populations]
    if not rows:
        return Markup("")
    return table(
        tuple(POPULATION_COLUMNS.values()),
        rows,
        caption="Values over all nodes",
        numbers=range(1, 6),
    )


def _item(said: Mapping[str, Any], how: str) -> Markup:
    rivals = ", ".join(map(str, said.get("cannot_tell_from", ())))
    return tag(
        "li",
        how,
        tag("strong", said["text"]),
        *([tag("p", f"Cannot be told from: {rivals}.")] if rivals else []),
        tag("p", tag("strong", "Measure next: "), str(said["next_step"])),
    )


def _percent(share: float) -> str:
    """Return a share, rounded down: 89.9 % of a healthy pair is no 90 %."""
    return "-" if np.isnan(share) else f"{np.floor(100 * share + 1e-9):.0f} %"


def _middle(shares: Any) -> float:
    known = shares[~np.isnan(shares)]
    return float(np.median(known)) if len(known) else float("nan")


def _places(picture: Picture) -> list[str]:
    num, side = len(picture.nodes), len(picture.cells)
    firsts = [-(-at * num // side) for at in range(side)]
    if num == side:
        return list(picture.nodes)
    return [f"{picture.nodes[first]} and those behind it" for first in firsts]


def _low(picture: Picture) -> Markup:
    cells, names = picture.cells, _places(picture)
    order = np.argsort(cells, axis=None, kind="stable")[:SHOWN]
    found = [divmod(at, len(cells)) for at in order.tolist()]
    rows = [
        (names[row], names[column], _percent(cells[row, column]))
        for row, column in found
        if not np.isnan(cells[row, column])
    ]
    return table(
        ("from", "to", "reaches"), rows, caption=f"Pairs, lowest first ({len(rows)})", numbers=(2,)
    )


def _by_leaf(picture: Picture) -> Markup:
    leaves, cells = picture.leaves, picture.cells
    if not 1 < len(leaves) <= _MOST_LEAVES or len(cells) != len(picture.nodes):
        return Markup("")
    ends = np.cumsum([num for _, num in leaves]).tolist()
    spans = [slice(end - num, end) for end, (_, num) in zip(ends, leaves, strict=True)]
    rows = [
        (name, *(_percent(_middle(cells[mine, other].ravel())) for other in spans))
        for (name, _), mine in zip(leaves, spans, strict=True)
    ]
    return table(
        ("from leaf", *(name for name, _ in leaves)),
        rows,
        caption="Leaf to leaf: the middle of their pairs",
        numbers=range(1, len(leaves) + 1),
    )


def worst_first(pictures: Iterable[Picture]) -> Sequence[Picture]:
    """Return pictures with those that blame somebody before the others, else as they come."""
    return sorted(pictures, key=lambda each: (not each.blame, not each.undecided))
