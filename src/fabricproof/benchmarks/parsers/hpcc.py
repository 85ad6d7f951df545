"""Read what HPC Challenge prints: the rings and ping-pongs of its LatencyBandwidth section.

From hpcc 1.5.0: ``bench_lat_bw_print`` (src/bench_lat_bw_1.5.2.c) prints the human part,
``HPCC_Finalize`` (src/io.c) the summary.  Both hold the same ten numbers with unlike digits; they
must agree, so that a torn one is noticed.

- MB/s and GBytes are 10^6 and 10^9 bytes per second (``bandwidth / 1e6``, ``ring_bw * 1e-9``).
- A ring step sends one message to either neighbour.  The printed latency is half the step's time,
  the bandwidth a message over that half: both messages that a process sends, over the whole step.
- Each ring's number is of the slowest process (MPI_MAX) in the best of 3 (bandwidth) or 8
  (latency) measurements, by the better of MPI_Sendrecv and of non-blocking calls; that of the
  random rings is the geometric mean over 10 (30) random orders.
- Latencies are of 8 bytes, bandwidths of 2000000.
- ``Success`` speaks of all tests of the suite: 0 where RandomAccess hit a small table too often at
  once.  The rings compare the bytes of every message and print an ERROR of their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from fabricproof.benchmarks.parsers.grammar.chatter import first_death
from fabricproof.benchmarks.parsers.grammar.text import TextSection
from fabricproof.core.measure import Table

#: messages of the two measurements (bench_lat_bw), bytes
LATENCY_BYTES, BANDWIDTH_BYTES = 8, 2_000_000

_END = re.compile(r"[ \t]*End of HPC Challenge tests\.[ \t]*")
_NUMBER = r"[ \t]*([0-9.]+(?:e[-+][0-9]+)?)"
_TRIPLE = rf"{_NUMBER} /{_NUMBER} /{_NUMBER}"

#: a line of the detailed results -> the summary's names of its numbers, and what makes them alike:
#: msec into usec, MB/s into GB/s
_DETAILS: tuple[tuple[re.Pattern[str], tuple[str, ...], tuple[float, ...]], ...] = (
    (
        re.compile(rf"Latency   min / avg / max:{_TRIPLE} msecs"),
        tuple(f"{word}PingPongLatency_usec" for word in ("Min", "Avg", "Max")),
        (1e3, 1e3, 1e3),
    ),
    (
        re.compile(rf"Bandwidth min / avg / max:{_TRIPLE} MByte/s"),
        tuple(f"{word}PingPongBandwidth_GBytes" for word in ("Min", "Avg", "Max")),
        (1e-3, 1e-3, 1e-3),
    ),
    (
        re.compile(rf"On naturally ordered ring: latency={_NUMBER} msec, bandwidth={_NUMBER} MB/s"),
        ("NaturallyOrderedRingLatency_usec", "NaturallyOrderedRingBandwidth_GBytes"),
        (1e3, 1e-3),
    ),
    (
        re.compile(rf"On randomly  ordered ring: latency={_NUMBER} msec, bandwidth={_NUMBER} MB/s"),
        ("RandomlyOrderedRingLatency_usec", "RandomlyOrderedRingBandwidth_GBytes"),
        (1e3, 1e-3),
    ),
)
_PROCESSES = re.compile(r" ?The ring communication was done in both directions on (\d+) processes")

#: the table's columns, the summary's names, and what makes GB/s into MB/s
_COLUMNS: Mapping[str, tuple[str, float]] = {
    "natural_ring_latency_us": ("NaturallyOrderedRingLatency_usec", 1.0),
    "random_ring_latency_us": ("RandomlyOrderedRingLatency_usec", 1.0),
    "natural_ring_bandwidth_mb_s": ("NaturallyOrderedRingBandwidth_GBytes", 1e3),
    "random_ring_bandwidth_mb_s": ("RandomlyOrderedRingBandwidth_GBytes", 1e3),
    "latency_min_us": ("MinPingPongLatency_usec", 1.0),
    "latency_avg_us": ("AvgPingPongLatency_usec", 1.0),
    "latency_max_us": ("MaxPingPongLatency_usec", 1.0),
    "bandwidth_min_mb_s": ("MinPingPongBandwidth_GBytes", 1e3),
    "bandwidth_avg_mb_s": ("AvgPingPongBandwidth_GBytes", 1e3),
    "bandwidth_max_mb_s": ("MaxPingPongBandwidth_GBytes", 1e3),
}

#: ``%g`` keeps six digits
SIX_DIGITS = 1e-5


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the one table, of one row, of a run of hpcc.

    Raises:
        ParseError: the run did not end, a number is missing, stands there twice, is none
            or is not the one that the other part prints; wrong bytes were received.
    """
    _check_end(section)
    begin, end = _part(section, "Summary")
    summary = _summary(section, begin, end)
    first, last = _part(section, "LatencyBandwidth")
    details = _details(section, first, last)
    for name, (value, rounding, index) in details.items():
        if abs(value - summary[name]) > SIX_DIGITS * summary[name] + rounding:
            raise section.error(
                index, "two parts of the output disagree", expected=f"{name}={summary[name]:g}"
            )
    processes = _processes(section, first, last, int(summary["CommWorldProcs"]))
    line = section.first + begin
    return (
        Table(
            suite="hpcc",
            program="LatencyBandwidth",
            version=".".join(str(int(summary[f"Version{part}"])) for part in _VERSION_PARTS),
            columns=("message_size", "num_processes", *_COLUMNS),
            rows=(
                (
                    float(BANDWIDTH_BYTES),
                    float(processes),
                    *(round(summary[name] * factor, 9) for name, factor in _COLUMNS.values()),
                ),
            ),
            source=section.source,
            line=line,
            row_lines=(line,),
            attributes={
                "num_processes": processes,
                "latency_message_size": LATENCY_BYTES,
                "success": int(summary["Success"]),
            },
        ),
    )


