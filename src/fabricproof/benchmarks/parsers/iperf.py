"""Read the text that iperf 2 prints (client or server side).

The result is the last interval line from 0 on: the ``[SUM]`` line where there are several
streams, else the only stream's.  iperf 2 serves each stream by a thread of its own.

The clock of the sum stops before the last stream has ended (iperf 2.1.8: 2.16 s beside streams of
2.32 s, which made 199 Mb/s on a wire that carries 188), so where the streams show, the sum's bytes
are divided by the time of the longest.

Of UDP only the receiver knows what arrived: its line has lost and sent datagrams, in the server's
own text and below ``Server Report:`` in the client's.  A client's other lines, its ``[SUM]`` among
them, tell what was sent, and are no result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fabricproof.benchmarks.parsers.grammar.iperf import (
    Interval,
    asked_streams,
    ends_of,
    loss,
    own_address,
    read_intervals,
)
from fabricproof.benchmarks.parsers.sections import TextSection
from fabricproof.core.measure import Table

#: a sum may differ from its streams by so much: each is printed with three digits
_SUM_SLACK = 0.03

_CONNECTED = re.compile(
    r"[ \t]*\[ *\*?(\d{1,6})\] local (\S{1,80} port (\d{1,5})) connected with "
    r"(\S{1,80} port \d{1,5})\b"
)
_LISTENING = re.compile(r"[ \t]*Server listening on (?:TCP|UDP) port (\d{1,5})(?:[ \t].*|)")
#: how the two above begin
_BEGUN = re.compile(r"[ \t]*(?:\[ *\*?\d{1,6}\] local |Server listening on )")
_IS_UDP = re.compile(
    r"(?:Client connecting to|Server listening on) .{0,200}\bUDP|\] Sent \d+ datagr"
)

#: a stream's number, and whether it is the opposite direction of its connection
_Name = tuple[str, bool]


@dataclass(frozen=True, kw_only=True)
class _Connection:
    """One connection as its own line tells of it."""

    stream: str
    index: int
    inbound: bool
    ends: tuple[str, str]


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the one table, of one row, of a run of iperf 2; none where a server only waited.

    Raises:
        ParseError: there is no final line, the sum of several streams is missing, a stream is
            missing, a line is damaged, several tests stand in one server's text, UDP without its
            receiver's line, or the test failed.
    """
    intervals = read_intervals(section)
    opened = _connections(section)
    if not intervals and not opened and _LISTENING.match(section.lines[0]):
        return ()
    whole = [interval for interval in intervals if interval.start == 0]
    if not whole:
        raise section.error(0, "no result", expected="an interval line from 0 on")
    if intervals[-1].start > 0:
        raise section.error(
            intervals[-1].index, "the output is cut", expected="a line from 0 on after this one"
        )
    is_udp = any(line.datagrams is not None for line in intervals)
    is_udp = is_udp or any(_IS_UDP.search(line[:400]) for line in section.lines)
    final = _received(section, whole) if is_udp else _last(whole)
    _check_one_test(section, opened, final)
    both_ways = _is_both_ways(section, opened, final, min(line.index for line in whole))
    ways = 2 if both_ways else 1
    result = _result(section, final, ways=ways, adds_up=is_udp or both_ways)
    seen = sum(name != "SUM" for name, _ in final) // ways
    streams = asked_streams(section) or seen or None
    return (_table(section, result, streams, both_ways=both_ways),)


def _connections(section: TextSection) -> list[_Connection]:
    """Return every connection.

    Raises:
        ParseError: a line that tells of one, or of the port that is listened on, is damaged.
    """
    listening: set[str] = set()
    found: list[tuple[int, re.Match[str]]] = []
    for index, line in enumerate(section.lines):
        if not _BEGUN.match(line):
            continue
        if port := _LISTENING.fullmatch(line[:400]):
            listening.add(port[1])
        elif match := _CONNECTED.match(line[:400]):
            found.append((index, match))
        else:
            raise section.error(index, "damaged row", expected="both ends of a connection")
    return [
        _Connection(
            stream=match[1],
            index=index,
            inbound=match[3] in listening,
            ends=(match[2], match[4]),
        )
        for index, match in found
    ]


def _last(whole: Sequence[Interval]) -> dict[_Name, Interval]:
    """Return the last line of each stream, of those that ended with the run."""
    end = max(interval.end for interval in whole)
    # Streams of one run end within a second of each other; an interval report ends earlier.
    return {
        (line.stream, line.starred): line
        for line in whole
        if line.end > end - 1 or line.end > 0.9 * end
    }


def _received(section: TextSection, whole: Sequence[Interval]) -> dict[_Name, Interval]:
    """Return the receiver's last line of each stream of UDP."""
    found = {(line.stream, line.starred): line for line in whole if line.datagrams is not None}
    for line in whole:
        known = (line.stream, line.starred) in found
        if not known and not (line.stream == "SUM" and found):
            raise section.error(
                line.index,
                "what arrived is not shown",
                expected="a line with lost and sent datagrams of each stream (Server Report)",
            )
    return found


