"""Read the output of the OSU Micro-Benchmarks (C, versions 2 to 7) and of their mpi4py ports.

The title names the program, the column header must hold known names, every row must be whole, and
sizes must double: a gap is a lost row.  OSU prints no end marker.  A table that was cut between two
rows is only noticed by the caller, who knows the sizes that the run asked for, or by the news of
the job's death.

Read from the sources of releases 5.7, 5.9, 6.2, 7.0, 7.2 and 7.4 (paths are those of 7.2, below
``c/``; up to 6.x the same files stand at the top) and from ``demo/osu_*.py`` of mpi4py 4.1.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from fabricproof.benchmarks.catalogue import OSU
from fabricproof.benchmarks.parsers.sections import (
    COUNT,
    Attributes,
    RowShape,
    TextSection,
    check_chatter,
    check_sizes,
    count,
    facts_of,
    is_exit_status,
    row_shape,
    shorten,
)
from fabricproof.core.measure import Table

#: title -> program; the ports' titles differ in two programs
_TITLES = {title: row.name for row in OSU for title in row.titles}
_PORT_TITLES = _TITLES | {title: row.name for row in OSU for title in row.port_titles}

_TITLE = re.compile(
    r"[ \t#]*(?P<osu>OSU )?(?P<mpi>MPI[_\w]*|[NR]CCL)"
    r"(?:-(?P<accelerator>CUDA MANAGED|CUDA|OPENACC|ROCM|MANAGED|SYCL))?"
    r" (?P<rest>[-\w/ ]*?Test)(?: Test)?(?: v(?P<version>\d+\.[\d.]*\d(?:-\d+)?)"
    r"| \(Version (?P<old>\d+\.\d+)\))?[ \t]*"
)

#: Column names as printed -> as named here.  util/osu_util.c print_header; util/osu_util_mpi.c
#: print_only_header, print_only_header_nbc, print_header_one_sided; mpi/pt2pt/standard/osu_mbw_mr.c
_COLUMNS = {
    "Size [B]": "message_size", "Size": "message_size", "Transmit Size": "transmit_size",
    "Bandwidth (MB/s)": "bandwidth_mb_s", "MB/s": "bandwidth_mb_s",
    "Bi-Bandwidth (MB/s)": "bandwidth_mb_s",  # osu_bibw 3.0 to 3.3
    "Messages/s": "message_rate_per_s", "Iterations": "iterations", "Validation": "validation",
    "Latency (us)": "latency_us", "Latency [us]": "latency_us", "Avg Latency(us)": "latency_avg_us",
    "Min Latency(us)": "latency_min_us", "Max Latency(us)": "latency_max_us",
    "Overall(us)": "overall_us", "Compute(us)": "compute_us", "Coll. Init(us)": "init_us",
    "MPI_Test(us)": "test_us", "MPI_Wait(us)": "wait_us", "Overlap(%)": "overlap_percent",
    "Pure Comm.(us)": "pure_communication_us", "Min Comm.(us)": "pure_communication_min_us",
    "Max Comm.(us)": "pure_communication_max_us",
}  # fmt: skip
#: ``-z`` prints the percentiles that it was given (``P%d Tail Lat(us)``, util/osu_util.c of 7.4)
_PERCENTILE = re.compile(r"P([0-9]{1,3}(?:\.[0-9]{1,3})?) Tail (Lat\(us\)|BW\(MB/s\))")
_COLUMN = re.compile(
    "[ \t]*("
    + "|".join([_PERCENTILE.pattern, *map(re.escape, sorted(_COLUMNS, key=len, reverse=True))])
    + ")(?=[ \t]|$)"
)
_HEADER = re.compile(r"[ \t]*(?:#[ \t]*)?(?=Size(?:[ \t]|$)|Avg Latency\(us\)|Overall\(us\))")

#: what lines about the run say: each group is an attribute
_FACTS = tuple(
    re.compile(r"[ \t]*(?:#[ \t]*)?" + pattern + r"[ \t]*")
    for pattern in (
        # mpi/pt2pt/standard/osu_mbw_mr.c
        rf"\[ pairs: {count('num_pairs')} \] \[ window size: {count('window_size')} \]",
        # util/osu_util_mpi.c print_header_one_sided
        r"Window creation: (?P<window_creation>\S.*)",
        r"Synchronization: (?P<synchronization>\S.*)",
        r"Rank 0 Memory on (?P<send_buffer>.*) and Rank 1 Memory on (?P<receive_buffer>.*)",
        # every program since 7.2
        r"Datatype: (?P<datatype>\w+)\.",
        # mpi/pt2pt/standard/osu_latency_mt.c and osu_latency_mp.c, above the title
        rf"Number of Sender threads: {count('num_sender_threads')}",
        rf"Number of Receiver threads: {count('num_receiver_threads')}",
        rf"Number of forked processes in sender: {count('num_sender_processes')}",
        rf"Number of forked processes in receiver: {count('num_receiver_processes')}",
        # util/osu_util.c print_header
        r"Send Buffer on (?P<send_buffer>.*) and Receive Buffer on (?P<receive_buffer>.*)",
    )
)
#: a line that begins as one of them, and is none, was cut or overwritten
_FACT_START = re.compile(
    r"[ \t]*#[ \t]*(?:\[ pairs|Window creation|Synchronization|Datatype|Number of (?:Send|Rec|for))"
)

#: mpi/startup/osu_hello.c and osu_init.c print one sentence instead of a table.
_TIME = "[0-9]{1,18} ms"
_SENTENCES = {
    "osu_hello": row_shape(("num_processes",), sentence=rf"This is a test with {COUNT} processes"),
    "osu_init": row_shape(
        ("num_processes", "startup_min_ms", "startup_max_ms", "startup_avg_ms"),
        sentence=rf"nprocs: {COUNT}, min: {_TIME}, max: {_TIME}, avg: {_TIME}",
    ),
}

#: ``-G tty`` draws a plot for each size below the last table (omb_graph_plot, util/osu_util_graph.c
#: of 7.4), each under this title; no row follows.
_PLOT = re.compile(r"[ \t\f]*Size: [0-9]{1,18}, Avg: ?[0-9]{1,18}\.[0-9]{2}[ \t]*")


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the tables of one run of one OSU program.

    Raises:
        ParseError: the title or a column is unknown, a row is damaged or missing, there is no
            row, or the text says that the job died.
    """
    lines = section.lines
    blank, title, said = _begin(section)
    sentence = _SENTENCES.get(blank.program)
    heads = [title]
    if not sentence:  # most lines are rows, and begin with a digit
        heads = [
            at
            for at in range(title + 1, len(lines))
            if not lines[at][:1].isdigit() and _HEADER.match(lines[at])
        ]
    for index in range(title + 1, heads[0] if heads else len(lines)):
        said |= _facts_at(section, index, blank, "a column header")
    common = {name: value for name, value in said.items() if name != "datatype"}
    tables: list[Table] = []
    for head, end in pairwise([*heads, len(lines)]):
        if tables and "datatype" not in said:
            raise section.error(head, "a second column header", expected="a new title")
        if blank.program == "osu_mbw_mr" and "num_pairs" not in said:
            expected = "'[ pairs: N ] [ window size: W ]' above"
            raise section.error(head, "a line is missing", expected=expected)
        shape = sentence or row_shape(_columns(section, head, blank, tables))
        table, after = _table(section, range(head, end), blank, shape, said)
        tables.append(table)
        said = {**common, **after}
    if not tables or "datatype" in said:
        problem = f"no column header of {blank.program}"
        raise section.error(title, problem, expected="'# Size ...' below")
    return tuple(tables)


