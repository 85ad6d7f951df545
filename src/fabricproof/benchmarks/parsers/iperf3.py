"""Read what iperf3 prints, as text, with ``--json`` or with ``--json-stream``.

Members of the report by ``iperf_print_results`` and ``iperf_on_test_start`` in src/iperf_api.c of
3.0.11 to 3.21 (esnet/iperf, commit c9b7422, July 2026).

The result is what the receiver counted: the sender's figure includes bytes that were still in
buffers, and of UDP what was lost.  The server of a test prints it too, and nothing else once its
client has gone.  iperf3 up to 3.1 prints no line of the receiver of UDP: its text is refused.

All streams of iperf3 before 3.16 share one thread; since 3.16 each has its own (release
notes of 3.16), and with it the meaning of ``-P`` changed.

Retransmissions are counted in segments of the sender's TCP (``tcpi_total_retrans``).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fabricproof.benchmarks.parsers.iperf import (
    Interval,
    asked_streams,
    loss_of,
    one_row,
    own_address,
    read_lines,
)
from fabricproof.benchmarks.parsers.report import is_report, read_report
from fabricproof.benchmarks.parsers.sections import Attributes, TextSection, first_death
from fabricproof.core.measure import Table

_VERSION = re.compile(r"[ \t]*iperf (3\.[0-9]{1,3}(?:\.[0-9]{1,3})?\+?)[ \t]*")
_VERBOSE = re.compile(r"Starting Test: protocol: (\w+), ([0-9]{1,5}) streams")
_MSS = re.compile(r"[ \t]+TCP MSS: ([1-9][0-9]{1,5})\b")
#: how a server that waits begins, after ``-V`` with its version and the machine
_WAITS = re.compile(rf"[ \t]*Server listening on (?:port )?\d|{_VERSION.pattern}$")
_ACCEPTED = "Accepted connection from "
_CONNECTING = "Connecting to host "
#: what shows that a test began, or could not
_BEGUN = (_CONNECTING, _ACCEPTED, "Starting Test:", "iperf3: ")
#: how a server that waits is ended
_STOPPED = "iperf3: interrupt - the server"
#: how a line of ``--json-stream`` begins (JSONStream_Output in src/iperf_api.c, since 3.17)
_EVENT = '{"event":'
_RETRANSMITS = re.compile(r"[ \t]+([0-9]{1,15})[ \t]+sender[ \t]*")
#: how the sums of the way back end of ``--bidir``
_WAY_BACK = "_bidir_reverse"
#: 8 bits per byte, 10^6 bytes per MB.
_BITS_PER_MB = 8e6
#: The intervals of a run add up to its sum within this: the last may be missing.
_PARTS_SLACK = 0.1


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the one table, of one row, of a run of iperf3; none where a server only waited.

    Raises:
        ParseError: the receiver's summary or a stream is missing, a line is damaged, the JSON is
            broken, the intervals are not those of the sum, or the test failed.
    """
    if not is_report(section):
        return _of_text(section)
    if any(line.startswith(_EVENT) for line in section.lines):
        section = replace(section, lines=[json.dumps(_events(section))])
    return read_report(section, lambda report: (_of_report(section, report),))


def _of_text(section: TextSection) -> tuple[Table, ...]:
    lines, opened = read_lines(section, ignored=_STOPPED)
    words = [line.lstrip() for line in section.lines]
    begun = [word for word in words if word.startswith(_BEGUN) and not word.startswith(_STOPPED)]
    if not lines and not begun and _WAITS.match(words[0]):
        return ()
    result, sent = _result(section, lines, words)
    version, verbose, mss = (
        next(filter(None, map(pattern.match, section.lines)), None)
        for pattern in (_VERSION, _VERBOSE, _MSS)
    )
    streams = len({line.stream for line in lines} - {"SUM"})
    asked = int(verbose[2]) if verbose else asked_streams(section)
    if asked is not None and streams not in {0, asked}:
        raise section.error(result.index, "a stream is missing", expected=f"{asked} streams")
    attributes: Attributes = {
        "duration_s": result.end_s,
        "moved_bytes": result.moved_bytes,
        "bandwidth_rounding_mb_s": result.rounding_mb_s,
        **own_address((each.own, each.other) for each in opened),
    }
    if verbose:
        attributes["protocol"] = verbose[1]
    if mss:
        attributes["mss_bytes"] = int(mss[1])
    # A server prints 0 for what was sent: it does not know.
    if sent is not None and sent.rate_mb_s:
        attributes["sent_mb_s"] = sent.rate_mb_s
    if retransmits := _RETRANSMITS.fullmatch(sent.rest if sent else ""):
        attributes["retransmits"] = int(retransmits[1])
    table = one_row(
        "iperf3",
        section,
        result.index,
        rate_mb_s=result.rate_mb_s,
        streams=asked or streams,
        threads=_threads(version, asked or streams),
        datagrams=result.datagrams,
        attributes=attributes,
        version=version[1] if version else None,
    )
    return (table,)