def _check_one_test(
    section: TextSection, opened: Sequence[_Connection], final: dict[_Name, Interval]
) -> None:
    """Refuse the text of several tests, or of both ends: which number is meant, nobody knows."""
    shown = {name for name, _ in final}
    streams: set[str] = set()
    ends: set[tuple[str, str]] = set()
    for each in opened:
        if each.stream in streams or (shown != {"SUM"} and each.stream not in shown):
            raise section.error(
                each.index, "several tests in one text", expected="the text of one test"
            )
        if each.ends[::-1] in ends:
            raise section.error(each.index, "both ends in one text", expected="the text of one end")
        streams.add(each.stream)
        ends.add(each.ends)


def _is_both_ways(
    section: TextSection, opened: Sequence[_Connection], final: dict[_Name, Interval], first: int
) -> bool:
    """Tell whether traffic flowed both ways at once: ``--dualtest`` and ``--full-duplex``.

    Raises:
        ParseError: one way after the other (``--tradeoff``), or unlike numbers of streams.
    """
    inbound = {each.stream: each.inbound for each in opened}
    twins = {stream for stream, starred in final if starred and (stream, False) in final}
    ways = [
        inbound.get(stream, False) != (starred and stream in twins)
        for stream, starred in final
        if stream in inbound or stream in twins
    ]
    unknown = {name for name in final if name[0] not in {"SUM", *inbound, *twins}}
    if unknown and len({starred for stream, starred in final if stream != "SUM"}) > 1:
        raise section.error(first, "which way is which is not shown", expected="the whole text")
    duplex = next((each for each in opened if "(full-duplex)" in section.lines[each.index]), None)
    if len(set(ways)) < 2:
        if duplex is not None and ways:
            raise section.error(duplex.index, "a direction is missing", expected="both")
        return duplex is not None
    if later := [each.index for each in opened if each.index > first]:
        raise section.error(
            later[0], "one direction after the other", expected="one direction, or both at once"
        )
    if ways.count(True) != ways.count(False):
        raise section.error(first, "a stream is missing", expected="as many either way")
    return True


def _result(
    section: TextSection, final: dict[_Name, Interval], *, ways: int, adds_up: bool
) -> Interval:
    """Return the result, over the time of the longest stream."""
    streams = [line for (name, _), line in final.items() if name != "SUM"]
    asked = asked_streams(section)
    last = max(line.index for line in final.values())
    if asked is not None and streams and len(streams) != asked * ways:
        raise section.error(last, "a stream is missing", expected=f"{asked} streams")
    total = final.get(("SUM", False))
    if total is None and not adds_up and (len(streams) != 1 or (asked or 1) != 1):
        raise section.error(last, "the sum is missing", expected="a [SUM] line of all streams")
    if total is None or (adds_up and streams):
        total = _added(streams)
    moved = sum(line.moved_bytes for line in streams)
    if streams and abs(total.moved_bytes - moved) > _SUM_SLACK * max(moved, total.moved_bytes):
        raise section.error(
            total.index, "the sum is not that of its streams", expected=f"{moved} B"
        )
    lasted = max(line.end for line in (total, *streams))
    if lasted <= 0:
        raise section.error(total.index, "no time passed", expected="an interval above 0 s")
    return replace(total, rate_mb_s=total.rate_mb_s * total.end / lasted, end=lasted)


def _added(streams: Sequence[Interval]) -> Interval:
    """Return the streams as one, over the time of the longest."""
    if len(streams) == 1:
        return streams[0]
    end = max(line.end for line in streams)
    known = [line for line in streams if line.datagrams is not None]
    return replace(
        streams[-1],
        end=end,
        rate_mb_s=sum(line.rate_mb_s * line.end for line in streams) / end if end else 0.0,
        rounding_mb_s=sum(line.rounding_mb_s for line in streams),
        moved_bytes=sum(line.moved_bytes for line in streams),
        lost=sum(line.lost or 0 for line in known) if known else None,
        datagrams=sum(line.datagrams or 0 for line in known) if known else None,
    )


def _table(
    section: TextSection, result: Interval, streams: int | None, *, both_ways: bool
) -> Table:
    values: dict[str, float] = {"bandwidth_mb_s": result.rate_mb_s}
    attributes: dict[str, str | int | float] = {
        "duration_s": result.end,
        "moved_bytes": result.moved_bytes,
        "bandwidth_rounding_mb_s": result.rounding_mb_s,
        **own_address(ends_of(section)),
    }
    if result.datagrams is not None:
        share, facts = loss(section, result.index, result.lost or 0, result.datagrams)
        attributes |= facts
        values["loss_percent"] = 100 * share
    if streams is not None:
        values = {"num_streams": streams, **values}
        attributes |= {"streams": streams, "threads": streams}
    if both_ways:
        attributes["both_ways"] = 1
    line = section.first + result.index
    return Table(
        suite="iperf",
        program="iperf",
        version=None,
        columns=tuple(values),
        rows=(tuple(values.values()),),
        source=section.source,
        line=line,
        row_lines=(line,),
        attributes=attributes,
    )
