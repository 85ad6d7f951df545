"""Rows of numbers: patterns built from column names, and the checks on message sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from fabricproof.benchmarks.parsers._text import Section
from fabricproof.core.errors import ParseError

#: Columns that the tools print as whole numbers; every other one has exactly two decimals
#: (OSU ``FLOAT_PRECISION 2`` in util/osu_util.h; IMB ``%.2f`` in IMB_edit_format and P2P).
WHOLE = frozenset(
    {"message_size", "repetitions", "iterations", "transmit_size", "num_processes", "group"}
)

_BLANK = "[ \t]+"
#: No tool prints more digits; without the limit a broken text could ask for numbers of any length.
_WHOLE = "([0-9]{1,18})"
_DECIMAL = r"([0-9]{1,18}\.[0-9]{2})"


@dataclass(frozen=True, kw_only=True)
class RowShape:
    """How a row of these columns looks.

    Attributes:
        columns: the names of the columns with numbers, in printed order.
        pattern: matches one whole row; one group per printed column.
        block: matches nothing but such rows, line after line, where the first column is the size
            and the others have decimals; None for other shapes.
        read: turns a match of ``pattern`` into the row's numbers.
        verdict_at: where in the printed columns a Pass/Fail stands, None where none does.
        ends_whole: the last column holds a whole number, which shows no cut.
    """

    columns: tuple[str, ...]
    pattern: re.Pattern[str]
    block: re.Pattern[str] | None
    read: Callable[[re.Match[str]], tuple[float, ...]]
    verdict_at: int | None
    ends_whole: bool

    def describe(self) -> str:
        """Return what a row should hold, for an error message."""
        names = list(self.columns)
        if self.verdict_at is not None:
            names.insert(self.verdict_at, "Pass or Fail")
        return f"{len(names)} columns ({', '.join(names)})"


@lru_cache(maxsize=128)
def row_shape(printed: tuple[str, ...], whole: frozenset[str] = WHOLE) -> RowShape:
    """Return the shape of a row with the ``printed`` columns.

    Args:
        printed: column names in printed order; ``validation`` stands for a Pass/Fail column.
        whole: the columns that hold whole numbers.
    """
    fields = [
        "(Pass|Fail)" if name == "validation" else _WHOLE if name in whole else _DECIMAL
        for name in printed
    ]
    numbers = tuple(name for name in printed if name != "validation")
    return RowShape(
        columns=numbers,
        pattern=re.compile(f"[ \t]*{_BLANK.join(fields)}[ \t]*"),
        block=_block(printed, whole),
        read=_reader(printed, whole),
        verdict_at=printed.index("validation") if "validation" in printed else None,
        ends_whole=printed[-1] in whole,
    )


def _block(printed: tuple[str, ...], whole: frozenset[str]) -> re.Pattern[str] | None:
    if printed[0] != "message_size" or not whole.isdisjoint(printed[1:]):
        return None
    if "validation" in printed or len(printed) < 2:
        return None
    # No possessive quantifiers: fullmatch of Python 3.11.2 (Debian 12) gets them wrong.
    decimal = r"[ \t]+[0-9]{1,18}\.[0-9]{2}"
    return re.compile(r"(?:[ \t]*[0-9]{1,18}" + decimal * (len(printed) - 1) + r"[ \t]*\n)+")


def read_block(shape: RowShape, lines: list[str], start: int) -> list[tuple[float, ...]] | None:
    """Read all lines from ``start`` on at once, if they are rows of doubling sizes throughout.

    This is the common case, and several times as fast as row by row.

    Returns:
        The rows, or None where anything at all is out of the ordinary.
    """
    if shape.block is None:
        return None
    end = len(lines)
    while end > start and not lines[end - 1].strip():
        end -= 1
    text = "\n".join(lines[start:end]) + "\n"
    if shape.block.fullmatch(text) is None:
        return None
    words = text.split()
    width = len(shape.columns)
    sizes = [*map(int, words[::width])]
    if sizes[0] <= 0 or any(size != 2 * before for before, size in pairwise(sizes)):
        return None
    return [*zip(sizes, *(map(float, words[at::width]) for at in range(1, width)), strict=True)]


def _reader(
    printed: tuple[str, ...], whole: frozenset[str]
) -> Callable[[re.Match[str]], tuple[float, ...]]:
    """Return the quickest function that reads a row: this loop is what parsing costs."""
    if "validation" not in printed and printed[0] in whole and whole.isdisjoint(printed[1:]):
        if len(printed) == 2:
            return lambda row: (int(row[1]), float(row[2]))
        return lambda row: (int(row[1]), *map(float, row.groups()[1:]))
    converters = [
        (at, int if name in whole else float)
        for at, name in enumerate(printed, 1)
        if name != "validation"
    ]
    return lambda row: tuple(convert(row[at]) for at, convert in converters)


def check_expected_sizes(
    sizes: Sequence[float],
    expected: Sequence[int] | None,
    *,
    source: str,
    line: int,
) -> None:
    """Check that every size the run asked for is there.

    Raises:
        ParseError: a size is missing: the output was cut.
    """
    missing = sorted(set(expected or ()) - set(sizes))
    if missing:
        raise ParseError(
            "the table is shorter than the run asked for",
            source=source,
            line=line,
            expected=f"a row for each of {len(set(expected or ()))} sizes",
            got=f"none for {', '.join(str(size) for size in missing[:8])}",
        )


def check_next_size(section: Section, index: int, before: int, size: int, *, steps: bool) -> None:
    """Check that ``size`` may follow ``before``.

    Args:
        section: the lines.
        index: where the row of ``size`` stands.
        before: the size of the row above.
        size: the size of this row.
        steps: sizes double (0 is followed by a power of two), as where the tool chose them.

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