def _result(
    section: TextSection, lines: list[Interval], words: list[str]
) -> tuple[Interval, Interval | None]:
    """Return the summary of all streams as the receiver counted, and as the sender did."""
    accepted = [index for index, word in enumerate(words) if word.startswith(_ACCEPTED)]
    is_client = any(word.startswith(_CONNECTING) for word in words)
    if is_client and accepted:
        raise section.error(accepted[0], "both ends in one text", expected="the text of one end")
    received = {line.stream: line for line in lines if line.rest.rstrip().endswith("receiver")}
    sent = {line.stream: line for line in lines if line.rest.rstrip().endswith("sender")}
    if not received:
        raise section.error(0, "no result", expected="a summary line of the receiver")
    streams = {line.stream for line in lines} - {"SUM"}
    result = received.get("SUM") or next(iter(received.values()))
    if received.keys() != streams | ({"SUM"} if len(streams) != 1 else set()):
        what = "the receiver's, of all streams"
        raise section.error(result.index, "a line is missing", expected=what)
    if is_client and "iperf Done." not in words:
        raise section.error(len(words) - 1, "the output is cut", expected="'iperf Done.' below")
    is_udp = any(line.datagrams or "Total Datagrams" in words[line.index - 1] for line in lines)
    if is_udp and not result.datagrams:
        raise section.error(result.index, "damaged row", expected="lost and sent datagrams")
    total_sent = sent.get(result.stream)
    summary = {line.index for line in (*received.values(), *sent.values())}
    same = [line for line in lines if line.stream == result.stream and line.index not in summary]
    parts = [line for line in same if "omitted" not in line.rest]
    if parts and sum(line.end_s - line.start_s for line in parts) > 0.95 * result.end_s:
        wholes = [line.moved_bytes for line in (result, total_sent) if line]
        _check_parts(section, result.index, [line.moved_bytes for line in parts], wholes)
    return result, total_sent


def _events(section: TextSection) -> dict[str, Any]:
    """Return the events of one run, a start, intervals and an end, as a report holds them."""
    report: dict[str, Any] = {"intervals": []}
    for index, line in enumerate(section.lines):
        if not line.startswith(_EVENT):
            if first_death([line]) is not None:
                raise section.error(index, "the job ended badly", expected="a run that ended well")
            continue
        try:
            event = json.loads(line)
            name, data = event["event"], event["data"]
        except (ValueError, LookupError, RecursionError):
            raise section.error(index, "broken JSON", expected="a whole event") from None
        if name == "interval":
            report["intervals"].append(data)
        elif name in report:
            raise section.error(index, "a second event of its kind", expected="one run")
        else:
            report[name] = data
    if "error" not in report and not {"start", "end"} <= report.keys():
        last = len(section.lines) - 1
        raise section.error(last, "the output is cut", expected="the events 'start' and 'end'")
    return report


