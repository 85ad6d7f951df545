"""Read what JSC's LinkTest prints.

From 1.2p1: src/mpilinktest.c (``work``, ``main``), mpilinktest_datastructures.c (the header),
mpilinktest_util.c (``time2mbs``: its MB/s are MiB/s), pingponganalysis.c (``-g`` and mapping.dat).
Times are half a round trip.  A serial run (``-S 1``) prints every value; a parallel one the slowest
alone, each with what it has when measured once more by itself, and keeps the rest in a binary file,
of which ``pingponganalysis -g`` makes text.  Of 2.x the lines that its users publish are known
(README.md of jubench-linktest): sums over all pairs, from which no matrix can be made.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl

from fabricproof.core.errors import ParseError
from fabricproof.core.units import convert
from fabricproof.pairs.matrix import Load, Matrix
from fabricproof.pairs.readers.ranks import (
    Ranks,
    checked,
    only,
    unplaced,
    values_of,
    without_labels,
)
from fabricproof.pairs.readers.table import Table, matrix_of

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
    found: dict[int, str] = {}
    for rank, host in (*_TASK.findall(text), *_MAPPED.findall(text)):
        if found.setdefault(int(rank), host) != host:
            raise ParseError(
                f"two runs in one output: rank {rank} on two nodes",
                source=source,
                expected=found[int(rank)],
                got=host,
            )
    hosts = found
    size = only(_BYTES, text, source, "message length")
    serial, again = _SERIAL.findall(text), _AGAIN.findall(text)
    if not serial and not again:
        return _of_gnuplot(text, hosts, size, source)
    if not hosts:
        raise _without_hosts(source)
    is_serial = bool(serial) or only(_IS_SERIAL, text, source, "mode") == 1
    times = _serial_times(serial, size, source)
    # Measured in turn with the others, and once more alone: the better one counts.
    retested = [
        (int(a), int(b), float(each))
        for a, b, first, second in again
        for each in ((second,) if is_serial else (first, second))
    ]
    times = pl.concat([times, values_of(retested)])
    highest = max(int(times[end].max() or 0) for end in ("from", "to"))  # type: ignore[arg-type]
    num = only(_TASKS, text, source, "number of tasks") or max(highest, *hosts) + 1
    ranks = checked(_with_kind(times, hosts, num, size), source)
    results = {word: float(value) for word, value in _RESULT.findall(text)}
    lost = _lost(results, times, is_serial=is_serial)
    if not is_serial:
        kept = len(set(zip(times["from"], times["to"], strict=True)))
        rest = (
            f"all but the slowest {kept} of {num * (num - 1)} values: a parallel LinkTest keeps "
            "them in its binary file (pingponganalysis -g writes them; give its mapping.dat and "
            "gnuplotinput.dat, one after the other)"
        )
        lost = (rest, *lost)
    else:
        lost = (*ranks.missing(), *unplaced(ranks), *lost)
    return replace(
        matrix_of(Table(name=source, frame=ranks.table("both"))),
        missing=lost,
        is_selection=not is_serial,
        load=Load.IN_TURN,
    )


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
    # Sizes are powers of two as a rule; seconds have eight decimals.
    size = size or _nearest_size(float(np.median([us * rate for _, _, us, rate in measured])))
    num = max(max(row[0], row[1]) for row in rows) + 1
    times = values_of((a, b, us) for a, b, us, _ in measured)
    if not size or size > LARGEST_LATENCY_BYTES:
        rates = values_of((a, b, rate) for a, b, _, rate in measured)
        ranks = Ranks(
            values=rates, hosts=hosts, num=num, lower_is_better=False, unit="MiB/s", size=size
        )
    else:
        ranks = _with_kind(times, hosts, num, size)
    ranks = checked(ranks, source)
    return replace(
        # Rows of one pair were measured at one moment, and are one look.
        matrix_of(Table(name=source, frame=ranks.table("both"))).without_repeats(),
        missing=(*ranks.missing(), *unplaced(ranks)),
        load=Load.IN_TURN,
    )


def _without_hosts(source: str) -> ParseError:
    return ParseError(
        "no line says on which node a task ran",
        source=source,
        expected="'task[000000] on NODE', which LinkTest prints to its error output, or the "
        "mapping.dat of pingponganalysis",
        next_step="keep both outputs together (2>&1), or put mapping.dat before the numbers",
    )


def _serial_times(rows: list[tuple[str, str, str, str]], size: int, source: str) -> pl.DataFrame:
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
    return values_of((int(a), int(b), float(us)) for a, b, us, _ in rows if float(us) > 0)


def _with_kind(times: pl.DataFrame, hosts: dict[int, str], num: int, size: int) -> Ranks:
    """Return times of half a round trip as latencies, of large messages as bandwidths."""
    if size <= LARGEST_LATENCY_BYTES:
        return Ranks(values=times, hosts=hosts, num=num, lower_is_better=True, unit="us", size=size)
    factor = convert(size, "MB/s", "MiB/s")
    rates = times.with_columns((factor / pl.col("value")).alias("value"))
    return Ranks(values=rates, hosts=hosts, num=num, lower_is_better=False, unit="MiB/s", size=size)


def _nearest_size(us_times_mib_s: float) -> int:
    """Return the size of a message: a power of two within 2 %, else what the numbers give."""
    size = convert(us_times_mib_s, "MiB/s", "MB/s")
    power = 2 ** round(np.log2(max(size, 1.0)))
    return int(power if abs(size / power - 1) < 0.02 else round(size))


def _lost(results: dict[str, float], times: pl.DataFrame, *, is_serial: bool) -> tuple[str, ...]:
    """Return what the lines at the end of a run say is not there."""
    if len(results) < 3:
        return ("the lines RESULT at its end: the run did not end, or the output is cut",)
    slowest = float(times["value"].max() or 0.0)  # type: ignore[arg-type]
    if is_serial and results["Max"] > slowest * 1.001 + 1e-4:
        return (f"the slowest value, of {results['Max']:.6g} us",)
    return ()
