"""Read what a benchmark printed, from a file or from standard input, in any usual encoding."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

from fabricproof.core.errors import InputMissingError, ParseError

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
