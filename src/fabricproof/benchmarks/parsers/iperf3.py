"""Read what iperf3 prints, as text, with ``--json`` or with ``--json-stream``.

The result is what the receiver counted: the sender's figure includes bytes that were still in
buffers, and of UDP what was lost.  The server of a test prints it too, and nothing else once its
client has gone.  iperf3 up to 3.1 prints one summary of UDP, without ``sender`` or ``receiver``:
the sender's rate beside the receiver's loss (``iperf_print_results`` in src/iperf_api.c of 3.1.3),
of which the part that arrived is the result.

All streams of iperf3 before 3.16 share one thread; since 3.16 each has its own (release
notes of 3.16), and with it the meaning of ``-P`` changed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fabricproof.benchmarks.parsers.grammar.iperf import (
    Interval,
    asked_streams,
    ends_of,
    loss,
    own_address,
    read_intervals,
)
from fabricproof.benchmarks.parsers.sections import TextSection, death
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Table

_VERSION = re.compile(r"[ \t]*iperf (3\.[0-9]{1,3}(?:\.[0-9]{1,3})?\+?)[ \t]*")
_VERBOSE = re.compile(r"Starting Test: protocol: (\w+), ([0-9]{1,5}) streams")
_LISTENING = re.compile(r"[ \t]*Server listening on (?:port )?\d")
_ACCEPTED = "Accepted connection from "
#: version and machine, which ``-V`` prints first
_BANNER_LINES = 2
#: what shows that a test began, or could not
_BEGUN = ("Connecting to host ", _ACCEPTED, "Starting Test:", "iperf3: ")
#: how a server that waits is ended
_STOPPED = "iperf3: interrupt - the server"
#: how a line of ``--json-stream`` begins (JSONStream_Output in src/iperf_api.c, since 3.17)
_EVENT = '{"event":'
#: the line of dashes above a summary
_RULER = re.compile(r"[ \t]*(?:- ){10,40}-?[ \t]*")
#: what stands behind the rate in a summary of UDP up to 3.1, whose tables say "Bandwidth"
_OLD_REST = re.compile(r"[ \t]+[0-9.]{1,20} ms[ \t]+-?\d{1,15}/ *\d{1,15} \([^)]{1,20}%\)[ \t]*")
_RETRANSMITS = re.compile(r"[ \t]+([0-9]{1,15})[ \t]+sender[ \t]*")

#: names of the counts of datagrams, before ``packets``
_COUNTS = ("lost_", "")
_SIDES = ("sum_sent", "sum_received")
#: how the sums of the way back end of ``--bidir`` (iperf_print_results in src/iperf_api.c)
_WAY_BACK = "_bidir_reverse"

#: 8 bits per byte, 10^6 bytes per MB.
_BITS_PER_MB = 8e6

Attributes = dict[str, str | int | float]


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the one table, of one row, of a run of iperf3; none where a server only waited.

    Raises:
        ParseError: the receiver's summary is missing, a stream is missing, a line is damaged, the
            JSON is broken, or the test failed.
    """
    if section.lines[0].startswith(_EVENT):
        return (_read_stream(section),)
    if section.lines[0].lstrip().startswith("{"):
        return (_read_json(section),)
    if _is_idle(section):
        return ()
    return (_read_text(section),)


def _is_idle(section: TextSection) -> bool:
    """Tell whether a server waited here and nobody came.

    With ``-V`` it prints its version and the machine before each wait (``iperf_run_server``), so
    two such lines stand alone at the end of a log whose last words are not written yet.  Between
    them and the wait stands one line of dashes.
    """
    words = [line.lstrip() for line in section.lines if line.strip()]
    words = [word for word in words if not word.startswith(_STOPPED)]
    if not words or any(word.startswith(_BEGUN) for word in words):
        return False
    if any(_LISTENING.match(word) for word in words[: _BANNER_LINES + 2]):
        return True
    return len(words) <= _BANNER_LINES and _VERSION.fullmatch(words[0]) is not None


