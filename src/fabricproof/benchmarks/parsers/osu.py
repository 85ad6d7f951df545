"""Read the output of the OSU Micro-Benchmarks (C, versions 5 to 7) and of their mpi4py ports.

A section begins at a title and ends before the next one.  The title names the program, the
column header is checked against the known names, every row must be whole, and sizes must double:
a gap is a lost row.  OSU prints no end marker, so a table that was cut between two rows can only
be told by the sizes that the run asked for, or by the news of the job's death.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fabricproof.benchmarks.parsers.grammar.chatter import check_chatter, is_exit_status
from fabricproof.benchmarks.parsers.grammar.osu import (
    Attributes,
    attributes_of,
    columns_of,
    is_cut_attribute,
    is_header,
    measures_bandwidth,
    title_of,
)
from fabricproof.benchmarks.parsers.grammar.text import (
    RowShape,
    TextSection,
    check_next_size,
    read_block,
    row_shape,
)
from fabricproof.core.measure import Table

_HELLO = re.compile(r"[ \t]*This is a test with ([0-9]{1,18}) processes[ \t]*")
_INIT = re.compile(
    r"[ \t]*nprocs: ([0-9]{1,18}), min: ([0-9]{1,18}) ms, max: ([0-9]{1,18}) ms, "
    r"avg: ([0-9]{1,18}) ms[ \t]*"
)
#: mpi/startup/osu_hello.c and osu_init.c: one sentence instead of a table.
_STARTUP = {
    "osu_hello": (_HELLO, ("num_processes",)),
    "osu_init": (_INIT, ("num_processes", "startup_min_ms", "startup_max_ms", "startup_avg_ms")),
}


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the tables of one run of one OSU program.

    Raises:
        ParseError: the title or a column is unknown, a row is damaged or missing, there is no
            row, or the text says that the job died.
    """
    blank, at = _read_title(section)
    if blank.program in _STARTUP:
        return (_read_startup(section, at, blank),)
    tables: list[Table] = []
    while True:
        attributes, at = _find_header(section, at, blank, later=bool(tables))
        blank = replace(blank, attributes=attributes) if not tables else blank
        columns = _columns(section, at, blank, tables)
        table, at = _read_table(section, at, (blank, attributes, columns))
        tables.append(table)
        if at == len(section.lines):
            return tuple(tables)


def _read_title(section: TextSection) -> tuple[Table, int]:
    """Return an empty table that knows its program, and the index after the title."""
    attributes: Attributes = {}
    for index, line in enumerate(section.lines):
        title = title_of(line)
        if title is not None:
            suite, program, version, accelerator = title
            if accelerator:
                attributes["accelerator"] = accelerator
            table = Table(
                suite=suite,
                program=program,
                version=version,
                columns=(),
                rows=(),
                source=section.source,
                line=section.first + index,
                row_lines=(),
                attributes=attributes,
            )
            return table, index + 1
        found = attributes_of(line)
        if "OSU" in line or is_header(line):
            break
        if not found:
            check_chatter(section, index, "the title of a benchmark")
        attributes.update(found)
    else:
        index = 0
    raise section.error(
        index, "not the title of a known OSU program", expected="'# OSU MPI ... Test v...'"
    )


def _read_startup(section: TextSection, at: int, blank: Table) -> Table:
    pattern, columns = _STARTUP[blank.program]
    found: Table | None = None
    for index in range(at, len(section.lines)):
        match = pattern.fullmatch(section.lines[index])
        if match and found is not None:
            raise section.error(index, "a second result", expected="one sentence with numbers")
        if match:
            number = section.first + index
            row = tuple(int(group) for group in match.groups())
            found = replace(blank, columns=columns, rows=(row,), line=number, row_lines=(number,))
        elif not attributes_of(section.lines[index]):
            check_chatter(section, index, "one sentence with numbers")
    if found is None:
        raise section.error(0, "a run without result", expected="one sentence with numbers")
    return found


def _find_header(
    section: TextSection, at: int, blank: Table, *, later: bool
) -> tuple[Attributes, int]:
    """Return the attributes of ``blank`` and those found on the way, and the header's index.

    A later table of the same run is of another data type, which must be named.
    """
    attributes = {
        name: value for name, value in blank.attributes.items() if not later or name != "datatype"
    }
    for index in range(at, len(section.lines)):
        line = section.lines[index]
        if is_header(line):
            _check_facts(section, index, blank.program, attributes, later=later)
            return attributes, index
        found = attributes_of(line)
        attributes.update(found)
        title = title_of(line)
        # osu_mbw_mr 7.2 prints its title twice (HEADER, then print_header).
        if title is not None and title[1] != blank.program:
            raise section.error(index, f"no table of {blank.program}", expected="a column header")
        if not found and title is None:
            check_other(section, index, "a column header")
    raise section.error(
        blank.line - section.first,
        "a table without column header",
        expected=f"the column header of {blank.program}",
    )


