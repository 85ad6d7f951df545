"""HTML made of text that is always escaped: a node's name may hold anything."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from fabricproof.core.hostlist import fold

#: C0 controls but tab and newline, and lone surrogates: no HTML document may hold them
_UNSPEAKABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

#: elements without an end tag
_VOID = frozenset({"br", "col", "hr", "input", "meta"})

#: a character that is read, not only seen, beside each word: never colour alone
SYMBOLS = {
    "PASS": "●",
    "FAIL": "▼",
    "INVALID": "✕",
    "MISSING": "○",
    "UNJUDGED": "?",
    "SKIPPED": "-",
    "BETTER": "▲",
    "SAME": "=",
    "WORSE": "▼",
    "UNDECIDED": "?",
}


class Markup(str):
    """Text that already is HTML."""

    __slots__ = ()


def escaped(text: object) -> Markup:
    """Return ``text`` as HTML; what already is HTML stays."""
    if isinstance(text, Markup):
        return text
    return speakable(html.escape(str(text)))


def speakable(text: str) -> Markup:
    """Return HTML without the characters that no document may hold."""
    return Markup(_UNSPEAKABLE.sub("\ufffd", text))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return one element.

    ``attributes``: ``class_`` for ``class``, ``data_key`` for ``data-key``; None and False are
    left out, True has no value.
    """
    spelled = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{spelled}>")
    return Markup(f"<{name}{spelled}>{''.join(map(escaped, children))}</{name}>")


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escaped(value)}"'


def joined(parts: Iterable[object], between: str = "") -> Markup:
    """Return the parts one after the other."""
    return Markup(escaped(between).join(escaped(part) for part in parts))


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str,
    numbers: Iterable[int] = (),
    **attributes: object,
) -> Markup:
    """Return a table in a box that scrolls by itself, so that the page never does."""
    right = frozenset(numbers)
    header = joined(
        tag("th", name, scope="col", class_="n" if index in right else None)
        for index, name in enumerate(head)
    )
    body = joined(
        tag("tr", *(_cell(cell, index in right) for index, cell in enumerate(row))) for row in rows
    )
    inner = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", header)),
        tag("tbody", body),
        **attributes,
    )
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(cell: object, is_number: bool) -> Markup:
    if isinstance(cell, Markup) and cell.startswith(("<td", "<th")):
        return cell
    return tag("td", cell, class_="n" if is_number else None)


def word(name: str) -> Markup:
    """Return a verdict or a word of a comparison: symbol, word and colour."""
    symbol = tag("span", SYMBOLS.get(name, "·"), aria_hidden="true", class_="sym")
    return tag("span", symbol, " ", name, class_=f"word w-{name}")


def number(value: float | None, unit: str = "") -> str:
    """Return a number for people: five significant digits, its unit; a dash where there is none."""
    if value is None or value != value:  # noqa: PLR0124 - NaN
        return "-"
    text = f"{value:.5g}"
    if "e+" in text:
        text = f"{value:.0f}"
    return text if unit in {"", "1"} else f"{text} {unit}"


def folded(nodes: Iterable[str]) -> str:
    """Return node names as Slurm folds them; a dash where there are none."""
    return fold(nodes) or "-"


def who(nodes: Iterable[str]) -> Markup:
    """Return folded node names that are not broken where they are short."""
    text = folded(nodes)
    return tag("span", text, class_="nodes" if len(text) <= 24 else None)


def details(summary: object, *inside: object) -> Markup:
    """Return what opens on a click and is open on paper."""
    return tag("details", tag("summary", summary), *inside)


def section(name: str, title: str, *inside: object) -> Markup:
    """Return one section of the page with its heading."""
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, *inside, id=name, aria_labelledby=f"{name}-title")