def _read_text(section: TextSection) -> Table:
    intervals = read_intervals(section)
    _check_one_end(section)
    received = _by_stream(intervals, "receiver")
    sent = _by_stream(intervals, "sender")
    if not received and not sent:
        received, sent = _unnamed_summary(section, intervals)
    if received and {line.stream for line in intervals} != set(received):
        raise section.error(
            intervals[-1].index, "a line is missing", expected="the receiver's line per stream"
        )
    if not received:
        raise section.error(0, "no result", expected="a summary line of the receiver")
    _check_end(section)
    result = _total(section, received)
    attributes: Attributes = {
        "duration_s": result.end,
        "moved_bytes": result.moved_bytes,
        "bandwidth_rounding_mb_s": result.rounding_mb_s,
        **own_address(ends_of(section)),
    }
    version = _first(section, _VERSION)
    verbose = _first(section, _VERBOSE)
    asked = int(verbose[2]) if verbose else asked_streams(section)
    streams = _num_streams(section, received, asked)
    if verbose:
        attributes["protocol"] = verbose[1]
    lost_share: float | None = None
    if result.datagrams is None and _is_udp(section, intervals):
        raise section.error(result.index, "damaged row", expected="lost and sent datagrams")
    if result.datagrams is not None:
        lost_share, facts = loss(section, result.index, result.lost or 0, result.datagrams)
        attributes |= facts
    total_sent = sent.get("SUM") or sent.get(result.stream)
    if total_sent is not None:
        attributes["sent_mb_s"] = total_sent.rate_mb_s
        retransmits = _RETRANSMITS.fullmatch(total_sent.rest)
        if retransmits:
            attributes["retransmits"] = int(retransmits[1])
    return _table(
        section,
        line=section.first + result.index,
        version=version[1] if version else None,
        streams=streams,
        rate=result.rate_mb_s,
        attributes=attributes,
        lost_share=lost_share,
    )


def _is_udp(section: TextSection, intervals: Sequence[Interval]) -> bool:
    if any(line.datagrams is not None for line in intervals):
        return True
    return any("Total Datagrams" in line[:200] for line in section.lines)


def _check_one_end(section: TextSection) -> None:
    begun = any(line.lstrip().startswith("Connecting to host ") for line in section.lines)
    for index, line in enumerate(section.lines):
        if begun and line.lstrip().startswith(_ACCEPTED):
            raise section.error(index, "both ends in one text", expected="the text of one end")


def _unnamed_summary(
    section: TextSection, intervals: Sequence[Interval]
) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Return what arrived and what was sent of UDP, by iperf3 up to 3.1; nothing of another test.

    Raises:
        ParseError: the text is a server's, which counts no bytes there.
    """
    if any("Bitrate" in line[:200] for line in section.lines):
        return {}, {}  # of a later version, whose summary has the words
    rulers = [at for at, line in enumerate(section.lines) if _RULER.fullmatch(line)]
    sent = {
        line.stream: line
        for line in intervals
        if rulers and line.index > rulers[-1] and line.start == 0 and _OLD_REST.fullmatch(line.rest)
    }
    received = {}
    for name, line in sent.items():
        if not line.moved_bytes and line.datagrams:
            raise section.error(
                line.index,
                "a server that counted no bytes",
                expected="the client's text: iperf3 up to 3.1 has the bytes of UDP there alone",
            )
        arrived = 1 - loss(section, line.index, line.lost or 0, line.datagrams or 0)[0]
        received[name] = replace(
            line, rate_mb_s=line.rate_mb_s * arrived, moved_bytes=int(line.moved_bytes * arrived)
        )
    return received, sent


def _by_stream(intervals: Sequence[Interval], side: str) -> dict[str, Interval]:
    return {line.stream: line for line in intervals if line.rest.rstrip().endswith(side)}


def _first(section: TextSection, pattern: re.Pattern[str]) -> re.Match[str] | None:
    matches = (pattern.match(line) for line in section.lines)
    return next((match for match in matches if match), None)


def _check_end(section: TextSection) -> None:
    """Check the client's last words, where its first words are there."""
    begun = any(line.lstrip().startswith("Connecting to host ") for line in section.lines)
    if begun and not any(line.strip() == "iperf Done." for line in section.lines):
        raise section.error(
            len(section.lines) - 1, "the output is cut", expected="'iperf Done.' at its end"
        )


def _total(section: TextSection, received: Mapping[str, Interval]) -> Interval:
    if "SUM" in received:
        return received["SUM"]
    if len(received) > 1:
        last = max(line.index for line in received.values())
        raise section.error(last, "the sum is missing", expected="a [SUM] line of all streams")
    return next(iter(received.values()))


