"""Every error that is raised on purpose, the exit status each ends with, and who is speaking."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from typing import ClassVar

#: of what was found, and of what was expected, so much is shown
_SHOWN_CHARACTERS = 400


class ExitStatus(IntEnum):
    """Exit statuses of the ``vcluster`` command; 64 and above follow ``sysexits.h`` of the BSDs."""

    DONE = 0
    USAGE = 2
    """A wrong option or argument (click's own status)."""
    NO_INPUT = 66
    """A file cannot be read."""
    UNAVAILABLE = 69
    """The cluster is down or not healthy; a daemon or a program is missing or failed."""
    SOFTWARE = 70
    """A bug."""
    IO = 74
    """Writing failed: disk full, read-only file system, nobody reads."""
    NO_PERMISSION = 77
    """Not root."""
    CONFIG = 78
    """An option that cannot be, or the cluster runs with other options."""
    INTERRUPTED = 130


def program() -> str:
    """Return how people call this program: a caller that hands over to it says its own name."""
    return os.environ.get("VCLUSTER_PROGRAM") or "vcluster"


def or_else(step: str) -> str:
    """Return a next step, with what the caller offers where no cluster can be had."""
    instead = os.environ.get("VCLUSTER_INSTEAD")
    return f"{step}; {instead}" if instead else step


def without_control(text: str, *, kept: str = "") -> str:
    """Return ``text`` with what would steer a terminal, or begin a line, as its escape."""
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in text
    )


def _short(text: str) -> str:
    text = without_control(text)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


@dataclass(eq=False)
class VclusterError(Exception):
    """Base of every error raised on purpose.

    Attributes:
        problem: what is wrong, lower case, without a full stop.
        source: the file that it was found in.
        line: line in ``source``, from 1.
        expected: what should have been there.
        next_step: what the reader can do about it.
    """

    problem: str
    _: KW_ONLY
    source: str | None = None
    line: int | None = None
    expected: str | None = None
    got: str | None = None
    next_step: str | None = None

    exit_status: ClassVar[ExitStatus] = ExitStatus.SOFTWARE

    def __str__(self) -> str:
        """Return all of it as one line."""
        source = None if self.source is None else _short(self.source)
        place = ":".join(str(part) for part in (source, self.line) if part is not None)
        said = f"{place}: {self.problem}" if place else self.problem
        facts = [
            f"{word} {_short(value)}"
            for word, value in (("expected", self.expected), ("got", self.got))
            if value is not None
        ]
        said += f": {', '.join(facts)}" if facts else ""
        return f"{said}; next: {self.next_step}" if self.next_step else said


class ConfigError(VclusterError, ValueError):
    """An option that cannot be, or that the running cluster does not have."""

    exit_status = ExitStatus.CONFIG


class UnavailableError(VclusterError, RuntimeError):
    """A daemon, a program or the cluster is not there or does not answer."""

    exit_status = ExitStatus.UNAVAILABLE


class NeedsPrivilegeError(VclusterError, PermissionError):
    """Root is needed."""

    exit_status = ExitStatus.NO_PERMISSION
