"""Read the text that iperf 2 prints (client or server side), and the lines that iperf3 shares.

The result is the last interval line from 0 on: the ``[SUM]`` line where there are several streams,
else the only stream's.  iperf 2 serves each stream by a thread of its own.

The clock of the sum stops before the last stream has ended (iperf 2.1.8: 2.16 s beside streams of
2.32 s, which made 199 Mb/s on a wire that carries 188), so where the streams show, the sum's bytes
are divided by the time of the longest.

Of UDP only the receiver knows what arrived: its line has lost and sent datagrams, in the server's
own text and below ``Server Report:`` in the client's.  A client's other lines, its ``[SUM]`` among
them, tell what was sent, and are no result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fabricproof.benchmarks.parsers.grammar.chatter import death
from fabricproof.benchmarks.parsers.grammar.text import TextSection
from fabricproof.core.measure import Table
from fabricproof.core.units import convert

#: iperf 2: src/ReportOutputs.c and Locale.c; iperf3: src/iperf_locale.c (report_sum_bw_format and
#: its kin).  iperf3 pads "sec" with three blanks, iperf 2 with one.
_INTERVAL = re.compile(
    r"[ \t]*\[ *(?P<star>\*?)(?P<id>SUM(?:-\d+)?|\d{1,6})\](?P<way>\[[TR]X-[CS]\])?[ \t]+"
    r"(?P<start>[0-9]{1,9}\.[0-9]+) ?- *(?P<end>[0-9]{1,9}\.[0-9]+)[ \t]+sec[ \t]+"
    r"(?P<moved>[0-9]{1,12}(?:\.[0-9]{1,3})?) (?P<prefix>[KMGT]?)Bytes[ \t]+"
    r"(?P<rate>[0-9]{1,9}(?:\.[0-9]+)?) (?P<unit>[KMGT]?)(?P<of>bits|Bytes)/sec(?P<rest>.*)"
)
_CONNECTED = re.compile(
    r"[ \t]*\[ *\*?(?P<id>\d{1,6})\] local (?P<own>[^\s%]{1,80})\S{0,20} port (?P<own_port>\d{1,5})"
    r" connected (?:to|with) (?P<other>[^\s%]{1,80})\S{0,20} port (?P<other_port>\d{1,5})\b"
    r"(?P<full_duplex>.*\(full-duplex\))?.*"
)
#: what else begins with the number of a stream; iperf 2 tells of datagrams out of order below the
#: line of a stream of UDP
_OTHER = re.compile(
    r"[ \t]*\[ *(?:ID\]|(?:SUM(?:-\d+)?|\*?\d+)\][ \t]+(?:Sent |Server Report|WARNING|Host "
    r"|Role|\((?:sender|receiver) statistics not available\)"
    r"|[0-9.]{1,15} ?- *[0-9.]{1,15}[ \t]+sec[ \t]+[0-9]{1,15} +datagrams? received out-of-order))"
)
#: the number of a stream, or an interval line that something else was printed into or before
_HIDDEN = re.compile(
    r"[ \t]*\[ *(?:SUM(?:-\d+)?|\*?\d{1,6}|ID)\]|.*(?:[0-9]\.[0-9]+ ?- *[0-9]+\.[0-9]"
    r"|[KMGT]?(?:bits|Bytes)/sec)"
)
_LISTENING = re.compile(r"[ \t]*Server listening on (?:TCP|UDP) port (\d{1,5})(?:[ \t].*|)")
#: what the receiver of UDP knows: ``35148/62949 (56%)``, lost of sent; iperf 2 pads both numbers.
#: Lost is negative where datagrams came twice.
_DATAGRAMS = re.compile(
    r"[ \t]+(?:[0-9.]{1,20} ms[ \t]+)?(-?[0-9]{1,15})/ *([0-9]{1,15})[ \t]+\([-+0-9.ena]{1,20}%\)"
)
_COMMAND = re.compile(r"\biperf3? [^\n#]*(?:-P|--parallel) *([0-9]{1,5})\b")
_IS_UDP = re.compile(
    r"(?:Client connecting to|Server listening on) .{0,200}\bUDP|\] Sent \d+ datagr"
)
_FAILED = re.compile(
    r"iperf3?: (?:error|interrupt)|(?:connect|write|read) failed|[Cc]onnection refused"
    r"|WARNING: did not receive ack"
)
#: prefixes of bytes are powers of 1024 (iperf 2 and 3: unit_snprintf in src/stdio.c and units.c)
_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
#: iperf's decimal prefixes (1 Kbit is 1000 bits for rates) -> our unit.
_UNITS = {"": "bit/s", "K": "kb/s", "M": "Mb/s", "G": "Gb/s", "T": "Tb/s"}
#: no line of the tools is longer
_LONGEST = 2000
#: a sum may differ from its streams by so much: each is printed with three digits
_SUM_SLACK = 0.03

Attributes = dict[str, str | int | float]
#: a stream's number, and whether it is the opposite direction of its connection
_Name = tuple[str, bool]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """One interval line.

    Attributes:
        stream: ``SUM`` or the stream's number as text.
        starred: iperf 2 marks the opposite direction of a connection with ``*``.
        start: begin of the interval in s.
        end: its end in s.
        rate_mb_s: payload in MB/s (10^6 bytes per second), with iperf's three digits.
        rounding_mb_s: half of the last of them, in MB/s.
        moved_bytes: payload, at least: half of the last printed digit is taken off.
        lost: datagrams that did not arrive, as its receiver counted; None where it does not say.
        datagrams: datagrams that were sent, None likewise.
        rest: what stands after the rate.
        index: index of the line in its section.
    """

    stream: str
    starred: bool
    start: float
    end: float
    rate_mb_s: float
    rounding_mb_s: float
    moved_bytes: int
    lost: int | None
    datagrams: int | None
    rest: str
    index: int


def read_lines(
    section: TextSection, *, ignored: str = "$"
) -> tuple[list[Interval], list[tuple[int, re.Match[str]]]]:
    """Return every interval line of the section, and every connection with its index.

    A line that begins with a command or with ``ignored`` is no error.

    Raises:
        ParseError: a line begins as one and is damaged, the test ran in both directions at once,
            the tool reports an error, or the text says that the job died.
    """
    found: list[Interval] = []
    opened: list[tuple[int, re.Match[str]]] = []
    for index, line in enumerate(section.lines):
        head = line[:_LONGEST]
        if (match := _INTERVAL.fullmatch(head)) is not None:
            if match["way"]:
                raise section.error(index, "two directions at once", expected="one direction")
            found.append(_interval(match, index))
        elif (connection := _CONNECTED.match(head)) is not None:
            opened.append((index, connection))
        elif _HIDDEN.match(head) and not _OTHER.match(head):
            raise section.error(
                index, "damaged row", expected="interval, transfer, rate with their units"
            )
        elif not head.lstrip().startswith(("$", ignored)) and (death(head) or _FAILED.search(head)):
            raise section.error(index, "the test failed", expected="a test that ended well")
    return found, opened


def _interval(match: re.Match[str], index: int) -> Interval:
    datagrams = _DATAGRAMS.match(match["rest"])
    moved, prefix = match["moved"], match["prefix"]
    least = max(0.0, float(moved) - _half_digit(moved)) if prefix else float(moved)
    return Interval(
        stream="SUM" if match["id"].startswith("SUM") else match["id"],
        starred=bool(match["star"]),
        start=float(match["start"]),
        end=float(match["end"]),
        rate_mb_s=_megabytes(match, float(match["rate"])),
        rounding_mb_s=_megabytes(match, _half_digit(match["rate"])),
        moved_bytes=int(least * _BYTES[prefix]),
        lost=max(0, int(datagrams[1])) if datagrams else None,
        datagrams=int(datagrams[2]) if datagrams else None,
        rest=match["rest"],
        index=index,
    )


def _megabytes(match: re.Match[str], rate: float) -> float:
    """Return a rate in the unit of its line in MB/s; ``-f K`` to ``-f T`` print bytes."""
    if match["of"] == "Bytes":
        return rate * _BYTES[match["unit"]] / 1e6
    return convert(rate, _UNITS[match["unit"]], "MB/s")


def _half_digit(printed: str) -> float:
    """Return half a unit in the last place of a printed number."""
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


def asked_streams(section: TextSection) -> int | None:
    """Return the number of streams after ``-P`` on a command line in the text, or None."""
    matches = (_COMMAND.search(line[:_LONGEST]) for line in section.lines)
    return next((int(match[1]) for match in matches if match), None)


def own_address(ends: Iterable[tuple[str, str]]) -> Attributes:
    """Return the address that both ends of a connection have: what it moved never left the node."""
    loops = ("127.", "::1")
    found = [
        own
        for own, other in ends
        if own == other or (own.startswith(loops) and other.startswith(loops))
    ]
    return {"own_address": found[0]} if found else {}


def loss(section: TextSection, index: int, lost: int, datagrams: int) -> tuple[float, Attributes]:
    """Return the fraction of the datagrams that was lost, and what the table says of it.

    Raises:
        ParseError: more were lost than sent, or none was sent.
    """
    if not 0 <= lost <= datagrams or not datagrams:
        raise section.error(index, "damaged row", expected="lost datagrams of those sent")
    return lost / datagrams, {"protocol": "UDP", "datagrams": datagrams, "lost_datagrams": lost}


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the one table, of one row, of a run of iperf 2; none where a server only waited.

    Raises:
        ParseError: there is no final line, the sum of several streams or a stream is missing, a
            line is damaged, several tests stand in one server's text, UDP without its receiver's
            line, or the test failed.
    """
    lines, opened = read_lines(section)
    if not lines and not opened and _LISTENING.match(section.lines[0]):
        return ()
    whole = [line for line in lines if line.start == 0]
    if not whole:
        raise section.error(0, "no result", expected="an interval line from 0 on")
    if lines[-1].start > 0:
        raise section.error(lines[-1].index, "the output is cut", expected="a line from 0 on below")
    is_udp = any(line.datagrams is not None for line in lines)
    is_udp = is_udp or any(_IS_UDP.search(line[:400]) for line in section.lines)
    kept = [line for line in whole if not is_udp or line.datagrams is not None]
    final = {(line.stream, line.starred): line for line in kept}
    silent = {(line.stream, line.starred) for line in whole} - final.keys()
    if not final or silent - {("SUM", False)}:
        what = "a line with lost and sent datagrams of each stream (Server Report)"
        raise section.error(whole[-1].index, "what arrived is not shown", expected=what)
    _check_one_test(section, opened, {name for name, _ in final}, whole[0].index)
    ends = [line.end for line in final.values()]
    if min(ends) < 0.9 * max(ends) and min(ends) < max(ends) - 1:
        what = "a last line of each stream"
        raise section.error(whole[-1].index, "the streams did not end together", expected=what)
    both_ways = _is_both_ways(section, opened, final, whole[0].index)
    return (_table(section, opened, final, both_ways=both_ways, is_udp=is_udp),)


