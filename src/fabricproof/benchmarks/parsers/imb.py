"""Read the output of the Intel MPI Benchmarks: MPI1, P2P, RMA, NBC, EXT and MT.

One run prints a header, a list of the benchmarks to come, their tables and an end marker.  With
the header there, every listed benchmark must have come and the end marker must stand.  A bare
table, as people paste it, is read from its "# Benchmarking" line on.

Source of the grammar: src_c/IMB_output.c (IMB_print_header, IMB_display_times), src_c/IMB_g_info.c
and src_c/P2P/imb_p2p.c of releases 2018.0, 2019.6 and 2021.11; "Intel (R)" with a blank stands in
the headers of releases up to 2018.0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.parsers.sections import (
    RowShape,
    TextSection,
    check_chatter,
    check_sizes,
    count,
    facts_of,
    row_shape,
    shorten,
)
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table
from fabricproof.core.units import by_key

_HEADER = re.compile(
    r"[ \t#]*Intel ?\(R\) MPI Benchmarks "
    r"(?P<version>[0-9]{1,4}(?:\.[0-9]{1,3}){0,2}(?: (?:Update|update|beta|Beta) ?[0-9]*)?), "
    r"(?P<part>[\w-]+) part\b(?P<gpu> \(GPU\))?.*"
)
_TITLE = re.compile(r"[ \t#]*Benchmarking (?P<multi>Multi-)?(?P<name>\w+)(?: \([0-9x ]+\))?[ \t]*")
_TITLE_START = re.compile(r"[ \t#]*Benchmarking ")
_LIST = re.compile(r"[ \t]*# List of Benchmarks to run:")
_LISTED = re.compile(r"[ \t]*# (\w+)[ \t]*")
_INVALID = re.compile(r"[ \t]*# !! Benchmark (\w+) is invalid for \d+ processes")
_END = re.compile(r"[ \t]*# All processes entering MPI_Finalize")
_LARGEST = re.compile(r"[ \t]*# Maximum message length in bytes: +([0-9]{1,18})[ \t]*")
#: src_c/IMB_output.c IMB_show_selections; -msglen and -msgsz of IMB-P2P show in its command only
_CHOSEN = re.compile(r"[ \t]*# (?:Message lengths were user defined|.*-msg(?:len|sz)\b)")
#: the command, in the header; without these options the sizes are 0, 1, 2, 4 and so on
_COMMAND = re.compile(r"[ \t]*# \S*IMB-\w+(?!.*-(?:msglog|data_type)\b)(?:[ \t]|$)")
#: where IMB-MPI1-GPU was told to put the buffers of both ranks, in its command
_BUFFERS = re.compile(r"[ \t]*# \S*IMB-\w+-GPU\b.* -mem_alloc_type (\w+)")
#: types that are no memory of a GPU (``-help mem_alloc_type``: device, host, shared, cpu; the first
#: is its default)
_PLACES = {"host": "HOST", "cpu": "HOST"}

#: what the header calls the part -> the binary that prints it (src_c/IMB_g_info.c)
_BINARIES = {
    "MPI-1": "IMB-MPI1", "MPI-2": "IMB-EXT", "MPI-NBC": "IMB-NBC", "MPI-RMA": "IMB-RMA",
    "RMA": "IMB-RMA", "IMB-P2P": "IMB-P2P", "MT": "IMB-MT", "MPI-4": "IMB-MPI4",
}  # fmt: skip

#: Column names as printed -> as named here.  src_c/IMB_output.c IMB_print_header (2021.11);
#: ``Msg/sec``: also src_c/P2P/imb_p2p_*.c; ``defects``: builds with -DCHECK.
_COLUMNS = {
    "Group": "group", "#bytes": "message_size", "#repetitions": "repetitions",
    "t[usec]": "latency_us", "t_min[usec]": "latency_min_us", "t_max[usec]": "latency_max_us",
    "t_avg[usec]": "latency_avg_us", "t_ovrl[usec]": "overall_us", "t_CPU[usec]": "compute_us",
    "t_pure[usec]": "pure_communication_us", "overlap[%]": "overlap_percent",
    "Mbytes/sec": "bandwidth_mb_s", "Msg/sec": "message_rate_per_s", "defects": "defects",
}  # fmt: skip
_WHOLE = frozenset({"group", "message_size", "repetitions", "message_rate_per_s"})
_COLUMN_HEADER = re.compile(r"[ \t]*(?:Group[ \t]+)?#(?:bytes|repetitions)\b")

#: what lines between title and column header say: each group is an attribute
_FACTS = tuple(
    re.compile(r"[ \t]*#[ \t]*" + pattern + r"[ \t]*")
    for pattern in (
        rf"#processes = {count('num_processes')}(?:; rank order \(rowwise\):)?",
        rf"#processes = {count('num_processes')} \(threads: {count('num_threads')}\)",
        (
            rf"\( {count('num_groups')} groups of {count('num_processes')} processes each "
            r"running simultaneous \)"
        ),
        rf"\( {count('num_idle_processes')} additional process(?:es)? waiting in MPI_Barrier\)",
        r"MODE: (?P<mode>AGGREGATE|NON-AGGREGATE)",
        rf"window_size = {count('window_size')}",
    )
)
#: Words of those lines: one that holds them and is none of them was cut or overwritten.
#: "# #" begins one of them, whatever another program wrote into the rest.
_FACT_WORDS = re.compile(
    r"^[ \t]*#[ \t]+#|#process|processes = |processes each|waiting in MPI_Barrier|MODE:"
)
#: a size that the tool skips (IMB_output.c IMB_display_times of 2018.0 to 2021.11)
_GIVEN_UP = re.compile(r"[ \t]*([0-9]{1,18})[ \t]+((?:out-of-mem|int-overflow|time-out)\.)(?:;.*)?")
_FAILED = re.compile(
    r"out-of-mem|int-overflow|time-out|NO SUCCESSFUL EXECUTIONS|FAILED|unsuccessful"
)
#: programs that move one element of one size (src_c/IMB_rma_atomic.c)
_ONE_SIZE = frozenset({"Fetch_and_op", "Compare_and_swap"})


class _Run(NamedTuple):
    """What the lines around the tables say."""

    blank: Table  # what holds for all tables, and no numbers
    doubling: bool  # the tool chose the sizes
    largest: int | None  # the last size of every table; None if unknown
    starts_at_one: bool  # 1 follows 0, or one element of a reduction's type


def read_each(section: TextSection, *, strict: bool) -> Iterator[tuple[Table, ...] | ParseError]:
    """Yield the tables below each title of one run, or what is wrong with them.

    A run goes from IMB's header, or from a bare "# Benchmarking", to the next tool.  What is wrong
    with it as a whole comes first: a listed benchmark without a table, no end marker, the news
    that the job died.  A table is refused for a row that is damaged or missing.

    Args:
        section: the lines of the run.
        strict: a size that the tool itself gave up on (out-of-mem, time-out) is damage; otherwise
            it stands in the table's ``unmeasured``.
    """
    heads = [(index, line) for index, line in enumerate(section.lines) if "#" in line]
    starts = [index for index, line in heads if _TITLE_START.match(line)]
    run = _survey(section, heads)
    try:
        _check_whole(section, heads, starts, run)
    except ParseError as error:
        yield error
    for start, end in pairwise([*starts, len(section.lines)]):
        try:
            yield _read(section, start, end, run, strict=strict)
        except ParseError as error:
            yield error


def _survey(section: TextSection, heads: Sequence[tuple[int, str]]) -> _Run:
    def first(pattern: re.Pattern[str]) -> re.Match[str] | None:
        return next(filter(None, (pattern.match(line) for _, line in heads)), None)

    header, largest, buffers = first(_HEADER), first(_LARGEST), first(_BUFFERS)
    said: dict[str, str | int | float] = {}
    if header:
        said["binary"] = _BINARIES.get(header["part"], header["part"])
    if header and header["gpu"]:
        place = _PLACES.get(buffers[1] if buffers else "", "DEVICE")
        said = {"binary": f"{said['binary']}-GPU", "send_buffer": place, "receive_buffer": place}
    version = header["version"].strip() if header else None
    blank = Table(suite="imb", program="", version=version, source=section.source, attributes=said)
    # IMB-MT takes its sizes from -count and does not say which they are.
    doubling = first(_CHOSEN) is None and said.get("binary") != "IMB-MT"
    most = int(largest[1]) if largest and doubling else None
    return _Run(blank, doubling, most, first(_COMMAND) is not None)


def _check_whole(
    section: TextSection, heads: Sequence[tuple[int, str]], starts: Sequence[int], run: _Run
) -> None:
    """Check that nothing that the header promised is missing."""
    begin = starts[0] if starts else len(section.lines)
    for index, line in enumerate(section.lines[:begin]):
        if "#repetitions" in line:
            raise section.error(index, "a table without title", expected="'# Benchmarking ...'")
        if not line.lstrip().startswith("#"):
            check_chatter(section, index, "the first table")
    if not starts:
        raise section.error(0, "a run without table", expected="'# Benchmarking ...'")
    list_begin = next((index for index, line in heads if _LIST.match(line)), begin)
    listed = {
        match[1].lower(): index
        for index, line in heads
        if list_begin < index < begin and (match := _LISTED.fullmatch(line))
    }
    if (listed or "MPI Benchmark" in section.lines[0]) and not run.blank.attributes:
        raise section.error(0, "a line is missing", expected="'Intel(R) MPI Benchmarks ...' above")
    if not listed:
        return
    names = {_title(section, start)["name"].lower() for start in starts}
    if unlisted := names - listed.keys():
        problem = f"a table that the header does not list: {', '.join(sorted(unlisted))}"
        raise section.error(begin, problem, expected=", ".join(listed))
    invalid = {match[1].lower() for _, line in heads if (match := _INVALID.match(line))}
    missing = (at for name, at in listed.items() if name not in names | invalid)
    if (at := next(missing, None)) is not None:
        what = "one table per listed benchmark"
        raise section.error(at, "the table of a benchmark is missing", expected=what)
    end = max((index for index, line in heads if _END.match(line)), default=-1)
    if end < starts[-1]:
        expected = "'# All processes entering MPI_Finalize' at its end"
        raise section.error(len(section.lines) - 1, "the output is cut", expected=expected)


def _title(section: TextSection, start: int) -> re.Match[str]:
    title = _TITLE.fullmatch(section.lines[start])
    if title is None:
        raise section.error(start, "damaged title", expected="'# Benchmarking NAME'")
    return title


def _read(
    section: TextSection, start: int, end: int, run: _Run, *, strict: bool
) -> tuple[Table, ...]:
    """Return the table below the title at ``start``; one for each group where groups are listed."""
    title = _title(section, start)
    said = {**run.blank.attributes, **({"multi": 1} if title["multi"] else {})}
    shape, header = None, start
    found: list[int] = []
    given_up: dict[int, tuple[int, str]] = {}
    for index, line in enumerate(section.lines[start + 1 : end], start + 1):
        if shape and shape.is_row(line):
            found.append(index)
        elif _COLUMN_HEADER.match(line):
            if shape:
                raise section.error(index, "a table without title", expected="'# Benchmarking ...'")
            shape, header = _shape(section, index), index
        elif shape is None and (facts := facts_of(_FACTS, line)):
            said |= facts
        elif shape is None and _FACT_WORDS.search(line):
            raise section.error(index, "damaged line", expected="'# #processes = N' or its kin")
        elif shape and found and not strict and (gone := _GIVEN_UP.fullmatch(line)):
            given_up[int(gone[1])] = index, gone[2]
        elif shape and _FAILED.search(line):
            raise section.error(index, "the benchmark gave up", expected=shape.describe())
        elif not line.lstrip().startswith("#"):
            check_chatter(section, index, shape.describe() if shape else "the column header")
    if shape is None or not found:
        problem = f"a table without {'rows' if shape else 'column header'}"
        raise section.error(header, problem, expected="'#bytes #repetitions ...', and rows")
    if "binary" in said and "num_processes" not in said:
        raise section.error(start, "a line is missing", expected="'# #processes = N' below")
    is_pair = meaning("imb", title["name"]).kind is not ProgramKind.COLLECTIVE
    if is_pair and said.get("num_processes") == 1:
        raise section.error(start, "one process is no pair", expected="#processes = 2 or more")
    blank = replace(run.blank, program=title["name"], line=section.first + header, attributes=said)
    return tuple(
        _with_unit(_check_sizes(section, table, run, given_up))
        for table in _tables(section, blank, shape, found)
    )


def _shape(section: TextSection, header: int) -> RowShape:
    words = section.lines[header].split()
    for at, word in enumerate(words):
        if word not in _COLUMNS or word in words[:at]:
            expected = f"one of {', '.join(_COLUMNS)}, none twice"
            got = repr(shorten(word))
            raise section.error(header, "unknown column", expected=expected, got=got)
    return row_shape(tuple(_COLUMNS[word] for word in words), _WHOLE)


def _tables(
    section: TextSection, blank: Table, shape: RowShape, found: Sequence[int]
) -> Iterator[Table]:
    """Yield the table of each group, or the one table."""
    rows = shape.read(section, found)
    lines = [section.first + index for index in found]
    if shape.columns[0] != "group":
        yield replace(blank, columns=shape.columns, rows=rows, row_lines=tuple(lines))
        return
    groups = by_key((int(row[0]), at) for at, row in enumerate(rows))
    due = blank.attributes.get("num_groups", 1)
    if len(groups) != due or len({len(places) for places in groups.values()}) != 1:
        header = blank.line - section.first
        raise section.error(header, "a row of a group is missing", expected=f"{due} groups alike")
    for group, places in groups.items():
        yield replace(
            blank,
            columns=shape.columns[1:],
            rows=tuple(rows[at][1:] for at in places),
            row_lines=tuple(lines[at] for at in places),
            attributes={**blank.attributes, "group": group},
        )


def _check_sizes(
    section: TextSection, table: Table, run: _Run, given_up: Mapping[int, tuple[int, str]]
) -> Table:
    """Return the table with its unmeasured sizes; refuse it if any other size is missing."""
    lines = [line - section.first for line in table.row_lines]
    if table.columns[0] != "message_size":
        check_sizes(section, lines, None, first=None)
        return table
    sizes = (int(row[0]) for row in table.rows)
    steps = sorted([*zip(lines, sizes, strict=True), *((at, n) for n, (at, _) in given_up.items())])
    unmeasured = {size: words for size, (_, words) in given_up.items()}
    index, last = steps[-1]
    words = unmeasured.get(last)
    # After a time-out IMB prints no larger size: they are given up with the same words.
    while words and run.largest and 0 < last < run.largest:
        last *= 2
        unmeasured[last] = words
    # IMB-MPI1 moves bytes but for its reductions; the windows of IMB-EXT 4 count in integers.
    moves_bytes = str(table.attributes.get("binary")) in {"IMB-MPI1", "IMB-MPI1-GPU"}
    element = 1 if moves_bytes and "reduce" not in table.program.lower() else 8
    first = element if run.starts_at_one else None
    indexes, numbers = zip(*steps, strict=True)
    check_sizes(section, indexes, numbers, first=first, doubling=run.doubling)
    if run.largest not in {None, last} and table.program not in _ONE_SIZE:
        problem = "the table is shorter than its header promises"
        raise section.error(index, problem, expected=f"message size {run.largest} in the last row")
    return replace(table, unmeasured=unmeasured)


#: Since 2018.0 "Mbytes" are 10^6 bytes (``MEGA = 1.0/1e6`` in IMB_display_times, src/IMB_output.c
#: of tag v2018.0); before they were 2^20 (``MEGA = 1.0/1048576.0`` in the same function).
_DECIMAL_SINCE = 2018
#: log2(2^20 / 10^6): how far a binary megabyte moves the ratio between two powers of two
_SHIFT = math.log2(1.048576)
#: a bandwidth and a time of at least this carry enough digits to tell 1 from 1.048576
_CLEAR_MB_S, _CLEAR_US = 10.0, 5.0


def _with_unit(table: Table) -> Table:
    """Return ``table`` with its bandwidth column named by the megabyte it is printed in.

    If the release does not tell, the numbers do: a bandwidth is the size over the time printed
    beside it, times a power of two (1 PingPong, 2 Sendrecv, 4 Exchange), or the size times the
    message rate.
    """
    release = re.match(r"[0-9]{1,4}", table.version or "")
    if "bandwidth_mb_s" not in table.columns or (release and int(release[0]) >= _DECIMAL_SINCE):
        return table
    votes = []
    for row in table.named_rows:
        bandwidth, rate = row["bandwidth_mb_s"], row.get("message_rate_per_s")
        time_us = row.get("latency_us", row.get("latency_max_us", 0.0))
        if bandwidth >= _CLEAR_MB_S and (rate or time_us >= _CLEAR_US):
            ratio = row["message_size"] * (rate / 1e6 if rate else 1 / time_us) / bandwidth
            shift = math.log2(ratio) % 1 if ratio > 0 else 0.0
            votes.append(abs(shift - _SHIFT) < min(shift, 1 - shift))
    if sum(votes) * 2 <= len(votes):
        return table
    names = {"bandwidth_mb_s": "bandwidth_mib_s"}
    return replace(table, columns=tuple(names.get(name, name) for name in table.columns))