def _num_streams(
    section: TextSection, received: Mapping[str, Interval], asked: int | None
) -> int | None:
    """Return the number of streams, None where only their sum was shown."""
    seen = len([name for name in received if name != "SUM"])
    if asked is not None and seen not in {0, asked}:
        last = max(line.index for line in received.values())
        raise section.error(last, "a stream is missing", expected=f"{asked} streams")
    return asked if asked is not None else seen or None


def _read_json(section: TextSection) -> Table:
    text = "\n".join(section.lines)
    try:
        report, end = json.JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1) - 1
        raise section.error(
            line, "broken JSON", expected="the whole report of iperf3 --json"
        ) from None
    _check_after(section, text.count("\n", 0, end) + 1)
    if not isinstance(report, dict):
        raise section.error(0, "not a report", expected="an object of iperf3 --json")
    if "error" in report:
        raise section.error(
            0, "the test failed", expected="a test that ended well", got=repr(report["error"])
        )
    return _report_table(section, report)


def _read_stream(section: TextSection) -> Table:
    """Read the events of one run: a start, intervals and an end, which a report holds together."""
    report: dict[str, Any] = {"intervals": []}
    for index, line in enumerate(section.lines):
        if not line.startswith(_EVENT):
            _check_after(section, index, index + 1)
            continue
        try:
            event = json.loads(line)
            name, data = event["event"], event["data"]
        except (ValueError, KeyError, RecursionError):
            raise section.error(index, "broken JSON", expected="a whole event") from None
        if name == "error":
            raise section.error(
                index, "the test failed", expected="a test that ended well", got=repr(data)
            )
        if name in report:
            raise section.error(index, "a second event of its kind", expected="one run")
        if name == "interval":
            report["intervals"].append(data)
        elif name in {"start", "end"} and isinstance(data, dict):
            report[name] = data
    for name in ("start", "end"):
        if name not in report:
            raise section.error(
                len(section.lines) - 1, "the output is cut", expected=f"the event {name!r}"
            )
    return _report_table(section, report)


def _check_after(section: TextSection, start: int, end: int | None = None) -> None:
    for index in range(start, len(section.lines) if end is None else end):
        if death(section.lines[index]):
            raise section.error(index, "the job ended badly", expected="a run that ended well")
        if section.lines[index].startswith(_EVENT):
            raise section.error(index, "an event without its start", expected="the event 'start'")


def _report_table(section: TextSection, report: Mapping[str, Any]) -> Table:
    rate = _number(section, report, "end", "sum_received", "bits_per_second", other="sum")
    streams = int(_number(section, report, "start", "test_start", "num_streams"))
    _check_streams(section, report["end"], streams)
    lost_share, facts = _lost(section, report)
    attributes: Attributes = {
        "duration_s": _number(section, report, "end", "sum_received", "seconds", other="sum")
    }
    moved = _number(section, report, "end", "sum_received", "bytes", other="sum")
    if lost_share is not None and "sum_received" not in report["end"]:
        # Up to 3.1 the sum is the sender's.
        attributes["sent_mb_s"] = rate / _BITS_PER_MB
        rate, moved = rate * (1 - lost_share), moved * (1 - lost_share)
    attributes["moved_bytes"] = int(moved)
    attributes |= facts
    start = report["start"]
    attributes |= _segments(report)
    attributes |= own_address(_ends(start))
    protocol = start["test_start"].get("protocol")
    if isinstance(protocol, str):
        attributes["protocol"] = protocol
    if start["test_start"].get("reverse") == 1:
        attributes["reverse"] = 1
    sent = report["end"].get("sum_sent")
    # A server's report has zeros where it does not know what was sent.
    knows_sent = "accepted_connection" not in start or start["test_start"].get("reverse") == 1
    if isinstance(sent, dict) and knows_sent:
        attributes["sent_mb_s"] = (
            _number(section, report, "end", "sum_sent", "bits_per_second") / _BITS_PER_MB
        )
        if isinstance(sent.get("retransmits"), int):
            attributes["retransmits"] = sent["retransmits"]
    version = start.get("version")
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    return _table(
        section,
        line=section.first,
        version=match[1] if match else None,
        streams=streams,
        rate=rate / _BITS_PER_MB,
        attributes=attributes,
        lost_share=lost_share,
    )


