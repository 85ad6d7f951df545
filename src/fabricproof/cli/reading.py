"""Read what a benchmark printed, from a file or from standard input, in any usual encoding."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

from fabricproof.errors import InputMissingError


def read_output(name: str) -> str:
    """Return the text of file ``name``, or of standard input where it is ``-``.

    UTF-8, or UTF-16 with its byte order mark, as some shells redirect; bytes that are no text are
    kept as replacement marks.

    Raises:
        InputMissingError: it cannot be read.
    """
    data = _stdin() if name == "-" else _file(name)
    is_utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_utf_16 else "utf-8", errors="replace")


def _stdin() -> bytes:
    # The shell's <&- leaves no standard input at all.
    if sys.stdin is None:
        raise InputMissingError(
            "cannot read: it is closed", source="<stdin>", expected="a benchmark output"
        )
    return sys.stdin.buffer.read()


def _file(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise InputMissingError(
            f"cannot read: {error.strerror}", source=name, expected="a benchmark output"
        ) from None
