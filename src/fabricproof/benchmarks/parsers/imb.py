"""Read the output of the Intel MPI Benchmarks: MPI1, P2P, RMA, NBC, EXT and MT.

One run prints a header, a list of the benchmarks to come, their tables and an end marker.  With
the header there, every listed benchmark must have come and the end marker must stand.  A bare
table, as people paste it, is accepted from its "# Benchmarking" line on.

Source of the grammar: src_c/IMB_output.c (IMB_print_header, IMB_display_times), src_c/IMB_g_info.c
and src_c/P2P/imb_p2p.c of releases 2018.0, 2019.6 and 2021.11; "Intel (R)" with a blank and
"Suite V3.2" stand in the headers of releases up to 2018.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fabricproof.benchmarks.parsers.grammar.chatter import check_chatter
from fabricproof.benchmarks.parsers.grammar.imb import SizeRule, read_table
from fabricproof.benchmarks.parsers.grammar.text import TextSection
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table

_HEADER = re.compile(
    r"[ \t#]*Intel ?\(R\) MPI Benchmark(?:s| Suite) V?"
    r"(?P<version>[0-9]{1,4}(?:\.[0-9]{1,3}){0,2}(?: (?:Update|update|beta|Beta) ?[0-9]*)?), "
    r"(?P<part>[\w-]+) part\b(?P<gpu> \(GPU\))?.*"
)
_BENCHMARK = re.compile(
    r"[ \t#]*Benchmarking (?P<multi>Multi-)?(?P<name>\w+)(?: \([0-9x ]+\))?[ \t]*"
)
_BENCHMARK_START = re.compile(r"[ \t#]*Benchmarking ")
_LIST = re.compile(r"[ \t]*# List of Benchmarks to run:")
_LISTED = re.compile(r"[ \t]*# (\w+)[ \t]*")
_INVALID = re.compile(r"[ \t]*# !! Benchmark (\w+) is invalid for \d+ processes")
_END = re.compile(r"[ \t]*# All processes entering MPI_Finalize")
_LARGEST = re.compile(r"[ \t]*# Maximum message length in bytes: +([0-9]{1,18})[ \t]*")
#: src_c/IMB_output.c IMB_show_selections; -msglen and -msgsz of IMB-P2P show in its command only.
_CHOSEN = re.compile(r"[ \t]*# (?:Message lengths were user defined|.*-msg(?:len|sz)\b)")

#: The command, in the header; without these options the sizes are 0, 1, 2, 4 and so on.
_COMMAND = re.compile(r"[ \t]*# \S*IMB-\w+(?!.*-(?:msglog|data_type)\b)(?:[ \t]|$)")

#: where IMB-MPI1-GPU was told to put the buffers of both ranks, in its command
_BUFFERS = re.compile(r"[ \t]*# \S*IMB-\w+-GPU\b.* -mem_alloc_type (\w+)")

#: what the header calls the part -> the binary that prints it (src_c/IMB_g_info.c).
BINARIES = {
    "MPI-1": "IMB-MPI1",
    "MPI-2": "IMB-EXT",
    "MPI-NBC": "IMB-NBC",
    "MPI-RMA": "IMB-RMA",
    "RMA": "IMB-RMA",
    "IMB-P2P": "IMB-P2P",
    "MT": "IMB-MT",
    "MPI-4": "IMB-MPI4",
}


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What stands around the tables of one run."""

    version: str | None
    binary: str | None
    buffers: str | None
    listed: dict[str, int]
    invalid: frozenset[str]
    sizes: SizeRule
    starts: tuple[int, ...]
    end: int | None


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return every table of one IMB run.

    A run goes from IMB's header, or from a bare "# Benchmarking", to the next tool.

    Raises:
        ParseError: a row is damaged or missing, a column is unknown, a listed benchmark has no
            table, the end marker is missing, or the text says that the job died.
    """
    tables: list[Table] = []
    for found in read_each(section, strict=True):
        if isinstance(found, ParseError):
            raise found
        tables += found
    return tuple(tables)


def read_each(
    section: TextSection, *, strict: bool = False
) -> Iterator[tuple[Table, ...] | ParseError]:
    """Yield the tables under each title of one run, or what is wrong with them.

    What is wrong with the run as a whole comes first.

    ``strict``: a size that the tool itself gave up on (out-of-mem, time-out) is damage; otherwise
    it stands in the table's ``unmeasured``.
    """
    run = _survey(section)
    run = replace(run, sizes=replace(run.sizes, strict=strict))
    try:
        _check_whole(section, run)
    except ParseError as error:
        yield error
    for start, end in pairwise([*run.starts, len(section.lines)]):
        try:
            yield tuple(_read(section, start, end, run))
        except ParseError as error:
            yield error


def _survey(section: TextSection) -> _Run:
    """Find the header's facts and where each table begins."""
    heads = [(index, line) for index, line in enumerate(section.lines) if "#" in line]
    header = _first(_HEADER, heads)
    largest = _first(_LARGEST, heads)
    starts = tuple(index for index, line in heads if _BENCHMARK_START.match(line))
    binary = BINARIES.get(header["part"], header["part"]) if header else None
    told = _first(_BUFFERS, heads)
    buffers = None
    if header and header["gpu"]:
        binary, buffers = f"{binary}-GPU", _PLACES.get(told[1] if told else "", "DEVICE")
    # IMB-MT takes its sizes from -count and does not say which they are.
    doubling = _first(_CHOSEN, heads) is None and binary != "IMB-MT"
    ends = [index for index, line in heads if _END.match(line)]
    return _Run(
        version=header["version"].strip() if header else None,
        binary=binary,
        buffers=buffers,
        listed=_listed(heads, starts[0] if starts else len(section.lines)),
        invalid=frozenset(match[1].lower() for _, line in heads if (match := _INVALID.match(line))),
        sizes=SizeRule(
            doubling=doubling,
            largest=int(largest[1]) if largest and doubling else None,
            from_one=_first(_COMMAND, heads) is not None,
        ),
        starts=starts,
        end=ends[-1] if ends else None,
    )


