"""Why a call of Spack failed, in Spack's own words, and where to read on.

Spack 1.1 prints every error as ``==> Error: `` with its details on the lines below; a failed build
adds an excerpt of its log, with ``>>`` before what Spack takes for the error, and where the log
lies (``ChildError`` of ``build_environment.py``, ``make_log_context`` of ``util/log_parse.py``).
"""

from __future__ import annotations

import re
import signal

from fabricproof.core.errors import (
    FabricproofError,
    InterruptedBuildError,
    OutputError,
    UnavailableError,
)
from fabricproof.stacks.spack.tool import SpackAnswer

_AGAIN = "run the same command again: what is finished is kept"

#: colours, cursor movements and window titles of a terminal.
_CONTROL = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?]*[A-Za-z]|\r(?=\n|$)")

#: an error with the lines below it; a repository without recipes is only warned of.
_ERROR = re.compile(
    r"^==> (?:Error: |Warning: (?=Error constructing repository))"
    r"(?P<text>.*(?:\n(?!==> |\[\+\] ).*)*)",
    re.MULTILINE,
)
#: said at the end about what was said before.
_ECHO = re.compile(r"\S+: Package was not installed$|Installation request failed\.")
_MARKED = re.compile(r"^  >> \d+\s+(?P<text>.*)", re.MULTILINE)
_BUILD_LOG = re.compile(r"^See build log for details:\n  (?P<path>/.*)", re.MULTILINE)
_DISK = re.compile(r"^.*(?:No space left on device|Disk quota exceeded).*$", re.MULTILINE)

#: characters of Spack's own words in one message.
_WIDTH = 360


def plain(text: str) -> str:
    """Return ``text`` without colours and window titles."""
    return _CONTROL.sub("", text)


def failure_of(step: str, answer: SpackAnswer) -> FabricproofError:
    """Return the error that says why ``spack STEP`` failed.

    A full disk and Ctrl-C have a class of their own: the same command goes on after them.
    """
    output = plain(answer.output)
    errors = [found["text"] for found in _ERROR.finditer(output) if not _ECHO.match(found["text"])]
    # 137 and -9 are both signal 9; Spack itself leaves with 2 after Ctrl-C.
    number = -answer.status if answer.status < 0 else answer.status - 128
    stopped = any(re.match(r"Keyboard ?[Ii]nterrupt", each) for each in errors)
    if number == signal.SIGINT or (stopped and answer.status == 2):
        return InterruptedBuildError(f"spack {step} was interrupted", next_step=_AGAIN)
    if full := _DISK.search(output):
        return OutputError(
            "the disk is full, or the quota used up",
            got=_short(full[0]),
            next_step=f"free space where the stacks and the temporary files lie, then {_AGAIN}",
        )
    if number in signal.valid_signals():
        return UnavailableError(
            "Spack was killed",
            got=f"signal {number} ({signal.strsignal(number)})",
            next_step="look whether memory ran out (dmesg, or the job's State in sacct), see that "
            f"no build of it still runs (ps), then {_AGAIN}",
        )
    log, marked = _BUILD_LOG.search(output), _MARKED.search(output)
    words = errors[0] if errors else " ".join(output.split())[-_WIDTH:]
    if log and marked:
        words = f"{words.partition(chr(10))[0].rstrip(':')}: {marked['text']}"
    return UnavailableError(
        f"spack {step} failed",
        source=log["path"] if log else None,
        expected="exit status 0",
        got=f"{answer.status}, and the words {_short(words)!r}" if words else str(answer.status),
        next_step=f"mend what Spack names, then {_AGAIN}",
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."
