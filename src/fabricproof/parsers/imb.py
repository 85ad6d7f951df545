"""Read the output of the Intel MPI Benchmarks: MPI1, P2P, RMA, NBC, EXT and MT.

One run prints a header, a list of the benchmarks to come, their tables and an end marker.  With
the header there, every listed benchmark must have come and the end marker must stand.  A bare
table, as people paste it, is accepted from its "# Benchmarking" line on.

Source of the grammar: src_c/IMB_output.c (IMB_print_header, IMB_display_times), src_c/IMB_g_info.c
and src_c/P2P/imb_p2p.c of releases 2018.0, 2019.6 and 2021.11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fabricproof.measure import Table
from fabricproof.parsers._chatter import check_chatter
from fabricproof.parsers._imb_table import read_table
from fabricproof.parsers._text import Section

_HEADER = re.compile(
    r"[ \t#]*Intel\(R\) MPI Benchmarks (?P<version>[^,\n]+), (?P<part>[\w-]+) part"
)
_BENCHMARK = re.compile(r"[ \t#]*Benchmarking (?P<multi>Multi-)?(?P<name>\w+)\b")
_LIST = re.compile(r"[ \t]*# List of Benchmarks to run:")
_LISTED = re.compile(r"[ \t]*# (\w+)[ \t]*")
_INVALID = re.compile(r"[ \t]*# !! Benchmark (\w+) is invalid for \d+ processes")
_END = re.compile(r"[ \t]*# All processes entering MPI_Finalize")
_LENGTHS = re.compile(
    r"[ \t]*# M(?:in|ax)imum message length in bytes: +(\d+)|[ \t]*# Message lengths were"
)

#: what the header calls the part -> the binary that prints it (src_c/IMB_g_info.c).
BINARIES = {
    "MPI-1": "IMB-MPI1",
    "MPI-2": "IMB-EXT",
    "MPI-NBC": "IMB-NBC",
    "MPI-RMA": "IMB-RMA",
    "RMA": "IMB-RMA",
    "IMB-P2P": "IMB-P2P",
    "MPI-MT": "IMB-MT",
    "MPI-4": "IMB-MPI4",
}


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What stands around the tables of one run."""

    version: str | None
    binary: str | None
    listed: dict[str, int]
    invalid: frozenset[str]
    starts: tuple[int, ...]
    end: int | None


def parse(section: Section, expected_sizes: Sequence[int] | None = None) -> tuple[Table, ...]:
    """Return every table of one IMB run.

    Args:
        section: lines from IMB's header, or from a bare "# Benchmarking", to the next tool.
        expected_sizes: the message sizes that the run asked for, where they are known.

    Raises:
        ParseError: a row is damaged or missing, a column is unknown, a listed benchmark has no
            table, the end marker is missing, or the text says that the job died.
    """
    run = _survey(section)
    _check_whole(section, run)
    bounds = [*run.starts, len(section.lines)]
    tables: list[Table] = []
    for start, end in pairwise(bounds):
        tables += _read(section, start, end, run, expected_sizes)
    return tuple(tables)


def _survey(section: Section) -> _Run:
    """Find the header's facts and where each table begins."""
    version = binary = end = None
    starts: list[int] = []
    invalid: set[str] = set()
    listed: dict[str, int] = {}
    listing = False
    for index, line in enumerate(section.lines):
        if "#" not in line:
            continue
        if match := _BENCHMARK.match(line):
            starts.append(index)
            listing = False
        elif match := _HEADER.match(line):
            version, binary = match["version"].strip(), BINARIES.get(match["part"], match["part"])
        elif match := _INVALID.match(line):
            invalid.add(match[1].lower())
        elif _END.match(line):
            end = index
        elif _LIST.match(line):
            listing = True
        elif listing and (match := _LISTED.fullmatch(line)):
            listed.setdefault(match[1], index)
    return _Run(
        version=version,
        binary=binary,
        listed=listed,
        invalid=frozenset(invalid),
        starts=tuple(starts),
        end=end,
    )


def _check_whole(section: Section, run: _Run) -> None:
    """Check that nothing that the header promised is missing."""
    for index in range(run.starts[0] if run.starts else len(section.lines)):
        if not section.lines[index].lstrip().startswith("#"):
            check_chatter(section, index, "the first table")
    if not run.starts:
        raise section.error(0, "a run without table", expected="'# Benchmarking ...'")
    names = {_BENCHMARK.match(section.lines[start])["name"].lower() for start in run.starts}  # type: ignore[index]
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


def _read(
    section: Section, start: int, end: int, run: _Run, expected_sizes: Sequence[int] | None
) -> Iterator[Table]:
    title = _BENCHMARK.match(section.lines[start])
    assert title is not None
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
    if title["multi"]:
        blank = replace(blank, attributes={**blank.attributes, "multi": 1})
    yield from read_table(section, start, end, blank, expected_sizes)
