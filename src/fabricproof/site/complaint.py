"""Turn what pydantic says of a site file into one line: file, line, expected, got.

``tomllib`` gives values without positions.  The scanner here follows table headers and keys; for a
value inside an inline table or a multi-line array it answers with the line of the key that holds
it, which is where a person looks anyway.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fabricproof.core.errors import ConfigError

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


#: path of a key -> its line
Lines = dict[tuple[str | int, ...], int]


def first_complaint(
    path: Path, error: ValidationError, lines: Lines, model: type[BaseModel]
) -> ConfigError:
    """Return the first thing that is wrong with a file, its line, and how many more there are."""
    first = error.errors()[0]
    # "[key]" is pydantic's word for the name of an entry rather than what it says.
    where = tuple(part for part in first["loc"] if part != "[key]")
    label = ".".join(str(part) for part in where)
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        return ConfigError(
            f"unknown key {label!r}{more}",
            source=str(path),
            line=line_of(where, lines),
            expected=f"one of {', '.join(_keys_at(model, where))}",
            got=repr(where[-1]),
        )
    if not where:  # of the file as a whole, which nobody wants to see again
        return ConfigError(
            f"its parts do not fit{more}", source=str(path), expected=_expectation(first["msg"])
        )
    got = None if first["type"] == "missing" else repr(first["input"])
    return ConfigError(
        f"wrong value of {label!r}{more}" if got else f"missing key {label!r}{more}",
        source=str(path),
        line=line_of(where, lines),
        expected=_expectation(first["msg"]),
        got=got,
    )


#: what pydantic adds to a list that is too short or too long
_COUNTED = re.compile(r" after validation, not \d+$")


def _expectation(message: str) -> str:
    """Return what pydantic wants, in words that follow "expected"."""
    words = {
        "Input should be ": "",
        "Value error, ": "",
        "String should ": "text to ",
        "List should ": "a list to ",
        "Tuple should ": "a list to ",
        "Field required": "it to be there",
    }
    message = _COUNTED.sub("", message)
    for begins, instead in words.items():
        if message.startswith(begins):
            return instead + message.removeprefix(begins)
    return message


def _keys_at(model: type[BaseModel], where: tuple[str | int, ...]) -> list[str]:
    """Return the keys that the table around ``where`` may have."""
    current: Any = model
    for part in where[:-1]:
        if isinstance(part, int):
            continue
        annotation = current.model_fields[part].annotation
        inner = getattr(annotation, "__args__", (annotation,))
        current = next(
            (each for each in inner if isinstance(each, type) and issubclass(each, BaseModel)),
            annotation,
        )
    return sorted(current.model_fields)