def _check_facts(
    section: TextSection,
    header: int,
    program: str,
    attributes: Mapping[str, object],
    *,
    later: bool,
) -> None:
    if later and "datatype" not in attributes:
        raise section.error(header, "a second column header", expected="a row, or a new title")
    if program == "osu_mbw_mr" and "num_pairs" not in attributes:
        raise section.error(
            header, "a line is missing", expected="'[ pairs: N ] [ window size: W ]' above"
        )


def _columns(
    section: TextSection, header: int, blank: Table, before: list[Table]
) -> tuple[str, ...]:
    """Return the columns under the header at index ``header``.

    The header of the bandwidth ports says "Latency [us]", copied from the latency port, while
    the numbers under it are MB/s (mpi4py 4.1.2, demo/osu_bw.py and osu_bibw.py): there the title
    decides.  Of several data types in one run, OSU 7.2 prints "Avg Latency(us)" above every table
    but the first, whatever the program measures (osu_bw.c calls print_only_header of the
    collectives): there the first header holds.
    """
    columns = columns_of(section, header)
    if before:
        return before[0].columns + (("validation",) if "validation" in columns else ())
    bandwidth = measures_bandwidth(blank.program)
    if blank.suite == "osu-mpi4py" and bandwidth:
        return tuple("bandwidth_mb_s" if name == "latency_us" else name for name in columns)
    if bandwidth != ("bandwidth_mb_s" in columns):
        raise section.error(
            header,
            f"not the columns of {blank.program}",
            expected="MB/s" if bandwidth else "a latency in us",
        )
    return columns


def _read_table(
    section: TextSection,
    header: int,
    known: tuple[Table, Attributes, tuple[str, ...]],
) -> tuple[Table, int]:
    """Return the table under the header, and the index where it ends."""
    blank, attributes, printed = known
    shape = row_shape(printed)
    found = read_rows(section, header + 1, shape, attributes)
    if not found.rows:
        raise section.error(header, "a table without rows", expected=shape.describe())
    table = Table(
        suite=blank.suite,
        program=blank.program,
        version=blank.version,
        columns=shape.columns,
        rows=tuple(found.rows),
        source=section.source,
        line=section.first + header,
        row_lines=tuple(found.row_lines),
        attributes={**attributes, **found.attributes},
    )
    return table, found.end


@dataclass(kw_only=True)
class OsuRows:
    """Rows as they are collected."""

    rows: list[tuple[float, ...]] = field(default_factory=list)
    row_lines: list[int] = field(default_factory=list)
    failed: list[float] = field(default_factory=list)
    attributes: Attributes = field(default_factory=dict)
    end: int = 0


def read_rows(
    section: TextSection, start: int, shape: RowShape, attributes: Mapping[str, object]
) -> OsuRows:
    """Collect rows until the section ends or the next table of the same run begins.

    Raises:
        ParseError: a row is damaged or missing, or the text says that the job died.
    """
    found = OsuRows(end=len(section.lines))
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
    section: TextSection,
    start: int,
    shape: RowShape,
    attributes: Mapping[str, object],
    found: OsuRows,
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


def _ends_rows(section: TextSection, index: int, shape: RowShape, found: OsuRows) -> bool:
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
    section: TextSection, index: int, before: float, size: float, attributes: Mapping[str, object]
) -> None:
    if before < 0:
        return
    # A data type of several bytes leaves out the sizes that hold no whole element.
    of_bytes = attributes.get("datatype", "MPI_CHAR") == "MPI_CHAR"
    if before == 0 and size > 1 and of_bytes:
        raise section.error(index, "a row is missing", expected="message size 1")
    check_next_size(section, index, int(before), int(size), steps=True)


def _check_cut(section: TextSection, shape: RowShape, found: OsuRows) -> None:
    """Refuse a last row that may have lost its end.

    A number with two decimals is whole; a whole number at the end of a text without newline
    could be the beginning of a longer one.
    """
    last = section.first + len(section.lines) - 1
    whole_last = shape.ends_whole
    if section.ends_text and whole_last and found.row_lines and found.row_lines[-1] == last:
        raise section.error(len(section.lines) - 1, "cut row", expected="a newline at its end")


def check_other(section: TextSection, index: int, expected: str) -> None:
    """Accept the line at ``index`` as chatter; see :func:`check_chatter`."""
    if is_cut_attribute(section.lines[index]):
        raise section.error(index, "damaged line", expected="a whole line about the run")
    check_chatter(section, index, expected)