#: what is no memory of a GPU among the types of IMB-MPI1-GPU (``-help mem_alloc_type``: device,
#: host, shared, cpu; the first is its default)
_PLACES = {"host": "HOST", "cpu": "HOST"}


def _first(pattern: re.Pattern[str], heads: Sequence[tuple[int, str]]) -> re.Match[str] | None:
    matches = (pattern.match(line) for _, line in heads)
    return next((match for match in matches if match), None)


def _listed(heads: Sequence[tuple[int, str]], end: int) -> dict[str, int]:
    """Return the benchmarks that the header lists, each with its line."""
    begin = next((index for index, line in heads if _LIST.match(line)), end)
    return {
        match[1]: index
        for index, line in heads
        if begin < index < end and (match := _LISTED.fullmatch(line))
    }


def _check_whole(section: TextSection, run: _Run) -> None:
    """Check that nothing that the header promised is missing."""
    for index in range(run.starts[0] if run.starts else len(section.lines)):
        if "#repetitions" in section.lines[index]:
            raise section.error(index, "a table without title", expected="'# Benchmarking ...'")
        if not section.lines[index].lstrip().startswith("#"):
            check_chatter(section, index, "the first table")
    if not run.starts:
        raise section.error(0, "a run without table", expected="'# Benchmarking ...'")
    if (run.listed or "MPI Benchmark" in section.lines[0]) and run.binary is None:
        raise section.error(0, "a line is missing", expected="'Intel(R) MPI Benchmarks ...' above")
    names = {_title(section, start)["name"].lower() for start in run.starts}
    listed = {name.lower() for name in run.listed}
    if listed and not names <= listed:
        raise section.error(
            run.starts[0],
            "a table that the header does not list",
            expected=", ".join(run.listed),
            got=", ".join(sorted(names - listed)),
        )
    for name, index in run.listed.items():
        if name.lower() not in names | run.invalid:
            raise section.error(
                index, f"the table of {name} is missing", expected="one table per listed benchmark"
            )
    if run.listed and (run.end is None or run.end < run.starts[-1]):
        raise section.error(
            len(section.lines) - 1,
            "the output is cut",
            expected="'# All processes entering MPI_Finalize' at its end",
        )


def _title(section: TextSection, start: int) -> re.Match[str]:
    title = _BENCHMARK.fullmatch(section.lines[start])
    if title is None:
        raise section.error(start, "damaged title", expected="'# Benchmarking NAME'")
    return title


def _read(section: TextSection, start: int, end: int, run: _Run) -> Iterator[Table]:
    title = _title(section, start)
    blank = Table(
        suite="imb",
        program=title["name"],
        version=run.version,
        columns=(),
        rows=(),
        source=section.source,
        line=section.first + start,
        row_lines=(),
        attributes={"binary": run.binary} if run.binary else {},
    )
    if run.buffers:
        placed = {"send_buffer": run.buffers, "receive_buffer": run.buffers}
        blank = replace(blank, attributes={**blank.attributes, **placed})
    if title["multi"]:
        blank = replace(blank, attributes={**blank.attributes, "multi": 1})
    for table in read_table(section, (start, end), blank, run.sizes):
        if run.binary and "num_processes" not in table.attributes:
            raise section.error(start, "a line is missing", expected="'# #processes = N' below")
        yield table
