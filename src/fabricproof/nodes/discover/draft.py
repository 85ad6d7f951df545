"""A site folder before it is text: keys with values, and with each how it is known.

A value was ``seen`` (the machine said it), or it is a ``guess`` (something had to stand there),
with the command that settles it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

#: the word that marks a guess, in every file
GUESS = "guess: "


def seen(where: str, remark: str = "") -> str:
    """Return the note of a value that a machine said."""
    return f"seen on {where}" + (f"; {remark}" if remark else "")


def guess(why: str, check: str) -> str:
    """Return the note of a value that nobody said, with what settles it."""
    return f"{GUESS}{why}; check with: {check}"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a table."""

    key: str
    value: object
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class TomlRows:
    """A list that is written with one element, and its note, a line."""

    rows: tuple[tuple[object, str], ...]


@dataclass(frozen=True, kw_only=True)
class TomlTable:
    """A table of a TOML file."""

    header: str
    entries: tuple[Entry, ...]
    remarks: tuple[str, ...] = ()


def render(opening: Iterable[str], tables: Iterable[TomlTable]) -> str:
    """Return the text of a TOML file."""
    lines = [_comment(line) for line in opening]
    for table in tables:
        lines += ["", *map(_comment, table.remarks), table.header]
        for entry in table.entries:
            lines += _entry_lines(entry)
    return "\n".join(lines) + "\n"


def _entry_lines(entry: Entry) -> Iterator[str]:
    if not isinstance(entry.value, TomlRows):
        yield _noted(f"{entry.key} = {toml_value(entry.value)}", entry.note)
        return
    yield _noted(f"{entry.key} = [", entry.note)
    for value, note in entry.value.rows:
        yield _noted(f"    {toml_value(value)},", note)
    yield "]"


def _noted(text: str, note: str) -> str:
    return f"{text}  {_comment(note)}" if note else text


def _comment(text: str) -> str:
    return f"# {printable(text)}".rstrip()


def printable(text: str) -> str:
    """Return ``text`` on one line, without the control characters that no comment may hold."""
    return "".join(each if each.isprintable() else " " for each in text)


def toml_value(value: object) -> str:
    """Return ``value`` as TOML writes it on one line."""
    if isinstance(value, dict):
        inside = ", ".join(f"{key} = {toml_value(each)}" for key, each in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(each) for each in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    # A basic string of TOML has JSON's escapes, but no DEL.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A guess in a written file: where it stands, and what it says."""

    file: str
    line: int
    text: str


def find_guesses(file: str, text: str) -> list[Guess]:
    """Return the guesses that ``text`` holds, with their lines, from 1."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        _, mark, note = line.partition(f"# {GUESS}")
        if mark:
            found.append(Guess(file=file, line=number, text=note))
    return found