@lru_cache(maxsize=64)  # many runs print the same few lines above their tables
def _title_of(line: str) -> Table | None:
    """Return the program's table without columns and rows; None if the line is no title."""
    match = _TITLE.fullmatch(line)
    if match is None:
        return None
    # osu_xccl_* of 7.x print the titles of the MPI programs with the library's name in front.
    over_xccl = not match["mpi"].startswith("MPI")
    title = f"{'MPI' if over_xccl else match['mpi']} {match['rest']}".lower()
    program = (_TITLES if match["osu"] else _PORT_TITLES).get(title)
    if program is None or (over_xccl and not match["osu"]):
        return None
    return Table(
        suite="osu" if match["osu"] else "osu-mpi4py",
        program=program.replace("osu_", "osu_xccl_") if over_xccl else program,
        version=match["version"] or match["old"],
        attributes={"accelerator": match["accelerator"]} if match["accelerator"] else {},
    )


@lru_cache(maxsize=64)
def _facts_of(line: str) -> Attributes:
    return facts_of(_FACTS, line)


def _begin(section: TextSection) -> tuple[Table, int, Attributes]:
    """Return the program, the index of its title, and what is said above it and in it."""
    said: Attributes = {}
    for index, line in enumerate(section.lines):
        if blank := _title_of(line):
            return blank, index, {**said, **blank.attributes}
        if "OSU" in line or _HEADER.match(line):
            break
        said |= _facts_at(section, index, None, "the title of a benchmark")
    else:
        index = 0
    raise section.error(index, "no title of a known OSU program", expected="'# OSU MPI ... Test'")