_VERSION_PARTS = ("Major", "Minor", "Micro")
_DUE = (
    *(f"Version{part}" for part in _VERSION_PARTS),
    "Success",
    "CommWorldProcs",
    *(name for name, _ in _COLUMNS.values()),
)
_RINGS = tuple(name for name, _ in _COLUMNS.values() if "Ring" in name)
_UNSET_RING = re.compile(rf"[ \t]*(?:{'|'.join(_RINGS)})=-1(?:\.0*)?")
_MAY_BE_ZERO = frozenset({"Success", *(f"Version{part}" for part in _VERSION_PARTS)})
_WHOLE = _MAY_BE_ZERO | {"CommWorldProcs"}


def _check_end(section: TextSection) -> None:
    at = first_death(section.lines)
    if at is not None:
        raise section.error(at, "the job ended badly", expected="a run that ended well")
    for index, line in enumerate(section.lines):
        if "ERROR: from right: expected" in line:
            raise section.error(index, "hpcc received wrong bytes", expected="what was sent")
    if not any(_END.fullmatch(line) for line in section.lines):
        raise section.error(
            len(section.lines) - 1, "the output is cut", expected="End of HPC Challenge tests."
        )


def _only(section: TextSection, pattern: re.Pattern[str], lines: Iterable[int], what: str) -> int:
    """Return the one line of ``lines`` that is ``pattern``."""
    found = [index for index in lines if pattern.fullmatch(section.lines[index].rstrip())]
    if len(found) != 1:
        at = found[1] if found else min(lines, default=0)
        got = None if found else "none"
        raise section.error(at, "the output is damaged", expected=f"one {what}", got=got)
    return found[0]


def _part(section: TextSection, name: str) -> tuple[int, int]:
    """Return the first and the last line of a section of hpcc's own."""
    everywhere = range(len(section.lines))
    marks = [
        _only(section, re.compile(rf"[ \t]*{word} of {name} section\."), everywhere, what)
        for word, what in (("Begin", f"begin of {name}"), ("End", f"end of {name}"))
    ]
    if marks[0] > marks[1]:
        raise section.error(marks[1], "the output is mixed up", expected=f"begin of {name} first")
    return marks[0], marks[1]


def _summary(section: TextSection, begin: int, end: int) -> dict[str, float]:
    lines = range(begin + 1, end)
    _check_run(section, begin, end)
    values = {}
    for name in _DUE:
        number = r"(\d+)" if name in _WHOLE else _NUMBER.removeprefix(r"[ \t]*")
        pattern = re.compile(rf"{name}={number}")
        at = _only(section, pattern, lines, f"{name} in the summary")
        values[name] = _value(section, at, pattern)
        if values[name] <= 0 and name not in _MAY_BE_ZERO:
            raise section.error(at, "no measurement", expected=f"{name} above 0")
    return values


def _check_run(section: TextSection, begin: int, end: int) -> None:
    """Refuse a run without rings: one process, or other tests of the suite alone.

    hpcc sets the numbers of a test to -1 before it runs any (HPCC_Init in src/io.c).
    """
    unset = [
        at for at in range(begin + 1, end) if _UNSET_RING.fullmatch(section.lines[at].rstrip())
    ]
    if len(unset) == len(_RINGS):
        raise section.error(
            unset[0],
            "the rings were not run",
            expected="hpcc on 2 processes or more, with its latency and bandwidth test",
        )


def _value(section: TextSection, index: int, pattern: re.Pattern[str]) -> float:
    match = pattern.fullmatch(section.lines[index].rstrip())
    assert match is not None, "it was found by this pattern"
    return _number(section, index, match[1])


def _number(section: TextSection, index: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise section.error(index, "no number", expected="a number") from None
    if not math.isfinite(value):
        raise section.error(index, "no number", expected="a finite number")
    return value


def _details(section: TextSection, begin: int, end: int) -> dict[str, tuple[float, float, int]]:
    """Return each number of the detailed results in the summary's unit, its rounding, its line.

    The same words stand once before, for each message length on its own: those lines are passed.
    """
    title = re.compile(r"Detailed benchmark results:")
    start = _only(section, title, range(begin, end), "title of the detailed results")
    found: dict[str, tuple[float, float, int]] = {}
    for pattern, names, factors in _DETAILS:
        at = _only(section, pattern, range(start, end), f"line with {names[0]}")
        match = pattern.fullmatch(section.lines[at].rstrip())
        assert match is not None, "it was found by this pattern"
        for text, name, factor in zip(match.groups(), names, factors, strict=True):
            decimals = len(text.partition(".")[2])
            rounding = 0.6 * 10**-decimals * factor
            found[name] = (_number(section, at, text) * factor, rounding, at)
    return found


def _processes(section: TextSection, begin: int, end: int, said: int) -> int:
    at = _only(section, _PROCESSES, range(begin, end), "number of processes")
    number = int(_value(section, at, _PROCESSES))
    if number != said:
        raise section.error(at, "two parts of the output disagree", expected=f"{said} processes")
    return number