def _check_one_test(
    section: TextSection,
    opened: Sequence[tuple[int, re.Match[str]]],
    shown: set[str],
    first: int,
) -> None:
    """Refuse the text of several tests, or of both ends: which number is meant, nobody knows.

    ``--tradeoff`` is two tests, one direction after the other.  ``first`` is the index of the first
    result.
    """
    ends: set[tuple[str, ...]] = set()
    for index, match in opened:
        own, other = match.group("own", "own_port"), match.group("other", "other_port")
        if (*other, *own) in ends:
            raise section.error(index, "both ends in one text", expected="the text of one end")
        ends.add((*own, *other))
    streams = [match["id"] for _, match in opened]
    late = next((index for index, _ in opened if index > first), None)
    if late is not None or len({*streams}) < len(streams):
        what = "the text of one test"
        raise section.error(late or first, "several tests in one text", expected=what)
    if shown != {"SUM"} and not shown >= {*streams}:
        raise section.error(first, "a stream is missing", expected="a result of each connection")


def _is_both_ways(
    section: TextSection,
    opened: Sequence[tuple[int, re.Match[str]]],
    final: Mapping[_Name, Interval],
    first: int,
) -> bool:
    """Tell whether traffic flowed both ways at once: ``--dualtest`` and ``--full-duplex``.

    Raises:
        ParseError: unlike numbers of streams, or which way they flowed is not shown.
    """
    listening = {port[1] for line in section.lines if (port := _LISTENING.fullmatch(line[:400]))}
    inbound = {match["id"]: match["own_port"] in listening for _, match in opened}
    twins = {stream for stream, starred in final if starred and (stream, False) in final}
    streams = [name for name in final if name[0] != "SUM"]
    known = [name for name in streams if name[0] in inbound or name[0] in twins]
    if len(known) < len(streams) and len({starred for _, starred in streams}) > 1:
        raise section.error(first, "which way is which is not shown", expected="the whole text")
    ways = [inbound.get(name, False) != (starred and name in twins) for name, starred in known]
    is_duplex = any(match["full_duplex"] for _, match in opened)
    if (is_duplex and ways) or len(set(ways)) == 2:
        if ways.count(True) != ways.count(False):
            raise section.error(first, "a stream is missing", expected="as many either way")
        return True
    return is_duplex


