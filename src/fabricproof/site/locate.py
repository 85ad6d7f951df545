"""Find the line of a TOML file that holds a given key, so that an error can name it.

``tomllib`` gives values without positions.  This scanner follows table headers and keys; for a
value inside an inline table or a multi-line array it answers with the line of the key that holds
it, which is where a person looks anyway.
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?\Z")
_KEY = re.compile(r"\s*([A-Za-z0-9_\-\"'.]+)\s*=")


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def positions(text: str) -> dict[tuple[str | int, ...], int]:
    """Return path -> line (from 1) for every table header and every key of a TOML text.

    Entries of an array of tables carry their index, from 0: ``('fabrics', 1, 'link')``.
    """
    found: dict[tuple[str | int, ...], int] = {}
    counts: dict[tuple[str | int, ...], int] = {}
    base: tuple[str | int, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            base = _resolve(_parts(header[2]), counts, is_array=header[1] == "[[")
            found.setdefault(base, number)
            continue
        key = _KEY.match(line)
        if key:
            found.setdefault((*base, *_parts(key[1])), number)
    return found


def _resolve(
    parts: tuple[str, ...], counts: dict[tuple[str | int, ...], int], *, is_array: bool
) -> tuple[str | int, ...]:
    path: tuple[str | int, ...] = ()
    for depth, part in enumerate(parts):
        path = (*path, part)
        if depth == len(parts) - 1 and is_array:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def line_of(path: tuple[str | int, ...], found: dict[tuple[str | int, ...], int]) -> int | None:
    """Return the line of ``path`` or of the nearest enclosing key or table; None for none."""
    for end in range(len(path), 0, -1):
        if path[:end] in found:
            return found[path[:end]]
    return None
