"""Lines of a site folder, each with how its value is known.

A value was ``seen`` (the machine said it), or it is a ``guess`` (something had to stand there),
with the command that settles it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

#: the word that marks a guess, in every file
GUESS = "guess: "


def seen(where: str, remark: str = "") -> str:
    """Return the note of a value that a machine said."""
    return f"seen on {where}" + (f"; {remark}" if remark else "")


def guess(why: str, check: str) -> str:
    """Return the note of a value that nobody said, with what settles it."""
    return f"{GUESS}{why}; check with: {check}"


def line(key: str, value: object, note: str = "") -> str:
    """Return one line of a TOML table."""
    return noted(f"{key} = {toml_value(value)}", note)


def noted(text: str, note: str) -> str:
    """Return a line with its note behind it."""
    return f"{text}  {comment(note)}" if note else text


def comment(text: str) -> str:
    """Return a comment, on one line and without the control characters that no comment may hold."""
    plain = "".join(each if each.isprintable() else " " for each in text)
    return f"# {plain}".rstrip()


def toml_value(value: object) -> str:
    """Return ``value`` as TOML writes it on one line."""
    if isinstance(value, dict):
        inside = ", ".join(f"{key} = {toml_value(each)}" for key, each in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
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
    lines = enumerate((each.partition(f"# {GUESS}") for each in text.splitlines()), start=1)
    return [Guess(file=file, line=at, text=note) for at, (_, mark, note) in lines if mark]