def _check_streams(section: TextSection, end: Mapping[str, Any], asked: int) -> None:
    """Refuse the report of two directions, and one in which a stream that was asked for is not.

    Each stream has its object in ``end.streams``, of TCP and UDP, whatever it moved.
    """
    if any(name.endswith(_WAY_BACK) for name in end):
        raise section.error(0, "two directions at once", expected="one direction")
    seen = end.get("streams")
    if isinstance(seen, list) and len(seen) != asked:
        raise section.error(
            0, "a stream is missing", expected=f"{asked} in end.streams", got=str(len(seen))
        )


def _lost(section: TextSection, report: Mapping[str, Any]) -> tuple[float | None, Attributes]:
    """Return the fraction of UDP's datagrams that was lost, and what the table says of it."""
    end = report["end"]
    counts = end.get("sum_received", end.get("sum"))
    if not isinstance(counts, dict) or "lost_packets" not in counts:
        return None, {}
    side = "sum_received" if "sum_received" in end else "sum"
    lost, sent = (int(_number(section, report, "end", side, f"{word}packets")) for word in _COUNTS)
    return loss(section, 0, lost, sent)


def _segments(report: Mapping[str, Any]) -> Attributes:
    """Return the segment size at the start, and the path's MTU as the kernel knew it at the end.

    Both are the sender's (TCP_MAXSEG and tcp_info's pmtu); older versions and UDP have neither.
    """
    found: Attributes = {}
    if isinstance(mss := report["start"].get("tcp_mss_default"), int) and mss > 0:
        found["mss_bytes"] = mss
    try:
        path = [stream["pmtu"] for stream in report["intervals"][-1]["streams"]]
    except (KeyError, IndexError, TypeError):
        return found
    if path and all(isinstance(mtu, int) and mtu > 0 for mtu in path):
        found["path_mtu_bytes"] = min(path)
    return found


def _ends(start: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the addresses of both ends of each connection, as far as the report names them."""
    opened = start.get("connected")
    return [
        (str(each["local_host"]), str(each["remote_host"]))
        for each in (opened if isinstance(opened, list) else ())
        if isinstance(each, dict) and {"local_host", "remote_host"} <= each.keys()
    ]


def _number(
    section: TextSection, report: Mapping[str, Any], *path: str, other: str | None = None
) -> float:
    """Return the number at ``path``; ``other`` replaces the second step where that is absent."""
    value: Any = report
    for depth, step in enumerate(path):
        name = step
        # Old versions report UDP in "sum" alone; beside "sum_sent" it is the sender's figure.
        if depth == 1 and other and isinstance(value, dict) and value.keys().isdisjoint(_SIDES):
            name = other
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_sane(value):
        raise _missing(section, path)
    return value


def _is_sane(value: float) -> bool:
    return abs(value) < 1e18 and math.isfinite(value) and value >= 0


def _missing(section: TextSection, path: Sequence[str]) -> ParseError:
    return section.error(
        0, "not a whole report", expected=f"a number at {'.'.join(path)}", got="none"
    )


def _table(
    section: TextSection,
    *,
    line: int,
    version: str | None,
    streams: int | None,
    rate: float,
    attributes: Attributes,
    lost_share: float | None,
) -> Table:
    columns: tuple[str, ...] = ("bandwidth_mb_s",)
    row: tuple[float, ...] = (rate,)
    if lost_share is not None:
        columns, row = (*columns, "loss_percent"), (rate, 100 * lost_share)
    if streams is not None:
        columns, row = ("num_streams", *columns), (streams, *row)
        attributes["streams"] = streams
        threads = _threads(version, streams)
        if threads is not None:
            attributes["threads"] = threads
    return Table(
        suite="iperf3",
        program="iperf3",
        version=version,
        columns=columns,
        rows=(row,),
        source=section.source,
        line=line,
        row_lines=(line,),
        attributes=attributes,
    )


def _threads(version: str | None, streams: int) -> int | None:
    """Return how many threads moved the data, None where the version is unknown."""
    if streams == 1:
        return 1
    if version is None:
        return None
    return streams if int(version.rstrip("+").split(".")[1]) >= 16 else 1
