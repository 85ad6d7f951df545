"""Read what JSC's LinkTest prints.

From 1.2p1: src/mpilinktest.c (``work``, ``main``), mpilinktest_datastructures.c (the header),
mpilinktest_util.c (``time2mbs``: its MB/s are MiB/s), pingponganalysis.c (``-g`` and mapping.dat).
Times are half a round trip.  A serial run (``-S 1``) prints every value; a parallel one the slowest
alone, each with what it has when measured once more by itself, and keeps the rest in a binary file,
of which ``pingponganalysis -g`` makes text.  Of 2.x the lines that its users publish are known
(README.md of jubench-linktest): sums over all pairs, from which no matrix can be made.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np

from fabricproof.core.errors import ParseError
from fabricproof.core.units import convert, size_label
from fabricproof.pairs.matrix import Kind, Load, Matrix
from fabricproof.pairs.readers.ranks import (
    RankValue,
    check_ranks,
    matrix_of_ranks,
    missing_of,
    only,
    unplaced,
    without_labels,
)

#: Messages up to this size are a latency; larger ones, there and back, a bandwidth.
LARGEST_LATENCY_BYTES = 8192

_RANK = r"(\d{1,7})"
_TASK = re.compile(rf"task\[{_RANK}\] on (\S+)")
#: mapping.dat of pingponganalysis: rank, 4 or 6 coordinates, host
_MAPPED = re.compile(rf"^ *{_RANK}(?: +-?\d+){{4,6}} +(\S*[A-Za-z]\S*)[ \t]*$", re.MULTILINE)
_TASKS = re.compile(r"^linktest: Number of MPI-Task: +(\d{1,7})$", re.MULTILINE)
_BYTES = re.compile(r"^linktest: Message length: +(\d{1,12}) Bytes$", re.MULTILINE)
_IS_SERIAL = re.compile(r"^linktest: serial test: +([01])$", re.MULTILINE)
_SERIAL = re.compile(
    rf"{_RANK}-> *{_RANK}: *(\d{{1,12}}\.\d{{5}})us \( *(\d{{1,9}}\.\d{{2}}) MB/s\) \(l=\d+\)"
)
_AGAIN = re.compile(
    rf"PINGPONG +{_RANK} +<-> +{_RANK}: +1st: +(\d{{1,12}}\.\d+) ?us +\([^)\n]*\)"
    r" +2nd: +(\d{1,12}\.\d+) ?us +\( *\d[^)\n]*\)"
)
_GNUPLOT = re.compile(rf"^ *{_RANK} +{_RANK} +(\d+\.\d{{8}}) +(\d+\.\d{{8}})[ \t]*$", re.MULTILINE)
_RESULT = re.compile(r"^RESULT: (Min|Max|Avg) Time: +(\d{1,15}\.\d+) ?us", re.MULTILINE)
_OF_LINKTEST = re.compile(
    r"^(?: *\d+: )?linktest: Number of MPI|task\[\d{6}\] on |PINGPONG +\d+ +<-> "
    r"|^RESULT: (?:Min|Max|Avg) Time:|^(?:Parallel|Aggregated) Results",
    re.MULTILINE,
)


def is_of_linktest(beginning: str) -> bool:
    """Tell whether an output that begins so is LinkTest's, or its analysis program's."""
    first = beginning.lstrip("\n").partition("\n")[0]
    return bool(_OF_LINKTEST.search(beginning) or _GNUPLOT.match(first) or _MAPPED.match(first))


def read_linktest(text: str, source: str) -> Matrix:
    """Return the values of pairs of nodes in an output of LinkTest.

    ``text``: all of the output, with what it printed as errors, or mapping.dat and
    gnuplotinput.dat of its analysis program together.

    Raises:
        ParseError: no value of two nodes stands in it, no line says where the tasks ran, or it
            contradicts itself.
    """
    text = without_labels(text, "linktest: Number of MPI")
    hosts: dict[int, str] = {}
    for rank, host in (*_TASK.findall(text), *_MAPPED.findall(text)):
        if hosts.setdefault(int(rank), host) != host:
            raise ParseError(
                f"two runs in one output: rank {rank} on two nodes",
                source=source,
                expected=hosts[int(rank)],
                got=host,
            )
    size = only(_BYTES, text, source, "message length")
    serial, again = _SERIAL.findall(text), _AGAIN.findall(text)
    if not serial and not again:
        return _of_gnuplot(text, hosts, size, source)
    if not hosts:
        raise _without_hosts(source)
    is_serial = bool(serial) or only(_IS_SERIAL, text, source, "mode") == 1
    times = _serial_times(serial, size, source)
    # Measured in turn with the others, and once more alone: the better one counts.
    times += [
        (int(a), int(b), float(each))
        for a, b, first, second in again
        for each in ((second,) if is_serial else (first, second))
    ]
    highest = max((*hosts, *(max(a, b) for a, b, _ in times)))
    num = only(_TASKS, text, source, "number of tasks") or highest + 1
    check_ranks(times, hosts, num, source)
    lost: tuple[str, ...]
    results = {word: float(value) for word, value in _RESULT.findall(text)}
    if len(results) < 3:
        lost = ("the lines RESULT at its end: the run did not end, or the output is cut",)
    elif is_serial and results["Max"] > max(us for *_, us in times) * 1.001 + 1e-4:
        lost = (f"the slowest value, of {results['Max']:.6g} us",)
    else:
        lost = ()
    if is_serial:
        lost = (*missing_of(times, hosts, num), *unplaced(hosts, num), *lost)
    else:
        kept = len({(a, b) for a, b, _ in times})
        rest = (
            f"all but the slowest {kept} of {num * (num - 1)} values: a parallel LinkTest keeps "
            "them in its binary file (pingponganalysis -g writes them; give its mapping.dat and "
            "gnuplotinput.dat, one after the other)"
        )
        lost = (rest, *lost)
    matrix = _of_times(times, hosts, size, source)
    return replace(matrix, missing=lost, is_selection=not is_serial, load=Load.IN_TURN)


def _of_gnuplot(text: str, hosts: dict[int, str], size: int, source: str) -> Matrix:
    """Read gnuplotinput.dat: ranks, seconds, MiB/s of every pair; of a rank with itself 0."""
    rows = [
        (int(a), int(b), float(seconds) * 1e6, float(rate))
        for a, b, seconds, rate in _GNUPLOT.findall(text)
    ]
    measured = [row for row in rows if row[0] != row[1] and row[2] > 0 and row[3] > 0]
    if not measured:
        raise ParseError(
            "no value of a pair in what LinkTest printed",
            source=source,
            expected="'A->B: ..us (.. MB/s) (l=..)' of a serial run, PINGPONG lines, or the four "
            "columns of pingponganalysis -g",
            next_step="LinkTest keeps its matrix in a binary file: write it as text, or as a CSV "
            "of a,b,value",
        )
    if not hosts:
        raise _without_hosts(source)
    if not size:  # sizes are powers of two as a rule; seconds have eight decimals
        middle = float(np.median([us * rate for _, _, us, rate in measured]))
        exact = convert(middle, "MiB/s", "MB/s")
        power = 2.0 ** round(math.log2(max(exact, 1.0)))
        size = int(power if abs(exact / power - 1) < 0.02 else round(exact))
    num = max(max(row[0], row[1]) for row in rows) + 1
    times = [(a, b, us) for a, b, us, _ in measured]
    check_ranks(times, hosts, num, source)
    if size > LARGEST_LATENCY_BYTES:  # its rates have more digits than its seconds
        factor = convert(size, "MB/s", "MiB/s")
        times = [(a, b, factor / rate) for a, b, _, rate in measured]
    # Rows of one pair were measured at one moment, and are one look.
    matrix = _of_times(times, hosts, size, source).without_repeats()
    lost = (*missing_of(times, hosts, num), *unplaced(hosts, num))
    return replace(matrix, missing=lost, notes=(), load=Load.IN_TURN)


def _without_hosts(source: str) -> ParseError:
    return ParseError(
        "no line says on which node a task ran",
        source=source,
        expected="'task[000000] on NODE', which LinkTest prints to its error output, or the "
        "mapping.dat of pingponganalysis",
        next_step="keep both outputs together (2>&1), or put mapping.dat before the numbers",
    )


def _serial_times(rows: list[tuple[str, str, str, str]], size: int, source: str) -> list[RankValue]:
    """Return the times of a serial run, each of which must fit the MB/s beside it."""
    for a, b, us, rate in rows if size else ():
        expected = convert(size / float(us), "MB/s", "MiB/s") if float(us) > 0 else 0.0
        if not expected or abs(expected - float(rate)) > 0.006 + 0.001 * expected:
            raise ParseError(
                "a value contradicts itself",
                source=source,
                expected=f"{expected:.2f} MB/s of {size} bytes in {us} us",
                got=f"{a}->{b}: {rate} MB/s",
            )
    return [(int(a), int(b), float(us)) for a, b, us, _ in rows if float(us) > 0]


def _of_times(times: list[RankValue], hosts: dict[int, str], size: int, source: str) -> Matrix:
    """Return times of half a round trip as latencies, of large messages as bandwidths."""
    words = size_label(size) if size else ""
    if size <= LARGEST_LATENCY_BYTES:
        kind = Kind(quantity="latency", unit="us", size=words)
        return matrix_of_ranks(times, hosts, kind, source, both_ways=True)
    factor = convert(size, "MB/s", "MiB/s")
    rates = [(a, b, factor / us) for a, b, us in times]
    kind = Kind(quantity="bandwidth", unit="MiB/s", size=words)
    return matrix_of_ranks(rates, hosts, kind, source, both_ways=True)
