"""Read the rows under a column header of the OSU Micro-Benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabricproof.benchmarks.parsers._chatter import check_chatter, is_exit_status
from fabricproof.benchmarks.parsers._osu_grammar import (
    Attributes,
    attributes_of,
    is_cut_attribute,
    is_header,
)
from fabricproof.benchmarks.parsers._rows import RowShape, check_next_size, read_block
from fabricproof.benchmarks.parsers._text import Section


@dataclass(kw_only=True)
class Found:
    """Rows as they are collected."""

    rows: list[tuple[float, ...]] = field(default_factory=list)
    row_lines: list[int] = field(default_factory=list)
    failed: list[float] = field(default_factory=list)
    attributes: Attributes = field(default_factory=dict)
    end: int = 0


def read_rows(
    section: Section, start: int, shape: RowShape, attributes: Mapping[str, object]
) -> Found:
    """Collect rows until the section ends or the next table of the same run begins.

    Args:
        section: the lines.
        start: index of the line after the column header.
        shape: how a row looks.
        attributes: what is known about the run.

    Raises:
        ParseError: a row is damaged or missing, or the text says that the job died.
    """
    found = Found(end=len(section.lines))
    for index in range(start, len(section.lines)):
        if shape.pattern.fullmatch(section.lines[index]):
            rest = read_block(shape, section.lines, index)
            if rest is not None:
                found.rows = rest
                found.row_lines = [*range(section.first + index, section.first + index + len(rest))]
            else:
                _read_singly(section, index, shape, attributes, found)
            break
        if _ends_rows(section, index, shape, found):
            found.end = index
            break
    _check_cut(section, shape, found)
    if shape.verdict_at is not None:
        found.attributes["validation"] = "Fail" if found.failed else "Pass"
    return found


def _read_singly(
    section: Section, start: int, shape: RowShape, attributes: Mapping[str, object], found: Found
) -> None:
    """Read row by row, with whatever stands between."""
    match, read = shape.pattern.fullmatch, shape.read
    sized = shape.columns[0] == "message_size"
    before = -1.0
    for index in range(start, len(section.lines)):
        row = match(section.lines[index])
        if row is None:
            if _ends_rows(section, index, shape, found):
                found.end = index
                return
            continue
        numbers = read(row)
        if not sized and found.rows:
            raise section.error(index, "a second row", expected="one row, as there are no sizes")
        if sized and (numbers[0] != 2 * before or before == 0):
            _check_size(section, index, before, numbers[0], {**attributes, **found.attributes})
        before = numbers[0]
        found.rows.append(numbers)
        found.row_lines.append(section.first + index)
        if shape.verdict_at is not None and row[shape.verdict_at + 1] == "Fail":
            found.failed.append(numbers[0])


def _ends_rows(section: Section, index: int, shape: RowShape, found: Found) -> bool:
    """Tell whether the next table of the same run begins at a line that is no row."""
    line = section.lines[index]
    if not line or line.isspace():
        return False
    if is_header(line):
        return True
    attributes = attributes_of(line)
    if attributes:
        if found.rows:
            return True
        found.attributes.update(attributes)
        return False
    if not (found.failed and is_exit_status(line)):
        check_other(section, index, shape.describe())
    return False


def _check_size(
    section: Section, index: int, before: float, size: float, attributes: Mapping[str, object]
) -> None:
    if before < 0:
        return
    # A data type of several bytes leaves out the sizes that hold no whole element.
    of_bytes = attributes.get("datatype", "MPI_CHAR") == "MPI_CHAR"
    if before == 0 and size > 1 and of_bytes:
        raise section.error(index, "a row is missing", expected="message size 1")
    check_next_size(section, index, int(before), int(size), steps=True)


def _check_cut(section: Section, shape: RowShape, found: Found) -> None:
    """Refuse a last row that may have lost its end.

    A number with two decimals is whole; a whole number at the end of a text without newline
    could be the beginning of a longer one.
    """
    last = section.first + len(section.lines) - 1
    whole_last = shape.ends_whole
    if section.ends_text and whole_last and found.row_lines and found.row_lines[-1] == last:
        raise section.error(len(section.lines) - 1, "cut row", expected="a newline at its end")


def check_other(section: Section, index: int, expected: str) -> None:
    """Accept the line at ``index`` as chatter; see :func:`check_chatter`."""
    if is_cut_attribute(section.lines[index]):
        raise section.error(index, "damaged line", expected="a whole line about the run")
    check_chatter(section, index, expected)
