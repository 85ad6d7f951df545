"""Kinds of text in a site's files: names, options, values, each as what reads it can take it."""

from __future__ import annotations

import shlex
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]


def _is_plain(text: str) -> bool:
    """Tell whether a text has no control characters: no newline, no tab, no NUL."""
    return not any(mark < " " or mark == "\x7f" for mark in text)


def _as_named(text: str) -> str:
    """Refuse blanks around a name: no device, program or host is found by such a one."""
    if text != text.strip() or not text or not _is_plain(text):
        raise ValueError("a name without blanks around it and without control characters")
    return text


def _as_module(text: str) -> str:
    """Refuse two modules in one text: doctor and job would not load the same."""
    if not _as_named(text).isascii() or " " in text:
        raise ValueError("one module by its name, without blanks; several are several entries")
    return text


def _as_value(text: str) -> str:
    """Refuse what not every launcher hands on: Hydra's and PMI's lines end at a newline."""
    if not _is_plain(text):
        raise ValueError("a value without newlines and other control characters")
    return text


def _as_options(text: str) -> str:
    """Refuse what is no options on one line: a newline would begin a command of its own."""
    try:
        words = shlex.split(_one_line(text))
    except ValueError:
        words = []
    if not words:
        raise ValueError("options on one line, each quote closed")
    return text


def _one_line(text: str) -> str:
    """Refuse newlines and other control characters, and a text without anything."""
    if not text.strip() or not _is_plain(text):
        raise ValueError("one line of text, without control characters")
    return text


def _one_name(text: str) -> str:
    """Refuse what is no single name: several rails are handed to an MPI as a list with commas."""
    if any(mark.isspace() or mark in ",/" for mark in text) or not text or not _is_plain(text):
        raise ValueError("one interface or port by its name, without blanks, commas and slashes")
    return text


def host_and_port(text: str) -> tuple[str, int]:
    """Return the two of ``HOST`` or ``HOST:PORT`` of a mail server; port 25 where none is named.

    Raises:
        ValueError: it is neither, or no name that can be looked up.
    """
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "", parts.port or 25
        host.encode("idna")
    except ValueError:
        host = ""
    if not host or parts.path:
        raise ValueError("host or host:port")
    return host, port


def _mail_server(text: str) -> str:
    host_and_port(text)
    return text


MailServer = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9.:\[\]-]+$"), AfterValidator(_mail_server)
]
Module = Annotated[str, AfterValidator(_as_module)]
Rail = Annotated[str, AfterValidator(_one_name)]
Named = Annotated[str, AfterValidator(_as_named)]
"""What something else knows by that name: a module, a host, a program, a link."""
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Name of an environment variable, as a shell can export it."""
Value = Annotated[str, AfterValidator(_as_value)]
Options = Annotated[str, AfterValidator(_as_options)]
"""One or several options with their values, in the quotes of a shell where they hold blanks."""
OneLine = Annotated[str, AfterValidator(_one_line)]
"""Text where a newline would begin something else: another header, another command."""