def _facts_at(
    section: TextSection, index: int, blank: Table | None, expected: str, *, rows: bool = True
) -> Attributes:
    """Return what a line says of the run that is no row and no column header.

    Raises:
        ParseError: it is a damaged line, the title of another program, or no chatter.
    """
    line = section.lines[index]
    if facts := _facts_of(line):
        return dict(facts)
    if blank and _FACT_START.match(line):
        raise section.error(index, "damaged line", expected="a whole line about the run")
    title = _title_of(line) if blank else None
    if title and blank and title.program != blank.program:
        what = f"no table of {blank.program}"
        raise section.error(index, what, expected="a column header")
    if not title:
        check_chatter(section, index, expected, rows=rows)
    return {}


def _table(
    section: TextSection, lines: range, blank: Table, shape: RowShape, said: Attributes
) -> tuple[Table, Attributes]:
    """Return the table below a header, and what is said below its rows of the next table."""
    count = shape.leading(section.lines[lines.start + 1 : lines.stop])
    found = list(lines[1 : 1 + count])
    after: Attributes = {}
    plotting = False
    for index in lines[1 + count :]:
        line = section.lines[index]
        if shape.is_row(line):
            if plotting or after:
                raise section.error(index, "a row below its table", expected="no row")
            found.append(index)
        elif _PLOT.fullmatch(line):
            plotting = True
        # OSU exits with a status other than 0 at the first size whose bytes were wrong.
        elif (
            line
            and not line.isspace()
            and not (found and is_exit_status(line) and "Fail" in section.lines[found[-1]])
        ):
            facts = _facts_at(section, index, blank, shape.describe(), rows=not plotting)
            (after if found else said).update(facts)
    if not found:
        raise section.error(lines[0], "a table without rows", expected=shape.describe())
    rows = shape.read(section, found)
    if "validation" in shape.names:
        failed = any("Fail" in section.lines[index] for index in found)
        said["validation"] = "Fail" if failed else "Pass"
    sizes = [row[0] for row in rows] if shape.columns[0] == "message_size" else None
    # A data type of several bytes leaves out the sizes that hold no whole element.
    of_bytes = said.get("datatype", "MPI_CHAR") == "MPI_CHAR"
    check_sizes(section, found, sizes, first=1 if of_bytes else None)
    table = replace(
        blank,
        columns=shape.columns,
        rows=rows,
        source=section.source,
        line=section.first + (found[0] if shape.sentence else lines[0]),
        row_lines=tuple(section.first + index for index in found),
        attributes=said,
    )
    return table, after


def _columns(
    section: TextSection, index: int, blank: Table, before: Sequence[Table]
) -> tuple[str, ...]:
    """Return the columns below a header.

    The header of the bandwidth ports says "Latency [us]", copied from the latency port, while
    the numbers below it are MB/s (mpi4py 4.1.2, demo/osu_bw.py and osu_bibw.py): there the
    title decides.  Of several data types in one run, OSU 7.2 prints "Avg Latency(us)" above
    every table but the first, whatever the program measures (osu_bw.c calls print_only_header
    of the collectives): there the first header holds.
    """
    names = _printed_columns(section, index, section.lines[index])
    if before:
        return before[0].columns + (("validation",) if "validation" in names else ())
    is_bandwidth = "bw" in blank.program
    if is_bandwidth and blank.suite == "osu-mpi4py":
        return tuple("bandwidth_mb_s" if name == "latency_us" else name for name in names)
    if is_bandwidth != ("bandwidth_mb_s" in names):
        problem = f"not the columns of {blank.program}"
        raise section.error(index, problem, expected="MB/s" if is_bandwidth else "us")
    return names


def _printed_columns(section: TextSection, index: int, line: str) -> tuple[str, ...]:
    names: list[str] = []
    at = header.end() if (header := _HEADER.match(line)) else 0
    while rest := line[at:].strip():
        word = _COLUMN.match(line, at)
        if word and word[2]:
            kind, unit = ("latency", "us") if "Lat" in word[3] else ("bandwidth", "mb_s")
            name = f"{kind}_p{word[2].replace('.', '')}_{unit}"
        else:
            name = _COLUMNS[word[1]] if word else ""
        if word is None or name in names:
            expected = f"one of {', '.join(_COLUMNS)}, P<n> Tail ..., none twice"
            raise section.error(index, "unknown column", expected=expected, got=repr(shorten(rest)))
        names.append(name)
        at = word.end()
    return tuple(names)
