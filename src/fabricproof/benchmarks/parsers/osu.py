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
from dataclasses import dataclass, field
from functools import lru_cache

from fabricproof.benchmarks.catalogue import OSU
from fabricproof.benchmarks.parsers.grammar.chatter import check_chatter, is_exit_status
from fabricproof.benchmarks.parsers.grammar.text import (
    COUNT,
    RowShape,
    TextSection,
    check_sizes,
    row_shape,
    shorten,
)
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table

Attributes = dict[str, str | int | float]

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
    "Size [B]": "message_size",
    "Size": "message_size",
    "Bandwidth (MB/s)": "bandwidth_mb_s",
    "Bi-Bandwidth (MB/s)": "bandwidth_mb_s",  # osu_bibw 3.0 to 3.3
    "Latency (us)": "latency_us",
    "Latency [us]": "latency_us",
    "MB/s": "bandwidth_mb_s",
    "Messages/s": "message_rate_per_s",
    "Avg Latency(us)": "latency_avg_us",
    "Min Latency(us)": "latency_min_us",
    "Max Latency(us)": "latency_max_us",
    "Iterations": "iterations",
    "Overall(us)": "overall_us",
    "Compute(us)": "compute_us",
    "Coll. Init(us)": "init_us",
    "MPI_Test(us)": "test_us",
    "MPI_Wait(us)": "wait_us",
    "Pure Comm.(us)": "pure_communication_us",
    "Min Comm.(us)": "pure_communication_min_us",
    "Max Comm.(us)": "pure_communication_max_us",
    "Overlap(%)": "overlap_percent",
    "Validation": "validation",
    "Transmit Size": "transmit_size",
}
#: ``-z`` prints the percentiles that it was given (``P%d Tail Lat(us)``, util/osu_util.c of 7.4)
_PERCENTILE = re.compile(r"P([0-9]{1,3}(?:\.[0-9]{1,3})?) Tail (Lat\(us\)|BW\(MB/s\))")
_COLUMN = re.compile(
    "[ \t]*("
    + "|".join([_PERCENTILE.pattern, *map(re.escape, sorted(_COLUMNS, key=len, reverse=True))])
    + ")(?=[ \t]|$)"
)
_HEADER = re.compile(r"[ \t]*(?:#[ \t]*)?(?=Size(?:[ \t]|$)|Avg Latency\(us\)|Overall\(us\))")

#: Lines about the run -> names of the attributes, one for each group.
_FACTS = tuple(
    (re.compile(r"[ \t]*(?:#[ \t]*)?" + pattern + r"[ \t]*"), names)
    for pattern, names in (
        # mpi/pt2pt/standard/osu_mbw_mr.c
        (rf"\[ pairs: {COUNT} \] \[ window size: {COUNT} \]", ("num_pairs", "window_size")),
        # util/osu_util_mpi.c print_header_one_sided
        (r"Window creation: (\S.*)", ("window_creation",)),
        (r"Synchronization: (\S.*)", ("synchronization",)),
        (r"Rank 0 Memory on (.*) and Rank 1 Memory on (.*)", ("send_buffer", "receive_buffer")),
        # every program since 7.2
        (r"Datatype: (\w+)\.", ("datatype",)),
        # mpi/pt2pt/standard/osu_latency_mt.c and osu_latency_mp.c, above the title
        (rf"Number of Sender threads: {COUNT}", ("num_sender_threads",)),
        (rf"Number of Receiver threads: {COUNT}", ("num_receiver_threads",)),
        (rf"Number of forked processes in sender: {COUNT}", ("num_sender_processes",)),
        (rf"Number of forked processes in receiver: {COUNT}", ("num_receiver_processes",)),
        # util/osu_util.c print_header
        (r"Send Buffer on (.*) and Receive Buffer on (.*)", ("send_buffer", "receive_buffer")),
    )
)
#: a line that begins as one of them, and is none, was cut or overwritten
_FACT_START = re.compile(
    r"[ \t]*#[ \t]*(?:\[ pairs|Window creation|Synchronization|Datatype|Number of (?:Send|Rec|for))"
)

