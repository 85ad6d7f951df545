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

import re

from fabricproof.benchmarks.parsers.sections import TextSection, first_death
from fabricproof.core.measure import Table

#: messages of the two measurements (bench_lat_bw), bytes
_LATENCY_BYTES, _BANDWIDTH_BYTES = 8, 2_000_000
#: ``%g`` keeps six digits
_SIX_DIGITS = 1e-5

_NUMBER = r"([0-9]{1,18}(?:\.[0-9]{1,18})?(?:e[-+][0-9]{2})?)"
_TRIPLE = rf"[ \t]*{_NUMBER} /[ \t]*{_NUMBER} /[ \t]*{_NUMBER}"
_RING = rf"ordered ring: latency=[ \t]*{_NUMBER} msec, bandwidth=[ \t]*{_NUMBER} MB/s"

#: the table's columns -> the summary's names, and what makes GB/s into MB/s
_COLUMNS = {
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
_RINGS = tuple(name for name, _ in _COLUMNS.values() if "Ring" in name)
_VERSION = ("VersionMajor", "VersionMinor", "VersionMicro")
#: of the summary, those that may be 0
_FLAGS = ("Success", *_VERSION)
_DUE = {
    **dict.fromkeys(("CommWorldProcs", *_FLAGS), "([0-9]{1,18})"),
    **{name: _NUMBER for name, _ in _COLUMNS.values()},
}

_DISAGREE = "two parts of the output disagree"

#: a line of the detailed results -> the columns of its numbers
_DETAILS = {
    rf"Latency   min / avg / max:{_TRIPLE} msecs": "latency_min_us latency_avg_us latency_max_us",
    rf"Bandwidth min / avg / max:{_TRIPLE} MByte/s":
        "bandwidth_min_mb_s bandwidth_avg_mb_s bandwidth_max_mb_s",
    f"On naturally {_RING}": "natural_ring_latency_us natural_ring_bandwidth_mb_s",
    f"On randomly  {_RING}": "random_ring_latency_us random_ring_bandwidth_mb_s",
}  # fmt: skip


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the one table, of one row, of a run of hpcc.

    Raises:
        ParseError: the run did not end, a number is missing, stands there twice, is none
            or is not the one that the other part prints; wrong bytes were received.
    """
    _check_end(section)
    inside = _part(section, "Summary")
    unset = [
        at for at in inside if re.match(rf"[ \t]*(?:{'|'.join(_RINGS)})=-1", section.lines[at])
    ]
    # hpcc sets the numbers of a test to -1 before it runs any (HPCC_Init in src/io.c)
    if len(unset) == len(_RINGS):
        raise section.error(
            unset[0],
            "the rings were not run",
            expected="hpcc on 2 processes or more, with its latency and bandwidth test",
        )
    summary: dict[str, float] = {}
    for name, number in _DUE.items():
        at, match = _only(section, f"{name}={number}", inside, f"{name} in the summary")
        summary[name] = float(match[1])
        if not summary[name] and name not in _FLAGS:
            raise section.error(at, "no measurement", expected=f"{name} above 0")
    row = {name: round(summary[said] * factor, 9) for name, (said, factor) in _COLUMNS.items()}
    processes = int(summary["CommWorldProcs"])
    _check_details(section, row, processes)
    line = section.first + inside.start - 1
    return (
        Table(
            suite="hpcc",
            program="LatencyBandwidth",
            version=".".join(str(int(summary[name])) for name in _VERSION),
            columns=("message_size", "num_processes", *row),
            rows=((float(_BANDWIDTH_BYTES), float(processes), *row.values()),),
            source=section.source,
            line=line,
            row_lines=(line,),
            attributes={
                "num_processes": processes,
                "latency_message_size": _LATENCY_BYTES,
                "success": int(summary["Success"]),
            },
        ),
    )


def _check_end(section: TextSection) -> None:
    at = first_death(section.lines)
    if at is not None:
        raise section.error(at, "the job ended badly", expected="a run that ended well")
    for index, line in enumerate(section.lines):
        if "ERROR: from right: expected" in line:
            raise section.error(index, "hpcc received wrong bytes", expected="what was sent")
    if not any(line.strip() == "End of HPC Challenge tests." for line in section.lines):
        raise section.error(
            len(section.lines) - 1, "the output is cut", expected="End of HPC Challenge tests."
        )


def _only(section: TextSection, pattern: str, lines: range, what: str) -> tuple[int, re.Match[str]]:
    """Return the one line of ``lines`` that is ``pattern``, and its match."""
    is_it = re.compile(pattern + r"\s*").fullmatch
    found = [(at, match) for at in lines if (match := is_it(section.lines[at]))]
    if len(found) != 1:
        at = found[1][0] if found else lines.start
        got = None if found else "none"
        raise section.error(at, "the output is damaged", expected=f"one {what}", got=got)
    return found[0]


def _part(section: TextSection, name: str) -> range:
    """Return the lines between the marks of a section of hpcc's own."""
    lines = range(len(section.lines))
    begin, _ = _only(section, rf"[ \t]*Begin of {name} section\.", lines, f"begin of {name}")
    end, _ = _only(section, rf"[ \t]*End of {name} section\.", lines, f"end of {name}")
    if begin > end:
        raise section.error(end, "the output is mixed up", expected=f"begin of {name} first")
    return range(begin + 1, end)


def _check_details(section: TextSection, row: dict[str, float], processes: int) -> None:
    """Check the summary's numbers against the part that people read.

    The words of the details stand above them once more, for each message size on its own.
    """
    inside = _part(section, "LatencyBandwidth")
    title, _ = _only(section, "Detailed benchmark results:", inside, "title of the details")
    for pattern, names in _DETAILS.items():
        at, match = _only(section, pattern, range(title, inside.stop), f"line with {names}")
        for text, name in zip(match.groups(), names.split(), strict=True):
            factor = 1e3 if name.endswith("_us") else 1.0  # msec into usec
            rounding = 0.6 * 10 ** -len(text.partition(".")[2]) * factor
            if abs(float(text) * factor - row[name]) > _SIX_DIGITS * row[name] + rounding:
                raise section.error(at, _DISAGREE, expected=f"{name} of {row[name]:g}")
    ring = r" ?The ring communication was done in both directions on ([0-9]{1,18}) processes"
    at, match = _only(section, ring, inside, "number of processes")
    if int(match[1]) != processes:
        raise section.error(at, _DISAGREE, expected=f"{processes} processes")