def _table(
    section: TextSection,
    opened: Sequence[tuple[int, re.Match[str]]],
    final: Mapping[_Name, Interval],
    *,
    both_ways: bool,
    is_udp: bool,
) -> Table:
    """Return the table of the result, over the time of the longest stream."""
    lines = [line for (name, _), line in final.items() if name != "SUM"]
    total = final.get(("SUM", False))
    asked, ways = asked_streams(section), 2 if both_ways else 1
    last = max(line.index for line in final.values())
    if asked is not None and lines and len(lines) != asked * ways:
        raise section.error(last, "a stream is missing", expected=f"{asked} streams")
    adds_up = is_udp or both_ways
    if total is None and not adds_up and (len(lines) != 1 or (asked or 1) != 1):
        raise section.error(last, "the sum is missing", expected="a [SUM] line of all streams")
    if total is None or (adds_up and lines):
        total = _added(lines)
    moved = sum(line.moved_bytes for line in lines)
    if lines and abs(total.moved_bytes - moved) > _SUM_SLACK * max(moved, total.moved_bytes):
        what = f"{moved} B"
        raise section.error(total.index, "the sum is not that of its streams", expected=what)
    lasted = max(line.end for line in (total, *lines))
    if lasted <= 0:
        raise section.error(total.index, "no time passed", expected="an interval above 0 s")
    values: dict[str, float] = {"bandwidth_mb_s": total.rate_mb_s * total.end / lasted}
    ends = [(match["own"], match["other"]) for _, match in opened]
    attributes: Attributes = {
        "duration_s": lasted,
        "moved_bytes": total.moved_bytes,
        "bandwidth_rounding_mb_s": total.rounding_mb_s,
        **own_address(ends),
    }
    if total.datagrams is not None:
        share, facts = loss(section, total.index, total.lost or 0, total.datagrams)
        attributes |= facts
        values["loss_percent"] = 100 * share
    if streams := asked or len(lines) // ways:
        values = {"num_streams": streams, **values}
        attributes |= {"streams": streams, "threads": streams}
    if both_ways:
        attributes["both_ways"] = 1
    return one_row("iperf", section, total.index, values, attributes)


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


def one_row(
    suite: str,
    section: TextSection,
    index: int,
    values: Mapping[str, float],
    attributes: Attributes,
    version: str | None = None,
) -> Table:
    """Return the table of one run, whose result stands on the line at ``index``."""
    return Table(
        suite=suite,
        program=suite,
        version=version,
        columns=tuple(values),
        rows=(tuple(values.values()),),
        source=section.source,
        line=section.first + index,
        row_lines=(section.first + index,),
        attributes=attributes,
    )
