"""Read one table of the Intel MPI Benchmarks, from "# Benchmarking" to the next one."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from fabricproof.benchmarks.parsers.grammar.chatter import check_chatter
from fabricproof.benchmarks.parsers.grammar.text import (
    RowShape,
    TextSection,
    check_next_size,
    row_shape,
    shorten,
)
from fabricproof.core.measure import Table

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
        (r"#processes = ([0-9]{1,18})(?:; rank order \(rowwise\):)?", ("num_processes",)),
        (
            r"#processes = ([0-9]{1,18}) \(threads: ([0-9]{1,18})\)",
            ("num_processes", "num_threads"),
        ),
        (
            r"\( ([0-9]{1,18}) groups of ([0-9]{1,18}) processes each running simultaneous \)",
            ("num_groups", "num_processes"),
        ),
        (
            r"\( ([0-9]{1,18}) additional process(?:es)? waiting in MPI_Barrier\)",
            ("num_idle_processes",),
        ),
        (r"MODE: (AGGREGATE|NON-AGGREGATE)", ("mode",)),
        (r"window_size = ([0-9]{1,18})", ("window_size",)),
    )
)
#: Words of those lines: one that holds them and is none of them was cut or overwritten.
#: "# #" begins one of them, whatever another program wrote into the rest.
_FACT = re.compile(
    r"^[ \t]*#[ \t]+#|#process|processes = |processes each|waiting in MPI_Barrier|MODE:"
)
#: A size that the tool skips (IMB_output.c IMB_display_times of 2018.0 to 2021.11).
_GIVEN_UP = re.compile(r"[ \t]*([0-9]{1,18})[ \t]+((?:out-of-mem|int-overflow|time-out)\.)(?:;.*)?")
_FAILED = re.compile(
    r"out-of-mem|int-overflow|time-out|NO SUCCESSFUL EXECUTIONS|FAILED|unsuccessful"
)
_COLUMNS = re.compile(r"[ \t]*(?:Group[ \t]+)?#(?:bytes|repetitions)\b")


#: Programs that move one element of one size (src_c/IMB_rma_atomic.c).
_ONE_SIZE = frozenset({"Fetch_and_op", "Compare_and_swap"})


@dataclass(frozen=True, kw_only=True)
class SizeRule:
    """What the header says about the message sizes of every table.

    Attributes:
        doubling: each size is twice the one before, as the tool chooses them.
        largest: the last size, where the header names it.
        from_one: the sizes after 0 begin at 1, or at one element of a reduction's type.
        strict: a size that the tool gave up on is damage.
    """

    doubling: bool
    largest: int | None
    from_one: bool = False
    strict: bool = True


@dataclass(kw_only=True)
class _Found:
    rows: list[tuple[float, ...]] = field(default_factory=list)
    row_lines: list[int] = field(default_factory=list)
    given_up: dict[int, str] = field(default_factory=dict)
    steps: list[tuple[int, int]] = field(default_factory=list)
    """Every size with its line, also those that the tool gave up on, in printed order."""


def read_table(
    section: TextSection,
    bounds: tuple[int, int],
    blank: Table,
    sizes: SizeRule,
) -> tuple[Table, ...]:
    """Return the table between ``bounds``; one per group where groups are listed.

    ``bounds`` are the index of the "# Benchmarking" line, and the one after the last line that may
    belong to its table.

    Raises:
        ParseError: see :func:`fabricproof.benchmarks.parsers.imb.parse`.
    """
    start, end = bounds
    attributes, header = _find_header(section, start + 1, end, blank)
    shape = row_shape(_columns(section, header), _WHOLE)
    blank = replace(
        blank, attributes=attributes, columns=shape.columns, line=section.first + header
    )
    groups = _read_rows(section, header + 1, end, shape, strict=sizes.strict)
    if not groups:
        raise section.error(header, "a table without rows", expected=shape.describe())
    tables = tuple(_group_table(blank, group, found) for group, found in groups.items())
    _check_groups(section, header, tables)
    for found in groups.values():
        _give_up_the_rest(found, sizes)
    tables = tuple(_group_table(blank, group, found) for group, found in groups.items())
    for table, found in zip(tables, groups.values(), strict=True):
        _check_sizes(section, table, sizes, found.steps)
    return tuple(with_unit(table) for table in tables)


def _find_header(
    section: TextSection, start: int, end: int, blank: Table
) -> tuple[dict[str, str | int | float], int]:
    attributes = dict(blank.attributes)
    for index in range(start, end):
        line = section.lines[index]
        if _COLUMNS.match(line):
            return attributes, index
        found = _attributes_of(line)
        attributes.update(found)
        if not found and _FACT.search(line):
            raise section.error(index, "damaged line", expected="'# #processes = N' or its kin")
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


def _columns(section: TextSection, header: int) -> tuple[str, ...]:
    names: list[str] = []
    for word in section.lines[header].split():
        if word not in HEADER_WORDS:
            raise section.error(
                header,
                "unknown column",
                expected=f"one of {', '.join(HEADER_WORDS)}",
                got=repr(shorten(word)),
            )
        if HEADER_WORDS[word] in names:
            raise section.error(header, "a column stands twice", expected="each column once")
        names.append(HEADER_WORDS[word])
    return tuple(names)


def _read_rows(
    section: TextSection, start: int, end: int, shape: RowShape, *, strict: bool
) -> dict[int, _Found]:
    """Collect the rows of each group; without groups all are of group 0."""
    groups: dict[int, _Found] = {}
    grouped = shape.columns[0] == "group"
    for index in range(start, end):
        row = shape.pattern.fullmatch(section.lines[index])
        gone = None if row or strict or grouped else _GIVEN_UP.fullmatch(section.lines[index])
        if gone is not None and groups:
            groups[0].given_up[int(gone[1])] = gone[2]
            groups[0].steps.append((int(gone[1]), index))
            continue
        if row is None:
            _check_other(section, index, shape)
            continue
        numbers = shape.read(row)
        found = groups.setdefault(int(numbers[0]) if grouped else 0, _Found())
        found.rows.append(numbers[1:] if grouped else numbers)
        found.row_lines.append(section.first + index)
        found.steps.append((int(found.rows[-1][0]), index))
    last = len(section.lines) - 1
    if section.ends_text and shape.ends_whole and end == last + 1 and _is_row(section, last, shape):
        raise section.error(last, "cut row", expected="a newline at its end")
    return groups


def _is_row(section: TextSection, index: int, shape: RowShape) -> bool:
    return shape.pattern.fullmatch(section.lines[index]) is not None


def _check_other(section: TextSection, index: int, shape: RowShape) -> None:
    line = section.lines[index]
    if _FAILED.search(line):
        raise section.error(index, "the benchmark gave up", expected=shape.describe())
    if _COLUMNS.match(line):
        raise section.error(index, "a table without title", expected="'# Benchmarking ...' above")
    if not line.lstrip().startswith("#"):
        check_chatter(section, index, shape.describe())


def _group_table(blank: Table, group: int, found: _Found) -> Table:
    attributes = dict(blank.attributes)
    columns = blank.columns
    if columns[0] == "group":
        columns = columns[1:]
        attributes["group"] = group
    return replace(
        blank,
        columns=columns,
        rows=tuple(found.rows),
        row_lines=tuple(found.row_lines),
        attributes=attributes,
        unmeasured=found.given_up,
    )


def _give_up_the_rest(found: _Found, rule: SizeRule) -> None:
    """After a time-out IMB prints no larger size: they are given up with the same words."""
    if not found.given_up or rule.largest is None:
        return
    last, index = found.steps[-1]
    words = found.given_up.get(last)
    while words and 0 < last < rule.largest:
        last *= 2
        found.given_up[last] = words
        found.steps.append((last, index))


def _check_groups(section: TextSection, header: int, tables: Sequence[Table]) -> None:
    """Check that every group printed as many rows as the others, and that none is missing."""
    if "group" not in tables[0].attributes:
        return
    due = tables[0].attributes.get("num_groups", 1)
    counts = {len(table.rows) for table in tables}
    if len(tables) != due or len(counts) != 1:
        raise section.error(header, "a row of a group is missing", expected=f"{due} groups alike")


def _check_sizes(
    section: TextSection,
    table: Table,
    rule: SizeRule,
    steps: Sequence[tuple[int, int]],
) -> None:
    """Check that no size is missing, at the end either where that can be told."""
    lines = table.row_lines
    if table.columns[0] != "message_size":
        if len(lines) > 1:
            raise section.error(
                lines[1] - section.first, "a second row", expected="one row, as there are no sizes"
            )
        return
    for (before, _), (size, index) in pairwise(steps):
        check_next_size(section, index, before, size, steps=rule.doubling)
        least = _largest_element(table)
        if rule.from_one and rule.doubling and before == 0 and size > least:
            raise section.error(index, "a row is missing", expected=f"message size {least} or less")
    last, index = steps[-1]
    if rule.largest not in {None, last} and table.program not in _ONE_SIZE:
        raise section.error(
            index,
            "the table is shorter than its header promises",
            expected=f"message size {rule.largest} in the last row",
        )


def _largest_element(table: Table) -> int:
    """Return the largest size that may follow 0, in bytes: that of one element of the type.

    IMB-MPI1 moves bytes but for its reductions; the windows of IMB-EXT 4 count in integers.
    """
    moves_bytes = table.attributes.get("binary") in {"IMB-MPI1", "IMB-MPI1-GPU"}
    return 1 if moves_bytes and "reduce" not in table.program.lower() else 8


_DECIMAL_SINCE = 2018
_BINARY_UNTIL = 4
#: log2(2^20 / 10^6): how far a binary megabyte moves the ratio between two powers of two.
_SHIFT = math.log2(1.048576)
#: a bandwidth of at least this many MB/s, and a time of at least this many us, carry enough
#: digits to tell 1 from 1.048576.
_CLEAR_MB_S = 10.0
_CLEAR_US = 5.0


def with_unit(table: Table) -> Table:
    """Return ``table`` with its bandwidth column named by the megabyte it is printed in.

    Since 2018.0 it is 10^6 bytes (``MEGA = 1.0/1e6`` in IMB_display_times, src/IMB_output.c of tag
    v2018.0); IMB 3 and 4 took 2^20 (``MEGA = 1.0/1048576.0`` in the same function).  For releases
    between, and for a table pasted without its header, the numbers themselves tell: a bandwidth is
    the size over the time printed beside it, times a power of two (1 PingPong, 2 Sendrecv, 4
    Exchange), or the size times the message rate.
    """
    if "bandwidth_mb_s" not in table.columns or not _is_binary(table):
        return table
    columns = tuple(
        "bandwidth_mib_s" if name == "bandwidth_mb_s" else name for name in table.columns
    )
    return replace(table, columns=columns)


def _is_binary(table: Table) -> bool:
    release = _release(table.version)
    if release is not None and release >= _DECIMAL_SINCE:
        return False
    if release is not None and release <= _BINARY_UNTIL:
        return True
    votes = [_row_is_binary(table, row) for row in table.rows]
    clear = [vote for vote in votes if vote is not None]
    return bool(clear) and sum(clear) * 2 > len(clear)


def _release(version: str | None) -> int | None:
    match = re.match(r"[0-9]{1,4}", version or "")
    return int(match[0]) if match else None


def _row_is_binary(table: Table, row: tuple[float, ...]) -> bool | None:
    """Tell by one row; None where its numbers have too few digits, or no time."""
    values = dict(zip(table.columns, row, strict=True))
    bandwidth = values["bandwidth_mb_s"]
    time = values.get("latency_us", values.get("latency_max_us"))
    rate = values.get("message_rate_per_s")
    if bandwidth < _CLEAR_MB_S:
        return None
    if rate:
        ratio = values["message_size"] * rate / 1e6 / bandwidth
    elif time and time >= _CLEAR_US:
        ratio = values["message_size"] / time / bandwidth
    else:
        return None
    shift = math.log2(ratio) % 1 if ratio > 0 else 0.0
    return abs(shift - _SHIFT) < min(shift, 1 - shift)
