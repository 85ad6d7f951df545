"""Kinds of text in a site's files: names, options, values, each as what reads it can take it."""

from __future__ import annotations

import os
import re
import shlex
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, StringConstraints


def _text(pattern: str, words: str) -> AfterValidator:
    """Refuse a text that does not match, saying in ``words`` what is expected."""
    fits = re.compile(pattern).fullmatch

    def check(text: str) -> str:
        if not fits(text):
            raise ValueError(words)
        return text

    return AfterValidator(check)


def _one_line_of_options(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words or not re.fullmatch(_PLAIN, text):
        raise ValueError("options on one line, each quote closed")
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression, as ReFrame's hostnames ({error})") from None
    return text


def host_and_port(text: str) -> tuple[str, int]:
    """Return the two of ``HOST`` or ``HOST:PORT`` of a mail server; port 25 if none is named.

    Raises:
        ValueError: it is neither, or no name that can be looked up.
    """
    try:
        parts = urlsplit(f"//{text}")
        parts.hostname.encode("idna")  # type: ignore[union-attr]
        return str(parts.hostname), parts.port or 25
    except (ValueError, AttributeError):
        raise ValueError("host or host:port") from None


def _mail_server(text: str) -> str:
    host_and_port(text)
    return text


#: text without control characters: a newline would begin another command, header or variable
_PLAIN = r"[^\x00-\x1f\x7f]*"

Name = Annotated[
    str, _text(r"[A-Za-z0-9][A-Za-z0-9_-]*", "letters, digits, '_' and '-', no other first")
]
ReframeName = Annotated[
    str,
    _text(r"[A-Za-z_][A-Za-z0-9_-]*", "a name as ReFrame takes it: letters, digits, '_' and '-'"),
]
"""Of a site, partition or stack: ReFrame's schema refuses a dot, and a digit first."""
Named = Annotated[
    str,
    _text(rf"(?=\S){_PLAIN}(?<=\S)", "a name without blanks around it and no control characters"),
]
"""What something else has by that name: a host, a program, a link."""
Module = Annotated[
    str, _text(r"[!-~]+", "one module by its name, without blanks; several are several entries")
]
Rail = Annotated[
    str,
    _text(
        r"[^\s,/\x00-\x1f\x7f]+",
        "one interface or port by its name, without blanks, commas and slashes",
    ),
]
PciAddress = Annotated[
    str, _text(r"([0-9a-f]{4}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", "a PCI address as 0000:81:00.0")
]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Value = Annotated[str, _text(_PLAIN, "a value without newlines and other control characters")]
OneLine = Annotated[
    str, _text(rf"(?=.*\S){_PLAIN}", "one line of text, without control characters")
]
Options = Annotated[str, AfterValidator(_one_line_of_options)]
Expanded = Annotated[Options, AfterValidator(os.path.expandvars)]
"""One or several options with their values, in the quotes of a shell if they hold blanks."""
Path = Annotated[str, StringConstraints(pattern=r"^/\S+$")]
MailServer = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9.:\[\]-]+$"), AfterValidator(_mail_server)
]
HostPattern = Annotated[Named, AfterValidator(_pattern)]


def one_of(names: str) -> AfterValidator:
    """Refuse a text that is none of ``names``."""
    return _text("|".join(names.split()), f"one of {', '.join(names.split())}")
