"""Read the text that a client of iperf 2 prints, and the lines that iperf3 shares.

The result is the last interval line from 0 on: the ``[SUM]`` line if there are several streams,
else the only stream's.  iperf 2 serves each stream by a thread of its own.

The clock of the sum stops before the last stream has ended (iperf 2.1.8: 2.16 s beside streams of
2.32 s, which made 199 Mb/s on a wire that carries 188), so if the streams are printed, the sum's
bytes are divided by the time of the longest.

Of UDP only the receiver knows what arrived: its lines, with lost and sent datagrams, stand below
``Server Report:``.  A client's other lines, its ``[SUM]`` among them, tell what was sent.

The text of a server, and tests in both directions at once, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from fabricproof.benchmarks.parsers.sections import Attributes, TextSection, death
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
    r"[ \t]*\[ *\*?(\d{1,6})\] local ([^\s%]{1,80})\S{0,20} port \d{1,5} connected (?:to|with) "
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
#: what the receiver of UDP knows: ``35148/62949 (56%)``, lost of sent; iperf 2 pads both numbers.
#: Lost is negative if datagrams came twice.
_DATAGRAMS = re.compile(
    r"[ \t]+(?:[0-9.]{1,20} ms[ \t]+)?(-?[0-9]{1,15})/ *([0-9]{1,15})[ \t]+\([-+0-9.ena]{1,20}%\)"
)
_COMMAND = re.compile(r"\biperf3? [^\n#]*(?:-P|--parallel) *([0-9]{1,5})\b")
_LISTENING = re.compile(r"[ \t]*Server listening on (?:TCP|UDP)")
_IS_UDP = re.compile(r"Client connecting to .{0,200}\bUDP|\] Sent \d+ datagr")
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


@dataclass(frozen=True, kw_only=True)
class Interval:
    """One interval line."""

    index: int  # of the line in its section
    stream: str  # its number, or SUM
    start_s: float
    end_s: float
    rate_mb_s: float  # payload, with iperf's three digits
    rounding_mb_s: float  # half of the last of them
    moved_bytes: int  # payload, at least: half of the last printed digit is taken off
    datagrams: tuple[int, int] | None  # lost and sent, as the receiver counted; None if unknown
    rest: str  # what stands after the rate


@dataclass(frozen=True)
class Connection:
    """The line of one connection: the addresses of its ends, and the port of the other end."""

    stream: str
    own: str
    other: str
    port: str


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
        interval, connected = _INTERVAL.fullmatch(head), _CONNECTED.match(head)
        if (interval and (interval["way"] or interval["star"])) or (connected and connected[5]):
            raise section.error(index, "two directions at once", expected="one direction")
        if interval:
            found.append(_interval(interval, index))
        elif connected:
            opened.append(Connection(*connected.groups()[:4]))
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
    counts = {"streams": streams, "threads": threads}
    attributes |= {name: count for name, count in counts.items() if count}
    line = section.first + index
    return Table(
        suite=suite,
        program=suite,
        version=version,
        columns=tuple(values),
        rows=(tuple(values.values()),),
        source=section.source,
        line=line,
        row_lines=(line,),
        attributes=attributes,
    )


def parse(section: TextSection) -> tuple[Table, ...]:
    """Return the one table, of one row, of a client of iperf 2; none if a server only waited.

    Raises:
        ParseError: there is no final line, the sum of several streams or a stream is missing, a
            line is damaged, the text is a server's or of several tests, UDP has no line of its
            receiver, or the test failed.
    """
    lines, opened = read_lines(section)
    listening = [at for at, line in enumerate(section.lines) if _LISTENING.match(line)]
    if listening and not lines and not opened:
        return ()
    if listening:
        what = "that of the client, of one direction"
        raise section.error(listening[0], "the text of a server of iperf 2", expected=what)
    # -d and -r: the server calls back, from another port
    if len({each.port for each in opened}) > 1:
        raise section.error(0, "several tests in one text", expected="connections to one port")
    whole = [line for line in lines if line.start_s == 0]
    if not whole:
        raise section.error(0, "no result", expected="an interval line from 0 on")
    if lines[-1].start_s > 0:
        raise section.error(lines[-1].index, "the output is cut", expected="a line from 0 on below")
    is_udp = any(line.datagrams for line in lines)
    is_udp = is_udp or any(_IS_UDP.search(line[:400]) for line in section.lines)
    final = {line.stream: line for line in whole if line.datagrams or not is_udp}
    last = whole[-1].index
    if not final or {line.stream for line in whole} - final.keys() - {"SUM"}:
        what = "a line with lost and sent datagrams of each stream (Server Report)"
        raise section.error(last, "what arrived is not shown", expected=what)
    total = final.pop("SUM", None)
    streams = [*final.values()]
    asked = asked_streams(section)
    if streams and (len(streams) != (asked or len(streams)) or len(streams) < len(opened)):
        what = f"{asked or len(opened)} streams"
        raise section.error(last, "a stream is missing", expected=what)
    if not total and not is_udp and (len(streams) != 1 or (asked or 1) != 1):
        raise section.error(last, "the sum is missing", expected="a [SUM] line of all streams")
    parts = [total] if total and not is_udp else streams
    moved, lasted_s = _whole_of(section, parts, streams)
    lost = [line.datagrams for line in parts if line.datagrams]
    table = one_row(
        "iperf",
        section,
        parts[-1].index,
        rate_mb_s=sum(line.rate_mb_s * line.end_s for line in parts) / lasted_s,
        streams=asked or len(streams),
        threads=asked or len(streams),
        datagrams=(sum(n for n, _ in lost), sum(n for _, n in lost)) if lost else None,
        attributes={
            "duration_s": lasted_s,
            "moved_bytes": moved,
            "bandwidth_rounding_mb_s": sum(line.rounding_mb_s for line in parts),
            **own_address((each.own, each.other) for each in opened),
        },
    )
    return (table,)


def _whole_of(
    section: TextSection, parts: list[Interval], streams: list[Interval]
) -> tuple[int, float]:
    """Return the bytes of ``parts``, checked against those of the streams, and the longest time."""
    last = parts[-1].index
    moved, of_streams = (sum(line.moved_bytes for line in each) for each in (parts, streams))
    if streams and abs(moved - of_streams) > _SUM_SLACK * max(moved, of_streams):
        what = f"{of_streams} B"
        raise section.error(last, "the sum is not that of its streams", expected=what)
    ended_s = [line.end_s for line in (*parts, *streams)]
    if max(ended_s) <= 0:
        raise section.error(last, "no time passed", expected="an interval above 0 s")
    if min(ended_s) < 0.9 * max(ended_s) and min(ended_s) < max(ended_s) - 1:
        what = "a last line of each stream"
        raise section.error(last, "the streams did not end together", expected=what)
    return moved, max(ended_s)
