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
from dataclasses import dataclass

from fabricproof.benchmarks.parsers.sections import TextSection, death
from fabricproof.core.measure import Table

#: iperf 2: src/ReportOutputs.c and Locale.c; iperf3: src/iperf_locale.c (report_sum_bw_format and
#: its kin).  iperf3 pads "sec" with three blanks, iperf 2 with one.
_INTERVAL = re.compile(
    r"[ \t]*\[ *(?P<star>\*?)(?P<id>SUM(?:-\d+)?|\d{1,6})\](?P<way>\[[TR]X-[CS]\])?[ \t]+"
    r"(?P<start>[0-9]{1,9}\.[0-9]+) ?- *(?P<end>[0-9]{1,9}\.[0-9]+)[ \t]+sec[ \t]+"
    r"(?P<moved>[0-9]{1,12}(?:\.[0-9]{1,3})?) (?P<prefix>[KMGT]?)Bytes[ \t]+"
    r"(?P<rate>[0-9]{1,9}(?:\.[0-9]+)?) (?P<unit>[KMGT]?)(?P<of>bits|Bytes)/sec"
    r"(?P<rest>(?:[ \t].*)?)"
)
_CONNECTED = re.compile(
    r"[ \t]*\[ *\*?(\d{1,6})\] local ([^\s%]{1,80})\S{0,20} port (\d{1,5}) connected (?:to|with) "
    r"([^\s%]{1,80})\S{0,20} port (\d{1,5})\b(.*\(full-duplex\))?"
)
#: what else begins with the number of a stream; iperf 2 tells of datagrams out of order below the
#: line of a stream of UDP
_OTHER = re.compile(
    r"[ \t]*\[ *(?:ID\]|[0-9]+\] MPI startup|(?:SUM(?:-\d+)?|\*?\d+)\][ \t]+"
    r"(?:Sent |Server Report|WARNING|Host |Role|MSS |"
    r"\((?:sender|receiver) statistics not available\)"
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
#: those of bits are decimal: 1 Kbit is 1000 bits
_BITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
#: no line of the tools is longer
_LONGEST = 2000
#: a sum may differ from its streams by so much: each is printed with three digits
_SUM_SLACK = 0.03

Attributes = dict[str, str | int | float]
#: a stream's number, and whether it is the opposite direction of its connection
_Name = tuple[str, bool]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """One interval line."""

    index: int  # of the line in its section
    stream: str  # its number, or SUM
    starred: bool  # iperf 2 marks the opposite direction of a connection with *
    start_s: float
    end_s: float
    rate_mb_s: float  # payload, with iperf's three digits
    rounding_mb_s: float  # half of the last of them
    moved_bytes: int  # payload, at least: half of the last printed digit is taken off
    datagrams: tuple[int, int] | None  # lost and sent, as the receiver counted; None if unknown
    rest: str  # what stands after the rate


@dataclass(frozen=True)
class Connection:
    """The line of one connection; its ends are address and port."""

    index: int
    stream: str
    own: tuple[str, str]
    other: tuple[str, str]
    is_duplex: bool


def read_lines(
    section: TextSection, *, ignored: str = "$"
) -> tuple[list[Interval], list[Connection]]:
    """Return every interval line of the section, and every connection.

    A line that begins with a command or with ``ignored`` is no error.

    Raises:
        ParseError: a line begins as one and is damaged, the test ran in both directions at once,
            the tool reports an error, or the text says that the job died.
    """
    found: list[Interval] = []
    opened: list[Connection] = []
    for index, line in enumerate(section.lines):
        head = line[:_LONGEST]
        if match := _INTERVAL.fullmatch(head):
            if match["way"]:
                raise section.error(index, "two directions at once", expected="one direction")
            found.append(_interval(match, index))
        elif match := _CONNECTED.match(head):
            stream, *ends, duplex = match.groups()
            opened.append(
                Connection(index, stream, (ends[0], ends[1]), (ends[2], ends[3]), bool(duplex))
            )
        elif _HIDDEN.match(head) and not _OTHER.match(head):
            what = "interval, transfer, rate with their units"
            raise section.error(index, "damaged row", expected=what)
        elif not head.lstrip().startswith(("$", ignored)) and (death(head) or _FAILED.search(head)):
            raise section.error(index, "the test failed", expected="a test that ended well")
    return found, opened


def _interval(match: re.Match[str], index: int) -> Interval:
    datagrams = _DATAGRAMS.match(match["rest"])
    moved, prefix, rate = match["moved"], match["prefix"], match["rate"]
    least = float(moved) - _half_digit(moved) if prefix else float(moved)
    # -f K to -f T print rates in bytes
    is_bytes = match["of"] == "Bytes"
    factor = _BYTES[match["unit"]] / 1e6 if is_bytes else _BITS[match["unit"]] / 8e6
    return Interval(
        index=index,
        stream="SUM" if match["id"].startswith("SUM") else match["id"],
        starred=bool(match["star"]),
        start_s=float(match["start"]),
        end_s=float(match["end"]),
        rate_mb_s=float(rate) * factor,
        rounding_mb_s=_half_digit(rate) * factor,
        moved_bytes=int(max(0.0, least) * _BYTES[prefix]),
        datagrams=(max(0, int(datagrams[1])), int(datagrams[2])) if datagrams else None,
        rest=match["rest"],
    )


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
    for one, two in ends:
        if one == two or (one.startswith(loops) and two.startswith(loops)):
            return {"own_address": one}
    return {}


def loss_of(section: TextSection, index: int, datagrams: tuple[int, int]) -> float:
    """Return the fraction of the datagrams that was lost.

    Raises:
        ParseError: more were lost than sent, or none was sent.
    """
    lost, sent = datagrams
    if not 0 <= lost <= sent or not sent:
        raise section.error(index, "damaged row", expected="lost datagrams of those sent")
    return lost / sent


def one_row(
    suite: str,
    section: TextSection,
    index: int,
    *,
    rate_mb_s: float,
    streams: int,
    threads: int,
    datagrams: tuple[int, int] | None,
    attributes: Attributes,
    version: str | None = None,
) -> Table:
    """Return the table of one run, whose result stands on the line at ``index``.

    ``streams`` and the ``threads`` that moved them are 0 if unknown; ``datagrams`` of UDP are those
    lost and those sent.
    """
    values = {"num_streams": streams, "bandwidth_mb_s": rate_mb_s}
    if datagrams is not None:
        values["loss_percent"] = 100 * loss_of(section, index, datagrams)
        attributes |= {"protocol": "UDP", "lost_datagrams": datagrams[0], "datagrams": datagrams[1]}
    if not streams:
        del values["num_streams"]
    attributes |= {
        name: count for name, count in (("streams", streams), ("threads", threads)) if count
    }
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
    whole = [line for line in lines if line.start_s == 0]
    if not whole:
        raise section.error(0, "no result", expected="an interval line from 0 on")
    if lines[-1].start_s > 0:
        raise section.error(lines[-1].index, "the output is cut", expected="a line from 0 on below")
    is_udp = any(line.datagrams for line in lines)
    is_udp = is_udp or any(_IS_UDP.search(line[:400]) for line in section.lines)
    kept = [line for line in whole if line.datagrams or not is_udp]
    final = {(line.stream, line.starred): line for line in kept}
    silent = {(line.stream, line.starred) for line in whole} - final.keys()
    if not final or silent - {("SUM", False)}:
        what = "a line with lost and sent datagrams of each stream (Server Report)"
        raise section.error(whole[-1].index, "what arrived is not shown", expected=what)
    _check_one_test(section, opened, final, whole[0].index)
    both_ways = _is_both_ways(section, opened, final, whole[0].index)
    return (_table(section, opened, final, both_ways=both_ways, is_udp=is_udp),)


def _check_one_test(
    section: TextSection, opened: Sequence[Connection], final: Mapping[_Name, Interval], first: int
) -> None:
    """Refuse the text of several tests, or of both ends: which number is meant, nobody knows.

    ``--tradeoff`` is two tests, one direction after the other.  ``first`` is the index of the first
    result.
    """
    ends = {(each.own, each.other) for each in opened}
    if any((other, own) in ends for own, other in ends):
        raise section.error(first, "both ends in one text", expected="the text of one end")
    streams = {each.stream for each in opened}
    late = next((each.index for each in opened if each.index > first), None)
    if late is not None or len(streams) < len(opened):
        what = "the text of one test"
        raise section.error(late or first, "several tests in one text", expected=what)
    shown = {name for name, _ in final}
    if shown != {"SUM"} and not shown >= streams:
        raise section.error(first, "a stream is missing", expected="a result of each connection")
    ended_s = [line.end_s for line in final.values()]
    if min(ended_s) < 0.9 * max(ended_s) and min(ended_s) < max(ended_s) - 1:
        what = "a last line of each stream"
        raise section.error(first, "the streams did not end together", expected=what)


def _is_both_ways(
    section: TextSection, opened: Sequence[Connection], final: Mapping[_Name, Interval], first: int
) -> bool:
    """Tell whether traffic flowed both ways at once: ``--dualtest`` and ``--full-duplex``.

    Raises:
        ParseError: unlike numbers of streams, or which way they flowed is not shown.
    """
    listening = {port[1] for line in section.lines if (port := _LISTENING.fullmatch(line[:400]))}
    inbound = {each.stream: each.own[1] in listening for each in opened}
    streams = [name for name in final if name[0] != "SUM"]
    twins = {stream for stream, starred in streams if starred and (stream, False) in final}
    known = [name for name in streams if name[0] in inbound or name[0] in twins]
    if len(known) < len(streams) and len({starred for _, starred in streams}) > 1:
        raise section.error(first, "which way is which is not shown", expected="the whole text")
    ways = [inbound.get(name, False) != (starred and name in twins) for name, starred in known]
    is_duplex = any(each.is_duplex for each in opened)
    if (is_duplex or len({*ways}) == 2) and ways.count(True) != ways.count(False):
        raise section.error(first, "a stream is missing", expected="as many either way")
    return is_duplex or len({*ways}) == 2


def _table(
    section: TextSection,
    opened: Sequence[Connection],
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
    adds_up = (is_udp or both_ways) and bool(lines)
    if total is None and not adds_up and (len(lines) != 1 or (asked or 1) != 1):
        raise section.error(last, "the sum is missing", expected="a [SUM] line of all streams")
    parts = lines if adds_up or total is None else [total]
    moved, of_streams = (sum(line.moved_bytes for line in each) for each in (parts, lines))
    if lines and abs(moved - of_streams) > _SUM_SLACK * max(moved, of_streams):
        what = f"{of_streams} B"
        raise section.error(last, "the sum is not that of its streams", expected=what)
    lasted_s = max(line.end_s for line in (*parts, *lines))
    if lasted_s <= 0:
        raise section.error(last, "no time passed", expected="an interval above 0 s")
    counts = [line.datagrams for line in parts if line.datagrams]
    streams = asked or len(lines) // ways
    attributes: Attributes = {
        "duration_s": lasted_s,
        "moved_bytes": moved,
        "bandwidth_rounding_mb_s": sum(line.rounding_mb_s for line in parts),
        **own_address((each.own[0], each.other[0]) for each in opened),
        **({"both_ways": 1} if both_ways else {}),
    }
    return one_row(
        "iperf",
        section,
        parts[-1].index,
        rate_mb_s=sum(line.rate_mb_s * line.end_s for line in parts) / lasted_s,
        streams=streams,
        threads=streams,
        datagrams=(sum(lost for lost, _ in counts), sum(n for _, n in counts)) if counts else None,
        attributes=attributes,
    )
