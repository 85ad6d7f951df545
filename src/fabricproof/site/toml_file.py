"""A TOML file as a pydantic model, or one line that says what is wrong: file, line, expected, got.

``tomllib`` gives values without positions.  The scanner here follows table headers and keys; for a
value inside an inline table or a multi-line array it answers with the line of the key that holds
it.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fabricproof.core.errors import ConfigError, InputMissingError
from fabricproof.core.records import text_of

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?\Z")
_KEY = re.compile(r"\s*([A-Za-z0-9_\-\"'.]+)\s*=")

#: a key as pydantic has it: ``("fabrics", 1, "link")``
Key = tuple[str | int, ...]
#: key -> its line, from 1
Lines = dict[Key, int]

_File = TypeVar("_File", bound=BaseModel)


def load_toml(path: Path, model: type[_File]) -> tuple[_File, Lines]:
    """Return what a TOML file holds, and the line of each of its keys.

    Raises:
        InputMissingError: it cannot be read.
        ConfigError: not UTF-8, not TOML, an unknown key, a missing one or a wrong value.
    """
    data, lines = read_toml(path)
    try:
        return model.model_validate(data), lines
    except ValidationError as error:
        raise _complaint(path, error, lines, model) from None


def read_toml(path: Path) -> tuple[dict[str, Any], Lines]:
    """Return the tables of a TOML file whatever their keys, and the line of each key.

    Raises:
        InputMissingError: it cannot be read.
        ConfigError: not UTF-8 or not TOML.
    """
    try:
        text = text_of(path, encoding="utf-8-sig")
        return tomllib.loads(text), positions(text)
    except OSError as error:
        raise InputMissingError(
            f"cannot read: {error.strerror}", source=str(path), expected="a site file"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        problem, got = "not UTF-8 text", error.reason
    except tomllib.TOMLDecodeError as error:
        # tomllib says the place in its sentence only: "... (at line 3, column 5)".
        place = re.search(r" \(at line (\d+), column \d+\)", str(error))
        line = int(place[1]) if place else 0
        problem, got = f"not valid TOML: {str(error).replace(place[0] if place else '', '')}", None
    except (ValueError, RecursionError):  # Python's own limits, which TOML does not know
        line, problem = 0, "not valid TOML"
        got = "a number of a thousand digits, or lists within lists without end"
    raise ConfigError(
        problem, source=str(path), line=line or None, expected="TOML in UTF-8", got=got
    )


def positions(text: str) -> Lines:
    """Return key -> line for every table header and every key of a TOML text."""
    lines: Lines = {}
    counts: dict[Key, int] = {}
    table: Key = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = ()
            parts = _parts(header[2])
            for depth, part in enumerate(parts, start=1):
                table = (*table, part)
                if depth == len(parts) and header[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                if table in counts:
                    table = (*table, counts[table])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_parts(key[1])), number)
    return lines


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def line_of(key: Key, lines: Lines) -> int | None:
    """Return the line of ``key`` or of the nearest key or table that holds it; None for none."""
    return next((lines[key[:end]] for end in range(len(key), 0, -1) if key[:end] in lines), None)


def did_you_mean(word: str, known: Iterable[str], *, shown: int = 30) -> str:
    """Return ``one of ...`` with what resembles ``word`` first."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    if near:
        return f"{' or '.join(repr(name) for name in near)} perhaps; one of: {', '.join(names)}"
    return f"one of {', '.join(names[:shown])}" if names else "nothing: there is none"


#: how pydantic begins -> what follows "expected" instead
_WORDS = {
    "Input should be ": "",
    "Value error, ": "",
    "String should ": "text to ",
    "List should ": "a list to ",
    "Tuple should ": "a list to ",
    "Field required": "it to be there",
}


def _complaint(
    path: Path, error: ValidationError, lines: Lines, model: type[BaseModel]
) -> ConfigError:
    """Return the first thing that is wrong with a file, and how many more there are."""
    first = error.errors()[0]
    # "[key]" is pydantic's word for the name of an entry rather than its value.
    where = tuple(part for part in first["loc"] if part != "[key]")
    label = ".".join(str(part) for part in where)
    got: str | None = repr(first["input"])
    expected = re.sub(r" after validation, not \d+$", "", first["msg"])
    for begins, instead in _WORDS.items():
        if expected.startswith(begins):
            expected = instead + expected.removeprefix(begins)
            break
    problem = f"wrong value of {label!r}"
    if first["type"] == "extra_forbidden":
        problem, got = f"unknown key {label!r}", repr(where[-1])
        expected = did_you_mean(str(where[-1]), _keys_at(model, where))
    elif first["type"] == "missing":
        problem, got = f"missing key {label!r}", None
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return ConfigError(
        problem + more, source=str(path), line=line_of(where, lines), expected=expected, got=got
    )


def _keys_at(model: type[BaseModel], where: Key) -> list[str]:
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
    return list(current.model_fields)
