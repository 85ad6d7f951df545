"""Turn what a job printed into plain numbered lines: the ground that every parser stands on.

Launchers put a prefix before each line, terminals colour them and Windows editors end them with
a carriage return.  None of that is data, so it goes before any table is looked for.  Line numbers
stay those of the original text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from fabricproof.core.errors import ParseError

#: ECMA-48 control sequences (colours, cursor movement) and the two-byte escapes.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")

#: What Open MPI's ``--tag-output`` puts before each line: ``[1,0]<stdout>:``; 5.x adds a blank and
#: may add host and process before it.
_TAG = re.compile(
    r"^(?:\[[^\]\n]{0,80}\])?\[?[\w,.:\-]{0,120}\]?<std(?:out|err|diag)>: ?", re.MULTILINE
)
#: ``iperf3 --timestamps``, whose own format is ``%c `` (iperf3.1), as the C locale writes it
_STAMP = r"^( *[0-9]+: )?[A-Z][a-z]{2} [A-Z][a-z]{2} [ 1-3]\d \d\d:\d\d:\d\d \d{4} "
_STAMPED = re.compile(_STAMP, re.MULTILINE)
_STAMPED_ROW = re.compile(_STAMP + r"\[ *(?:\d+|SUM|ID)\]", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class TextSection:
    """Consecutive lines of one text that one tool printed.

    Attributes:
        lines: the lines without their ends and without launcher prefixes.
        first: number of the first line in the source, from 1.
        ends_text: the text stops within this section, without a newline.
    """

    lines: list[str]
    first: int
    source: str
    ends_text: bool = False

    def error(
        self, index: int, problem: str, *, expected: str, got: str | None = None
    ) -> ParseError:
        """Return the error for the line at ``index`` of :attr:`lines`; ``got`` is that line."""
        if got is None:
            got = repr(shorten(self.lines[index].strip()))
        return ParseError(
            problem, source=self.source, line=self.first + index, expected=expected, got=got
        )


def shorten(text: str, limit: int = 80) -> str:
    """Return ``text``, cut at ``limit`` characters with a visible ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def clean(text: str) -> str:
    """Return ``text`` without byte order mark, escapes, carriage returns and launcher prefixes.

    The number of newlines stays what it was.
    """
    text = text.removeprefix("\ufeff")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    if "<std" in text:
        text = _TAG.sub("", text)
    if ("bits/sec" in text or "Bytes/sec" in text) and _STAMPED_ROW.search(text):
        text = _STAMPED.sub(r"\1", text)
    return text


#: Columns that the tools print as whole numbers; every other one has exactly two decimals
#: (OSU ``FLOAT_PRECISION 2`` in util/osu_util.h; IMB ``%.2f`` in IMB_edit_format and P2P).
WHOLE = frozenset(
    {"message_size", "repetitions", "iterations", "transmit_size", "num_processes", "group"}
)

#: No tool prints more digits; without the limit a broken text could ask for numbers of any length.
#: No run has a count of 0: none of processes, of repetitions, of messages in a window.
COUNT = "[1-9][0-9]{0,17}"
_COUNTS = frozenset({"repetitions", "iterations", "num_processes"})
INTEGER = "[0-9]{1,18}"
_DECIMAL = r"[0-9]{1,18}\.[0-9]{2}"
_NUMBER = re.compile(r"[0-9]+")
_COUNT = re.compile(COUNT)


def count(name: str) -> str:
    """Return the pattern of a group that holds a count."""
    return f"(?P<{name}>{COUNT})"


def facts_of(patterns: Iterable[re.Pattern[str]], line: str) -> dict[str, str | int | float]:
    """Return the named groups of the first pattern that matches the line, counts as numbers."""
    matches = (pattern.fullmatch(line) for pattern in patterns)
    found = next((match.groupdict() for match in matches if match), {})
    return {name: int(word) if _COUNT.fullmatch(word) else word for name, word in found.items()}