#: mpi/startup/osu_hello.c and osu_init.c print one sentence instead of a table.
_TIME = r"([0-9]{1,18}) ms"
_SENTENCES = {
    "osu_hello": RowShape(("num_processes",), sentence=rf"This is a test with {COUNT} processes"),
    "osu_init": RowShape(
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
    run = _Run(section)
    for index, line in enumerate(section.lines):
        if run.shape is not None and run.shape.is_row(line):
            if run.plotting:
                raise section.error(index, "a row below a plot", expected="no row")
            run.found.append(index)
        elif line and not line.isspace():
            run.take(index, line)
    return run.finish()


@dataclass(kw_only=True)
class _Title:
    suite: str
    program: str
    version: str | None
    accelerator: str | None


@lru_cache(maxsize=64)  # many runs print the same few lines above their tables
def _title_of(line: str) -> _Title | None:
    match = _TITLE.fullmatch(line)
    if match is None:
        return None
    # osu_xccl_* of 7.x print the titles of the MPI programs with the library's name in front.
    over_xccl = not match["mpi"].startswith("MPI")
    if over_xccl and not match["osu"]:
        return None
    title = f"{'MPI' if over_xccl else match['mpi']} {match['rest']}".lower()
    program = (_TITLES if match["osu"] else _PORT_TITLES).get(title)
    if program is None:
        return None
    return _Title(
        suite="osu" if match["osu"] else "osu-mpi4py",
        program=program.replace("osu_", "osu_xccl_") if over_xccl else program,
        version=match["version"] or match["old"],
        accelerator=match["accelerator"],
    )


@lru_cache(maxsize=64)
def _facts_of(line: str) -> Attributes:
    for pattern, names in _FACTS:
        if match := pattern.fullmatch(line):
            return {
                name: int(value) if name.startswith(("num_", "window_size")) else value
                for name, value in zip(names, match.groups(), strict=True)
            }
    return {}


@dataclass
class _Run:
    """One run as its lines are read from the top."""

    section: TextSection
    title: _Title | None = None
    title_index: int = 0
    facts: Attributes = field(default_factory=dict)
    """What the lines above the header, and between it and its first row, say."""
    shape: RowShape | None = None
    """Of the open table; None above its header."""
    header: int = 0
    found: list[int] = field(default_factory=list)
    """Indexes of the rows of the open table."""
    tables: list[Table] = field(default_factory=list)
    common: Attributes = field(default_factory=dict)
    """What holds for the tables of all data types."""
    plotting: bool = False

    def take(self, index: int, line: str) -> None:
        """Read a line that is no row of the open table."""
        section = self.section
        is_header = _HEADER.match(line) is not None
        if self.title is None:
            self._above_title(index, line, is_header=is_header)
        elif is_header:
            self._open(index, line)
        elif facts := _facts_of(line):
            if self.found:
                self._close()
            self.facts |= facts
        elif _FACT_START.match(line):
            raise section.error(index, "damaged line", expected="a whole line about the run")
        elif self.shape is None and (title := _title_of(line)):
            if title.program != self.title.program:
                raise section.error(
                    index, f"no table of {self.title.program}", expected="a column header"
                )
        elif self.shape and _PLOT.fullmatch(line):
            self.plotting = True
        elif not (is_exit_status(line) and self._validation() == "Fail"):
            expected = self.shape.describe() if self.shape else "a column header"
            check_chatter(section, index, expected, rows=not self.plotting)

    def _above_title(self, index: int, line: str, *, is_header: bool) -> None:
        if title := _title_of(line):
            self.title, self.title_index = title, index
            self.shape = _SENTENCES.get(title.program)
            if title.accelerator:
                self.facts["accelerator"] = title.accelerator
        elif is_header or "OSU" in line:
            raise self._no_title(index)
        elif facts := _facts_of(line):
            self.facts |= facts
        else:
            check_chatter(self.section, index, "the title of a benchmark")

    def _no_title(self, index: int) -> ParseError:
        return self.section.error(
            index, "not the title of a known OSU program", expected="'# OSU MPI ... Test v...'"
        )

    def _open(self, index: int, line: str) -> None:
        """Begin the table below a column header."""
        assert self.title is not None
        if self.shape is not None:
            self._close()
        if self.tables and "datatype" not in self.facts:
            raise self.section.error(
                index, "a second column header", expected="a row, or a new title"
            )
        if self.title.program == "osu_mbw_mr" and "num_pairs" not in self.facts:
            raise self.section.error(
                index, "a line is missing", expected="'[ pairs: N ] [ window size: W ]' above"
            )
        if not self.tables:
            self.common = {name: said for name, said in self.facts.items() if name != "datatype"}
        self.shape, self.header = row_shape(self._columns(index, line)), index

    def _columns(self, index: int, line: str) -> tuple[str, ...]:
        """Return the columns below a header.

        The header of the bandwidth ports says "Latency [us]", copied from the latency port, while
        the numbers below it are MB/s (mpi4py 4.1.2, demo/osu_bw.py and osu_bibw.py): there the
        title decides.  Of several data types in one run, OSU 7.2 prints "Avg Latency(us)" above
        every table but the first, whatever the program measures (osu_bw.c calls print_only_header
        of the collectives): there the first header holds.
        """
        assert self.title is not None
        names = self._printed_columns(index, line)
        if self.tables:
            return self.tables[0].columns + (("validation",) if "validation" in names else ())
        bandwidth = "bw" in self.title.program
        if bandwidth and self.title.suite == "osu-mpi4py":
            return tuple("bandwidth_mb_s" if name == "latency_us" else name for name in names)
        if bandwidth != ("bandwidth_mb_s" in names):
            raise self.section.error(
                index,
                f"not the columns of {self.title.program}",
                expected="MB/s" if bandwidth else "a latency in us",
            )
        return names

    def _printed_columns(self, index: int, line: str) -> tuple[str, ...]:
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
                raise self.section.error(
                    index, "unknown column", expected=expected, got=repr(shorten(rest))
                )
            names.append(name)
            at = word.end()
        return tuple(names)

    def _validation(self) -> str | None:
        if self.shape is None or "validation" not in self.shape.printed:
            return None
        return "Fail" if any("Fail" in self.section.lines[at] for at in self.found) else "Pass"

    def _close(self) -> None:
        """End the open table; what is said from here on is of the next data type."""
        assert self.title is not None
        assert self.shape is not None
        section, shape, found = self.section, self.shape, self.found
        if not found:
            raise section.error(
                self.header or self.title_index, "a table without rows", expected=shape.describe()
            )
        rows = shape.read([section.lines[index] for index in found])
        if validation := self._validation():
            self.facts["validation"] = validation
        # A data type of several bytes leaves out the sizes that hold no whole element.
        of_bytes = self.facts.get("datatype", "MPI_CHAR") == "MPI_CHAR"
        if shape.columns[0] == "message_size":
            sizes = [row[0] for row in rows]
            check_sizes(section, found, sizes, first=1 if of_bytes else None)
        elif len(found) > 1:
            raise section.error(found[1], "a second row", expected="one row, as there are no sizes")
        self.tables.append(
            Table(
                suite=self.title.suite,
                program=self.title.program,
                version=self.title.version,
                columns=shape.columns,
                rows=rows,
                source=section.source,
                line=section.first + (self.header or found[0]),
                row_lines=tuple(section.first + index for index in found),
                attributes=self.facts,
            )
        )
        self.facts, self.shape, self.found = dict(self.common), None, []

    def finish(self) -> tuple[Table, ...]:
        """Return all tables at the end of the section."""
        if self.title is None:
            raise self._no_title(0)
        if self.shape is None:
            raise self.section.error(
                self.title_index,
                "a table without column header",
                expected=f"the column header of {self.title.program}",
            )
        last = len(self.section.lines) - 1
        # A whole number may be the beginning of a longer one; two decimals are whole.
        if self.section.ends_text and self.shape.ends_whole and self.found[-1:] == [last]:
            raise self.section.error(last, "cut row", expected="a newline at its end")
        self._close()
        return tuple(self.tables)
