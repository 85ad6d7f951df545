"""Write docs/fabricproof.1 from the commands as click knows them:  .venv/bin/python ci/man_page.py.

click-man 0.6.0 writes a page for each command and sees none of a group that imports its commands
when they are called, as ours does; one page that can be searched is what `man` is used for.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import click

from fabricproof import __version__
from fabricproof.cli.main import GROUPS, group
from vcluster.command.cli import whole_group

PAGE = Path(__file__).resolve().parents[1] / "docs" / "fabricproof.1"

#: where one program hands over to another, how people call that one
_OTHERS = {"vcluster": "fabricproof vcluster"}

_COMPLETION = (
    'eval "$(_FABRICPROOF_COMPLETE=bash_source fabricproof)" lets Tab complete commands, options '
    "and the names of sites; zsh_source and fish_source likewise."
)


def escaped(text: str) -> str:
    """Return ``text`` so that troff prints each character as it is."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in {".", "'"} else line for line in safe.splitlines())


def paragraphs(text: str) -> Iterator[str]:
    r"""Yield the paragraphs of a help text; one that begins with ``\b`` keeps its lines."""
    for paragraph in filter(None, inspect.cleandoc(text).split("\n\n")):
        _, mark, lines = paragraph.partition("\b\n")
        if mark:
            yield f".PP\n.nf\n.RS 2\n{escaped(lines)}\n.RE\n.fi"
        else:
            yield f".PP\n{escaped(' '.join(paragraph.split()))}"


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the options of one command; ``--help``, which each has, is told once."""
    for option in command.params:
        record = isinstance(option, click.Option) and option.get_help_record(context)
        if record:
            yield f".TP\n.B {escaped(record[0])}\n{escaped(' '.join(record[1].split()))}"


def described(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield what one command takes and does, and then the same of those below it."""
    usage = " ".join(command.collect_usage_pieces(context))
    yield f".SS {escaped(f'{context.command_path} {usage}'.strip())}"
    yield from paragraphs(command.help or "")
    yield from options(command, context)
    yield from paragraphs(command.epilog or "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from described(below, click.Context(below, info_name=name, parent=context))


def page() -> str:
    """Return the manual page, in the macros of man(7)."""
    context = click.Context(group, info_name="fabricproof")
    parts = [
        '.\\" Written by ci/man_page.py from the help of the commands.',
        f'.TH FABRICPROOF 1 "" "fabricproof {__version__}" "User Commands"',
        ".SH NAME\nfabricproof \\- proves that a cluster's interconnect performs as it should",
        ".SH SYNOPSIS\n.B fabricproof\n.I COMMAND\n.RI [ OPTIONS ]",
        ".br\n.B fabricproof\n.I COMMAND\n.B \\-\\-help",
        ".SH COMMANDS",
    ]
    for names in GROUPS.values():
        parts += [f".TP\n.B {name}\n{escaped(text)}" for name, (_, text) in names.items()]
    for title, names in GROUPS.items():
        parts.append(f".SH {title.upper()}")
        for name in names:
            with mock.patch.dict(os.environ, {"VCLUSTER_PROGRAM": _OTHERS.get(name, "")}):
                command = whole_group() if name in _OTHERS else group.get_command(context, name)
            if command is not None:
                parts += described(command, click.Context(command, info_name=name, parent=context))
    parts += [
        ".SH EXIT STATUS",
        *paragraphs((group.epilog or "").removeprefix("Exit status: ")),
        f".SH SHELL COMPLETION\n{escaped(_COMPLETION)}",
        ".SH SEE ALSO\n.BR sbatch (1),\n.BR srun (1);",
        escaped("docs/README.md of the source begins the documents."),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}: written\n")