class RowShape:
    """How a row of some columns looks, and what its numbers are.

    Attributes:
        printed: the columns in printed order; ``validation`` is one of Pass or Fail.
        columns: those that hold numbers.
        is_row: matches one whole line.
        ends_whole: the last column holds a whole number, which shows no cut.
        sentence: the row is a sentence with whole numbers, of this pattern.
    """

    def __init__(
        self, printed: tuple[str, ...], whole: frozenset[str] = WHOLE, sentence: str | None = None
    ) -> None:
        """Make the shape of a row of numbers, or of a sentence of whole numbers (a pattern)."""
        fields = {name: COUNT if name in _COUNTS else INTEGER for name in whole}
        fields["validation"] = "(?:Pass|Fail)"
        pattern = sentence or "[ \t]+".join(fields.get(name, _DECIMAL) for name in printed)
        self.printed = printed
        self.columns = tuple(name for name in printed if name != "validation")
        self.is_row = re.compile(f"[ \t]*{pattern}[ \t]*").fullmatch
        self.ends_whole = printed[-1] in whole and sentence is None
        self.sentence = sentence
        self._readers = [
            (at, int if sentence or name in whole else float)
            for at, name in enumerate(printed)
            if name != "validation"
        ]

    def read(self, section: TextSection, found: Sequence[int]) -> tuple[tuple[float, ...], ...]:
        """Return the numbers of the lines of a section that are rows.

        Raises:
            ParseError: the last row may be cut: a whole number at the end of a text without
                newline could be the beginning of a longer one; two decimals are whole.
        """
        last = len(section.lines) - 1
        if section.ends_text and self.ends_whole and found and found[-1] == last:
            raise section.error(last, "cut row", expected="a newline at its end")
        text = "\n".join([section.lines[index] for index in found])
        words = _NUMBER.findall(text) if self.sentence else text.split()
        width = len(self.printed)
        return tuple(zip(*(map(read, words[at::width]) for at, read in self._readers), strict=True))

    def describe(self) -> str:
        """Return what a row should hold, for an error message."""
        names = ["Pass or Fail" if name == "validation" else name for name in self.printed]
        return f"{len(names)} columns ({', '.join(names)})"


row_shape = lru_cache(maxsize=128)(RowShape)


def check_sizes(
    section: TextSection,
    indexes: Sequence[int],
    sizes: Sequence[float] | None,
    *,
    first: int | None,
    doubling: bool = True,
) -> None:
    """Check that the sizes double, as where the tool chose them, or at least rise.

    Args:
        section: where they stand.
        indexes: the line of each.
        sizes: in bytes, in printed order; None if the table has none, and so one row.
        first: the largest size that may follow 0; None for any power of two.
        doubling: the tool chose them.

    Raises:
        ParseError: a size repeats, goes down, or skips one.
    """
    if sizes is None:
        if len(indexes) > 1:
            raise section.error(
                indexes[1], "a second row", expected="one row, as there are no sizes"
            )
        return
    for index, (before, size) in zip(indexes[1:], pairwise(sizes), strict=True):
        if doubling and before == 0 and first is not None and size > first:
            raise section.error(index, "a row is missing", expected=f"message size {first}")
        if size != 2 * before or not before:
            check_next_size(section, index, int(before), int(size), steps=doubling)


def check_next_size(
    section: TextSection, index: int, before: int, size: int, *, steps: bool
) -> None:
    """Check that ``size`` may follow ``before``.

    ``steps``: sizes double (0 is followed by a power of two), as where the tool chose them.

    Raises:
        ParseError: the size repeats, goes down, or skips one.
    """
    if size <= before:
        raise section.error(index, "message sizes out of order", expected=f"more than {before}")
    if not steps:
        return
    doubles = size == 2 * before if before else size & (size - 1) == 0
    if not doubles:
        wanted = f"{2 * before}" if before else "a power of two"
        raise section.error(
            index,
            "a row is missing",
            expected=f"message size {wanted} (the tool doubles its sizes; a table of sizes picked "
            "by hand cannot be told from one that lost rows)",
        )
