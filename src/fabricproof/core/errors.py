"""Every error that fabricproof raises on purpose, and the exit status each ends with.

The command line prints an error as one line; a traceback is always a bug of ours.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit statuses of the ``fabricproof`` command.

    0 to 6 speak of verdicts; 64 and above follow ``sysexits.h`` of the BSDs and speak of the
    command itself; 130 is the shell's convention for Ctrl-C.
    """

    PASS = 0
    """Something was judged, and nothing is FAIL, INVALID, UNJUDGED or MISSING."""
    FAIL = 1
    USAGE = 2
    """A wrong option or argument (click's own status)."""
    INVALID = 3
    MISSING = 4
    UNJUDGED = 5
    NOTHING_JUDGED = 6
    """Nothing was measured: no check selected, or every one was skipped."""
    DATA = 65
    """A benchmark output, perflog or report is damaged."""
    NO_INPUT = 66
    """A named file cannot be read."""
    UNAVAILABLE = 69
    """A daemon, tool or service that is needed is not there."""
    SOFTWARE = 70
    """A bug in fabricproof."""
    IO = 74
    """Writing failed: disk full, read-only file system."""
    BUSY = 75
    """Another run of the same kind has the lock; the same command works later (EX_TEMPFAIL)."""
    NO_PERMISSION = 77
    """Root or namespaces are needed and not to be had."""
    CONFIG = 78
    """A site, fabric or reference file is wrong."""
    INTERRUPTED = 130


#: of what was found, and of what was expected, so much is shown
_SHOWN_CHARACTERS = 400


def without_control_characters(text: str, *, kept: str = "") -> str:
    """Return ``text`` with control characters as their escapes, all but those in ``kept``."""
    if text.translate(dict.fromkeys(map(ord, kept))).isprintable():  # fast for many megabytes
        return text
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in text
    )


def words_of(error: Exception) -> str:
    """Return what Python says of data that it cannot take, in words and without the data itself."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no text in UTF-8"
    if isinstance(error, KeyError):
        return f"no {error.args[0]}" if error.args else "a key is missing"
    return str(error) or type(error).__name__


@dataclass(eq=False, repr=False)
class FabricproofError(Exception):
    """Base of every error raised on purpose.

    Args:
        problem: what is wrong, lower case, without a full stop.
        source: the file (or other origin) it was found in.
        line: line in ``source``, from 1.
        expected: what should have been there.
        got: what was there.
        next_step: what the reader can do about it.
    """

    exit_status = ExitStatus.SOFTWARE

    problem: str
    _: KW_ONLY
    source: str | None = None
    line: int | None = None
    expected: str | None = None
    got: str | None = None
    next_step: str | None = None

    def __str__(self) -> str:
        """Return it as one line."""

        def shown(text: str) -> str:
            text = without_control_characters(text)
            return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."

        place = ":".join(shown(str(part)) for part in (self.source, self.line) if part is not None)
        facts = ", ".join(
            f"{word} {shown(value)}"
            for word, value in (("expected", self.expected), ("got", self.got))
            if value is not None
        )
        sentence = ": ".join(filter(None, (place, self.problem, facts)))
        return f"{sentence}; next: {self.next_step}" if self.next_step else sentence


class ParseError(FabricproofError, ValueError):
    """A benchmark output is damaged or of an unknown kind."""

    exit_status = ExitStatus.DATA


class UnitError(FabricproofError, ValueError):
    """Two quantities of different kinds were mixed, or a unit is unknown."""

    exit_status = ExitStatus.DATA


class UnlikeError(FabricproofError, ValueError):
    """Two measurements cannot stand for each other: they were made with unlike stacks."""

    exit_status = ExitStatus.DATA


class ConfigError(FabricproofError, ValueError):
    """A site, fabric, reference or stack file is wrong."""

    exit_status = ExitStatus.CONFIG


class UnknownLinkError(ConfigError):
    """A link, PCIe slot or protocol name that the fabric data does not hold."""


class InputMissingError(FabricproofError, OSError):
    """A named file is not there or cannot be read."""

    exit_status = ExitStatus.NO_INPUT


class UnknownOptionError(FabricproofError, ValueError):
    """An option that a program we start does not know."""

    exit_status = ExitStatus.USAGE


class UnavailableError(FabricproofError, RuntimeError):
    """A daemon, tool or service that is needed is not there or does not answer."""

    exit_status = ExitStatus.UNAVAILABLE


class NeedsPrivilegeError(FabricproofError, PermissionError):
    """Root, namespaces or another right is needed and not to be had."""

    exit_status = ExitStatus.NO_PERMISSION


class OutputError(FabricproofError, OSError):
    """Writing a result failed; nothing that was there before is lost."""

    exit_status = ExitStatus.IO


class InterruptedBuildError(FabricproofError):
    """Somebody stopped a build with Ctrl-C; what was finished before is kept."""

    exit_status = ExitStatus.INTERRUPTED
