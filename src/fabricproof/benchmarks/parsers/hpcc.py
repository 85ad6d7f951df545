"""Read the summary of HPC Challenge: the rings and ping-pongs of its LatencyBandwidth test.

From hpcc 1.5.0: ``HPCC_Finalize`` (src/io.c) prints the summary, ``bench_lat_bw``
(src/bench_lat_bw_1.5.2.c) measures.

- GBytes are 10^9 bytes per second (``ring_bw * 1e-9``).
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
_MEASURED = tuple(name for name, _ in _COLUMNS.values())
_VERSION = ("VersionMajor", "VersionMinor", "VersionMicro")
#: of the summary, those that may be 0
_FLAGS = ("Success", *_VERSION)
_NUMBER = {
    **dict.fromkeys(("CommWorldProcs", *_FLAGS), re.compile("[0-9]{1,18}")),
    **dict.fromkeys(_MEASURED, re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:e[-+][0-9]{2})?")),
}


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the one table, of one row, of a run of hpcc.

    Raises:
        ParseError: the run did not end, a number is missing, stands there twice or is none; wrong
            bytes were received.
    """
    if (at := first_death(section.lines)) is not None:
        raise section.error(at, "the job ended badly", expected="a run that ended well")
    lines = [line.strip() for line in section.lines]
    at = next((at for at, line in enumerate(lines) if "ERROR: from right: expected" in line), None)
    if at is not None:
        raise section.error(at, "hpcc received wrong bytes", expected="what was sent")
    marks = ("Begin of Summary section.", "End of Summary section.", "End of HPC Challenge tests.")
    for mark in marks:
        if lines.count(mark) != 1:
            raise section.error(len(lines) - 1, "the output is cut", expected=f"one {mark}")
    start, end, _ = places = [lines.index(mark) for mark in marks]
    if places != sorted(places):
        raise section.error(end, "the output is mixed up", expected=", ".join(marks))
    found: dict[str, str] = {}
    for at, line in enumerate(lines[start:end], start):
        name, _, number = line.partition("=")
        if name in _NUMBER and name in found:
            raise section.error(at, "the output is damaged", expected=f"one {name}")
        found[name] = number
    # hpcc sets the numbers of a test to -1 before it runs any (HPCC_Init in src/io.c)
    if all(found.get(name, "").startswith("-1") for name in _MEASURED if "Ring" in name):
        what = "hpcc on 2 processes or more, with its latency and bandwidth test"
        raise section.error(start, "the rings were not run", expected=what)
    for name, pattern in _NUMBER.items():
        number = found.get(name, "")
        if not pattern.fullmatch(number) or (name not in _FLAGS and not float(number)):
            what, got = f"one {name} in the summary, above 0", repr(number)
            raise section.error(start, "the output is damaged", expected=what, got=got)
    processes = int(found["CommWorldProcs"])
    row = (round(float(found[name]) * factor, 9) for name, factor in _COLUMNS.values())
    line_number = section.first + start
    table = Table(
        suite="hpcc",
        program="LatencyBandwidth",
        version=".".join(str(int(found[name])) for name in _VERSION),
        columns=("message_size", "num_processes", *_COLUMNS),
        rows=((float(_BANDWIDTH_BYTES), float(processes), *row),),
        source=section.source,
        line=line_number,
        row_lines=(line_number,),
        attributes={
            "num_processes": processes,
            "latency_message_size": _LATENCY_BYTES,
            "success": int(found["Success"]),
        },
    )
    return (table,)
