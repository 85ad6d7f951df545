"""The header grammar of the OSU Micro-Benchmarks and of their mpi4py ports.

Read from the sources of releases 5.7, 5.9, 6.2, 7.0 and 7.2 (paths below are those of 7.2, under
``c/``; up to 6.x the same files stand at the top), from 7.4's ``util/osu_util.c`` for the tail
latencies, and from ``demo/osu_*.py`` of mpi4py 4.1.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import TypeVar

from fabricproof.benchmarks.catalogue import OSU
from fabricproof.benchmarks.parsers.grammar.text import TextSection, shorten
from fabricproof.core.errors import ParseError

Attributes = dict[str, str | int | float]
_Answer = TypeVar("_Answer")

#: title -> program
PROGRAMS: dict[str, str] = {title: row.name for row in OSU for title in row.titles}

#: The ports' titles differ in two programs.
PORT_PROGRAMS: dict[str, str] = PROGRAMS | {
    title: row.name for row in OSU for title in row.port_titles
}

_TITLE = re.compile(
    r"[ \t#]*(?P<osu>OSU )?(?P<mpi>MPI[_\w]*|[NR]CCL)"
    r"(?:-(?P<accelerator>CUDA MANAGED|CUDA|OPENACC|ROCM|MANAGED|SYCL))?"
    r" (?P<rest>[-\w/ ]*?Test)(?: Test)?(?: v(?P<version>\d+\.[\d.]*\d(?:-\d+)?)"
    r"| \(Version (?P<old>\d+\.\d+)\))?[ \t]*"
)

#: the programs of OSU 7.x over NCCL or RCCL
XCCL_PREFIX = "osu_xccl_"

#: Column names as printed -> as named here.  util/osu_util.c print_header,
#: util/osu_util_mpi.c print_only_header, print_only_header_nbc, print_header_one_sided,
#: mpi/pt2pt/standard/osu_mbw_mr.c; tails: 7.4 util/osu_util.c; ports: demo/osu_*.py.
HEADER_WORDS: dict[str, str] = {
    "Size [B]": "message_size",
    "Size": "message_size",
    "Bandwidth (MB/s)": "bandwidth_mb_s",
    # osu_bibw 3.0 to 3.3
    "Bi-Bandwidth (MB/s)": "bandwidth_mb_s",
    "Latency (us)": "latency_us",
    "Latency [us]": "latency_us",
    "MB/s": "bandwidth_mb_s",
    "Messages/s": "message_rate_per_s",
    "Avg Latency(us)": "latency_avg_us",
    "Min Latency(us)": "latency_min_us",
    "Max Latency(us)": "latency_max_us",
    "Iterations": "iterations",
    "P50 Tail Lat(us)": "latency_p50_us",
    "P90 Tail Lat(us)": "latency_p90_us",
    "P99 Tail Lat(us)": "latency_p99_us",
    "P50 Tail BW(MB/s)": "bandwidth_p50_mb_s",
    "P90 Tail BW(MB/s)": "bandwidth_p90_mb_s",
    "P99 Tail BW(MB/s)": "bandwidth_p99_mb_s",
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

_WORD = re.compile(
    r"[ \t]*("
    + "|".join(re.escape(word) for word in sorted(HEADER_WORDS, key=len)[::-1])
    + r")(?=[ \t]|$)"
)
_HEADER = re.compile(r"[ \t]*(?:#[ \t]*)?(?=Size\b|Avg Latency\(us\)|Overall\(us\))")

#: Lines that say something about the run -> names of the attributes, one per group.
_ATTRIBUTES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(r"[ \t]*(?:#[ \t]*)?" + pattern + r"[ \t]*"), names)
    for pattern, names in (
        # mpi/pt2pt/standard/osu_mbw_mr.c
        (
            r"\[ pairs: ([0-9]{1,18}) \] \[ window size: ([0-9]{1,18}) \]",
            ("num_pairs", "window_size"),
        ),
        # util/osu_util_mpi.c print_header_one_sided
        (r"Window creation: (\S.*)", ("window_creation",)),
        (r"Synchronization: (\S.*)", ("synchronization",)),
        (r"Rank 0 Memory on (.*) and Rank 1 Memory on (.*)", ("send_buffer", "receive_buffer")),
        # every program since 7.2
        (r"Datatype: (\w+)\.", ("datatype",)),
        # mpi/pt2pt/standard/osu_latency_mt.c and osu_latency_mp.c, before the title
        (r"Number of Sender threads: ([0-9]{1,18})", ("num_sender_threads",)),
        (r"Number of Receiver threads: ([0-9]{1,18})", ("num_receiver_threads",)),
        (r"Number of forked processes in sender: ([0-9]{1,18})", ("num_sender_processes",)),
        (r"Number of forked processes in receiver: ([0-9]{1,18})", ("num_receiver_processes",)),
        # util/osu_util.c print_header
        (r"Send Buffer on (.*) and Receive Buffer on (.*)", ("send_buffer", "receive_buffer")),
    )
)

_COUNT = re.compile(r"[0-9]{1,18}")

#: no line that says something about a run is longer, in characters
_LONGEST_KEPT = 200

#: The beginnings of those lines: one that begins so and does not end so was cut or overwritten.
_ATTRIBUTE_START = re.compile(
    r"[ \t]*#[ \t]*(?:\[ pairs|Window creation|Synchronization|Datatype|Number of (?:Send|Rec|for))"
)


def _remembered(read: Callable[[str], _Answer]) -> Callable[[str], _Answer]:
    """Let ``read`` answer once for each line: many runs print the same few above their tables."""
    kept = lru_cache(maxsize=64)(read)

    @wraps(read)
    def answer(line: str) -> _Answer:
        return kept(line) if len(line) <= _LONGEST_KEPT else read(line)

    return answer


@_remembered
def title_of(line: str) -> tuple[str, str, str | None, str | None] | None:
    """Return (suite, program, version, accelerator) of a title, None where ``line`` is none."""
    match = _TITLE.fullmatch(line)
    if match is None:
        return None
    # osu_xccl_* of 7.x print the titles of the MPI programs with the library's name in front.
    is_xccl = not match["mpi"].startswith("MPI")
    title = f"{'MPI' if is_xccl else match['mpi']} {match['rest']}".lower()
    suite, programs = ("osu", PROGRAMS) if match["osu"] else ("osu-mpi4py", PORT_PROGRAMS)
    program = programs.get(title)
    if program is None or (is_xccl and not match["osu"]):
        return None
    if is_xccl:
        program = program.replace("osu_", XCCL_PREFIX)
    return suite, program, match["version"] or match["old"], match["accelerator"]


def is_header(line: str) -> bool:
    """Tell whether ``line`` begins as a column header does."""
    return _HEADER.match(line) is not None


def columns_of(section: TextSection, index: int) -> tuple[str, ...]:
    """Return the names of the columns that the header at ``index`` announces.

    Raises:
        ParseError: a column is unknown.
    """
    line = section.lines[index]
    start = _HEADER.match(line)
    at = start.end() if start else 0
    names: list[str] = []
    while line[at:].strip():
        word = _WORD.match(line, at)
        if word is None:
            raise _unknown_column(section, index, line[at:])
        if HEADER_WORDS[word[1]] in names:
            raise _unknown_column(section, index, f"{word[1]} twice")
        names.append(HEADER_WORDS[word[1]])
        at = word.end()
    return tuple(names)


def _unknown_column(section: TextSection, index: int, rest: str) -> ParseError:
    return section.error(
        index,
        "unknown column",
        expected=f"one of {', '.join(HEADER_WORDS)}",
        got=repr(shorten(rest.strip())),
    )


@_remembered
def attributes_of(line: str) -> Mapping[str, str | int | float]:
    """Return what ``line`` says about the run; empty where it says nothing known."""
    if "#" not in line and "[" not in line:
        return {}
    for pattern, names in _ATTRIBUTES:
        match = pattern.fullmatch(line)
        if match:
            return {
                name: int(value) if _COUNT.fullmatch(value) else value
                for name, value in zip(names, match.groups(), strict=True)
            }
    return {}


def is_cut_attribute(line: str) -> bool:
    """Tell whether ``line`` begins as a line about the run, and does not go on as one."""
    return _ATTRIBUTE_START.match(line) is not None and not attributes_of(line)


def measures_bandwidth(program: str) -> bool:
    """Tell whether ``program`` prints MB/s."""
    return "bw" in program