def _of_report(section: TextSection, report: Mapping[str, Any]) -> Table:
    if "error" in report:
        what = "a test that ended well"
        raise section.error(0, "the test failed", expected=what, got=repr(report["error"]))
    start, end = report["start"], report["end"]
    asked = start["test_start"]
    streams = int(_real(asked["num_streams"]))
    ways = ["", _WAY_BACK] if f"sum_received{_WAY_BACK}" in end else [""]
    is_server, is_reverse = "accepted_connection" in start, asked.get("reverse") == 1
    if is_server and len(ways) > 1:
        what = "the client's report, which has what arrived at both ends"
        raise section.error(0, "the server of two directions", expected=what)
    if "streams" in end and len(end["streams"]) != streams * len(ways):
        raise section.error(0, "a stream is missing", expected=f"{streams} in end.streams")
    # Up to 3.1 the one sum of UDP is the sender's.
    is_old = end.keys().isdisjoint({"sum_sent", "sum_received"})
    got = [end["sum" if is_old else f"sum_received{way}"] for way in ways]
    # A server's report has zeros where it does not know what was sent.
    knows_sent = not is_server or is_reverse
    sent = [end[f"sum_sent{way}"] for way in ways if knows_sent and f"sum_sent{way}" in end]
    _check_intervals(section, report)
    datagrams = None
    if "lost_packets" in got[0]:
        datagrams = int(_sum(got, "lost_packets")), int(_sum(got, "packets"))
    share = 1 - loss_of(section, 0, datagrams) if is_old and datagrams else 1.0
    attributes: Attributes = {
        "duration_s": max(_real(each["seconds"]) for each in got),
        "moved_bytes": int(_sum(got, "bytes") * share),
        **own_address(
            (str(each["local_host"]), str(each["remote_host"]))
            for each in start.get("connected", [])
        ),
        **_segments(report),
    }
    if isinstance(protocol := asked.get("protocol"), str):
        attributes["protocol"] = protocol
    if sent or share < 1:
        attributes["sent_mb_s"] = _sum(sent or got, "bits_per_second") / _BITS_PER_MB
    # -1 where the sender's system does not count them
    if sent and all(each.get("retransmits", -1) >= 0 for each in sent):
        attributes["retransmits"] = int(_sum(sent, "retransmits"))
    # -b limits each stream by itself
    if target := _real(asked.get("target_bitrate", 0)):
        attributes["target_mb_s"] = target * streams * len(ways) / _BITS_PER_MB
    attributes |= ({"both_ways": 1} if len(ways) > 1 else {}) | (
        {"reverse": 1} if is_reverse else {}
    )
    version = _VERSION.fullmatch(str(start.get("version")))
    return one_row(
        "iperf3",
        section,
        0,
        rate_mb_s=_sum(got, "bits_per_second") * share / _BITS_PER_MB,
        streams=streams,
        threads=_threads(version, streams),
        datagrams=datagrams,
        attributes=attributes,
        version=version[1] if version else None,
    )


def _real(value: Any) -> float:
    """Return a number of a report.

    Raises:
        ValueError: it is none, or not one that iperf3 could mean.
    """
    if isinstance(value, bool) or not 0 <= value < 1e18 or not math.isfinite(value):
        raise ValueError(value)
    return float(value)


def _sum(sums: Iterable[Mapping[str, Any]], name: str) -> float:
    return sum(_real(each[name]) for each in sums)


def _check_parts(
    section: TextSection, index: int, parts: Iterable[float], wholes: Iterable[float]
) -> None:
    """Check the bytes of all intervals against those that were sent, or that arrived."""
    moved = sum(parts)
    if all(abs(moved - whole) > _PARTS_SLACK * max(moved, whole) + 1 for whole in wholes):
        what = f"{moved:.6g} B"
        raise section.error(index, "the intervals are not those of the sum", expected=what)


def _check_intervals(section: TextSection, report: Mapping[str, Any]) -> None:
    sums = [each["sum"] for each in report.get("intervals", []) if "sum" in each]
    if parts := [_real(each["bytes"]) for each in sums if not each.get("omitted")]:
        wholes = (each["bytes"] for name, each in report["end"].items() if name.startswith("sum"))
        _check_parts(section, 0, parts, map(_real, wholes))


def _segments(report: Mapping[str, Any]) -> Attributes:
    """Return the segment size at the start, and the path's MTU as the kernel knew it at the end.

    Both are the sender's (TCP_MAXSEG and tcp_info's pmtu); older versions and UDP have neither.
    """
    start, last = report["start"], report.get("intervals", [])[-1:]
    mss = _real(start.get("tcp_mss", start.get("tcp_mss_default", 0)))
    path = [_real(stream.get("pmtu", 0)) for each in last for stream in each.get("streams", [])]
    found = {"mss_bytes": int(mss), "path_mtu_bytes": int(min(path, default=0))}
    return {name: size for name, size in found.items() if size}


def _threads(version: re.Match[str] | None, streams: int) -> int:
    """Return how many threads moved the data; 0 if unknown."""
    if version is None:
        return streams if streams == 1 else 0
    return streams if int(version[1].rstrip("+").split(".")[1]) >= 16 else min(streams, 1)
