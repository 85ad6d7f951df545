"""What several subcommands read and print the same way.

A benchmark's output in any usual encoding; the options that state a fabric and that choose what is
looked at; what was found as data, as lines, as a status.
"""

from __future__ import annotations

import codecs
import functools
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

import click

from fabricproof.core.errors import (
    ConfigError,
    ExitStatus,
    InputMissingError,
    ParseError,
)
from fabricproof.core.measure import Verdict
from fabricproof.physics.stated import KEYS, fabric_from

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: what a command prints for a person
Lines = Iterable[str] | Callable[[], Iterable[str]]

#: key of ``--only`` -> the patterns that were given for it
Only = Mapping[str, tuple[str, ...]]


def emit(record: object, lines: Lines = (), *, as_json: bool) -> None:
    """Print what a command found: as JSON for programs, else as lines for a person.

    ``lines``: or what returns them, and may print what is no line, a table, before.
    """
    if as_json:
        click.echo(json.dumps(record, indent=2, allow_nan=False))
        return
    for line in lines() if callable(lines) else lines:
        click.echo(line)


def only_option(*keys: str) -> Callable[[_Function], _Function]:
    """Return the option that chooses what of a run, a site or a file is looked at.

    The command gets ``only``, each of ``keys`` with its patterns, none where it was not given.
    """

    def split(
        context: click.Context, option: click.Parameter, texts: tuple[str, ...]
    ) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = dict.fromkeys(keys, ())
        for text in texts:
            key, _, pattern = text.partition("=")
            if key not in found or not pattern:
                expected = f"expected KEY=PATTERN, KEY one of {', '.join(keys)}; got {text!r}"
                raise click.BadParameter(expected, context, option)
            found[key] += (pattern,)
        return found

    return click.option(
        "--only",
        multiple=True,
        callback=split,
        metavar="KEY=PATTERN",
        help=f"Only what fits; KEY is {listed(keys)}, * and ? stand for any text.  Repeatable: "
        "every key must fit, by one of its patterns.",
    )


def fitting(patterns: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return the names that fit, pattern by pattern.

    A pattern that none fits stays as it is: who looks it up says which names there are.
    """
    return [
        name
        for pattern in patterns
        for name in [each for each in names if fnmatchcase(each, pattern)] or [pattern]
    ]


def one_fitting(key: str, only: Only, names: Sequence[str]) -> str | None:
    """Return the one name that ``--only KEY=PATTERN`` chooses; None where it was not given.

    Raises:
        ConfigError: several fit.
    """
    found = fitting(only[key], names)
    if len(found) > 1:
        raise ConfigError(f"--only {key} fits several", expected="one", got=", ".join(found))
    return found[0] if found else None


def listed(words: Sequence[str]) -> str:
    """Return ``a, b or c``."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


#: what ``--help`` says of what may stand after a link
KEYS_HELP = "\n".join(
    (
        "\b",
        "After the link, with commas between; what is left out is unknown or the usual one:",
        *(
            f"  {f'{key}={kind}' if kind else key:<16}  {words}"
            for key, (_, kind, words) in KEYS.items()
        ),
        "",
    )
)


def fabric_option(*, required: bool) -> Callable[[_Function], _Function]:
    """Return a decorator that gives a click command ``fabric``, None where none is stated.

    Args:
        required: refuse a command line without ``--link``.
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def with_fabric(*args: Any, link: str | None, **named: Any) -> Any:
            return function(*args, fabric=None if link is None else fabric_from(link), **named)

        stating = click.option(
            "--link",
            required=required,
            metavar="NAME[,KEY=VALUE...]",
            help="Link of each rail, and what is known beside it: 'HDR100', 'FDR 4x,pcie=3.0x8', "
            "'40GbE,mtu=9000,rails=2'; also 'Omni-Path 100', 'Slingshot 200', 'EFA 100', 'BXI v2', "
            "'400MbE', 'Soft-RoCE 100 Mb/s'.  All keys: fabricproof ceiling --help",
        )
        return stating(with_fabric)  # type: ignore[return-value]

    return decorate


#: A larger output is refused: reading rows takes some 50 times their bytes of memory.
MOST_BYTES = 32 * 1024 * 1024


def read_output(name: str) -> str:
    """Return the text of file ``name``, or of standard input where it is ``-``.

    UTF-8, or UTF-16 with its byte order mark, as some shells redirect; bytes that are no text are
    kept as replacement marks.

    Raises:
        InputMissingError: it cannot be read.
        ParseError: it is larger than :data:`MOST_BYTES`, or has no end.
    """
    data = _stdin() if name == "-" else _file(name)
    if len(data) > MOST_BYTES:
        raise ParseError(
            "larger than what is read",
            source="<stdin>" if name == "-" else name,
            expected=f"at most {MOST_BYTES // 1024**2} MiB",
            next_step="cut the log to what the benchmarks printed",
        )
    is_utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_utf_16 else "utf-8", errors="replace")


def _stdin() -> bytes:
    # The shell's <&- leaves no standard input at all.
    if sys.stdin is None:
        raise InputMissingError(
            "cannot read: it is closed", source="<stdin>", expected="a benchmark output"
        )
    return sys.stdin.buffer.read(MOST_BYTES + 1)


def _file(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputMissingError(
            f"cannot read: {error.strerror}", source=name, expected="a benchmark output"
        ) from None


#: verdict -> exit status of a command whose worst verdict it is
STATUSES: dict[Verdict, ExitStatus] = {
    Verdict.PASS: ExitStatus.PASS,
    Verdict.FAIL: ExitStatus.FAIL,
    Verdict.INVALID: ExitStatus.INVALID,
    Verdict.MISSING: ExitStatus.MISSING,
    Verdict.UNJUDGED: ExitStatus.UNJUDGED,
    Verdict.SKIPPED: ExitStatus.NOTHING_JUDGED,
}
