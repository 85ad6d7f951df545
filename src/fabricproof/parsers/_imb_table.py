"""Read one table of the Intel MPI Benchmarks, from "# Benchmarking" to the next one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fabricproof.measure import Table
from fabricproof.parsers._chatter import check_chatter
from fabricproof.parsers._rows import RowShape, check_expected_sizes, check_next_size, row_shape
from fabricproof.parsers._text import Section, shorten

#: Column names as printed -> as named here.  src_c/IMB_output.c IMB_print_header (2021.11);
#: ``Msg/sec``: also src_c/P2P/imb_p2p_*.c; ``defects``: builds with -DCHECK.
HEADER_WORDS: dict[str, str] = {
    "Group": "group",
    "#bytes": "message_size",
    "#repetitions": "repetitions",
    "t[usec]": "latency_us",
    "t_min[usec]": "latency_min_us",
    "t_max[usec]": "latency_max_us",
    "t_avg[usec]": "latency_avg_us",
    "t_ovrl[usec]": "overall_us",
    "t_pure[usec]": "pure_communication_us",
    "t_CPU[usec]": "compute_us",
    "overlap[%]": "overlap_percent",
    "Mbytes/sec": "bandwidth_mb_s",
    "Msg/sec": "message_rate_per_s",
    "defects": "defects",
}
_WHOLE = frozenset({"group", "message_size", "repetitions", "message_rate_per_s"})

_ATTRIBUTES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(r"[ \t]*#[ \t]*" + pattern + r"[ \t]*"), names)
    for pattern, names in (
        (r"#processes = (\d+)(?:; rank order \(rowwise\):)?", ("num_processes",)),
        (r"#processes = (\d+) \(threads: (\d+)\)", ("num_processes", "num_threads")),
        (
            r"\( (\d+) groups of (\d+) processes each running simultaneous \)",
            ("num_groups", "num_processes"),
        ),
        (r"\( (\d+) additional process(?:es)? waiting in MPI_Barrier\)", ("num_idle_processes",)),
        (r"MODE: (AGGREGATE|NON-AGGREGATE)", ("mode",)),
        (r"window_size = (\d+)", ("window_size",)),
    )
)
_FAILED = re.compile(
    r"out-of-mem|int-overflow|time-out|NO SUCCESSFUL EXECUTIONS|FAILED|unsuccessful"
)
_COLUMNS = re.compile(r"[ \t]*(?:Group[ \t]+)?#(?:bytes|repetitions)\b")


@dataclass(kw_only=True)
class _Found:
    rows: list[tuple[float, ...]] = field(default_factory=list)
    row_lines: list[int] = field(default_factory=list)


def read_table(
    section: Section, start: int, end: int, blank: Table, expected_sizes: Sequence[int] | None
) -> tuple[Table, ...]:
    """Return the table that begins at ``start``; one per group where groups are listed.

    Args:
        section: the lines of the run.
        start: index of the "# Benchmarking" line.
        end: index after the last line that may belong to it.
        blank: the table without columns and rows.
        expected_sizes: the message sizes that the run asked for, where they are known.

    Raises:
        ParseError: see :func:`fabricproof.parsers.imb.parse`.
    """
    attributes, header = _find_header(section, start + 1, end, blank)
    columns = _columns(section, header)
    shape = row_shape(columns, _WHOLE)
    blank = replace(
        blank, attributes=attributes, columns=shape.columns, line=section.first + header
    )
    found = _read_rows(section, header + 1, end, shape)
    if not found:
        raise section.error(header, "a table without rows", expected=shape.describe())
    return tuple(
        _finish(section, blank, group, rows, expected_sizes) for group, rows in found.items()
    )


def _find_header(
    section: Section, start: int, end: int, blank: Table
) -> tuple[dict[str, str | int | float], int]:
    attributes = dict(blank.attributes)
    for index in range(start, end):
        line = section.lines[index]
        if _COLUMNS.match(line):
            return attributes, index
        found = _attributes_of(line)
        attributes.update(found)
        if not found and not line.lstrip().startswith("#"):
            check_chatter(section, index, "the column header")
    raise section.error(
        start - 1, "a table without column header", expected="'#bytes #repetitions ...'"
    )


def _attributes_of(line: str) -> dict[str, str | int | float]:
    for pattern, names in _ATTRIBUTES:
        match = pattern.fullmatch(line)
        if match:
            return {
                name: int(value) if value.isdigit() else value
                for name, value in zip(names, match.groups(), strict=True)
            }
    return {}


def _columns(section: Section, header: int) -> tuple[str, ...]:
    names: list[str] = []
    for word in section.lines[header].split():
        if word not in HEADER_WORDS:
            raise section.error(
                header,
                "unknown column",
                expected=f"one of {', '.join(HEADER_WORDS)}",
                got=repr(shorten(word)),
            )
        names.append(HEADER_WORDS[word])
    return tuple(names)


def _read_rows(section: Section, start: int, end: int, shape: RowShape) -> dict[int, _Found]:
    """Collect the rows of each group; without groups all are of group 0."""
    groups: dict[int, _Found] = {}
    grouped = shape.columns[0] == "group"
    for index in range(start, end):
        row = shape.pattern.fullmatch(section.lines[index])
        if row is None:
            _check_other(section, index, shape)
            continue
        numbers = shape.read(row)
        found = groups.setdefault(int(numbers[0]) if grouped else 0, _Found())
        found.rows.append(numbers[1:] if grouped else numbers)
        found.row_lines.append(section.first + index)
    last = len(section.lines) - 1
    if section.ends_text and shape.ends_whole and end == last + 1 and _is_row(section, last, shape):
        raise section.error(last, "cut row", expected="a newline at its end")
    return groups


def _is_row(section: Section, index: int, shape: RowShape) -> bool:
    return shape.pattern.fullmatch(section.lines[index]) is not None


def _check_other(section: Section, index: int, shape: RowShape) -> None:
    line = section.lines[index]
    if _FAILED.search(line):
        raise section.error(index, "the benchmark gave up", expected=shape.describe())
    if not line.lstrip().startswith("#"):
        check_chatter(section, index, shape.describe())


def _finish(
    section: Section,
    blank: Table,
    group: int,
    found: _Found,
    expected_sizes: Sequence[int] | None,
) -> Table:
    attributes = dict(blank.attributes)
    columns = blank.columns
    if columns[0] == "group":
        columns = columns[1:]
        attributes["group"] = group
    table = replace(
        blank,
        columns=columns,
        rows=tuple(found.rows),
        row_lines=tuple(found.row_lines),
        attributes=attributes,
    )
    if columns[0] == "message_size":
        _check_sizes(section, table)
        check_expected_sizes(
            table.column("message_size"),
            expected_sizes,
            source=section.source,
            line=table.row_lines[-1],
        )
    elif len(table.rows) > 1:
        raise section.error(
            table.row_lines[1] - section.first, "a second row", expected="one row without size"
        )
    return table


def _check_sizes(section: Section, table: Table) -> None:
    sizes = [int(size) for size in table.column("message_size")]
    for before, size, line in zip(sizes, sizes[1:], table.row_lines[1:], strict=False):
        check_next_size(section, line - section.first, before, size, steps=True)
