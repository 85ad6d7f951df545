"""What the text output of iperf and iperf3 has in common: the line of one interval."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from fabricproof.benchmarks.parsers.sections import TextSection, death
from fabricproof.core.units import convert

#: iperf 2: src/ReportOutputs.c and Locale.c; iperf3: src/iperf_locale.c (report_sum_bw_format and
#: its kin).  iperf3 pads "sec" with three blanks, iperf 2 with one.
_INTERVAL = re.compile(
    r"[ \t]*\[ *(?P<star>\*?)(?P<id>SUM(?:-\d+)?|\d{1,6})\](?P<way>\[[TR]X-[CS]\])?[ \t]+"
    r"(?P<start>[0-9]{1,9}\.[0-9]+) ?- *(?P<end>[0-9]{1,9}\.[0-9]+)[ \t]+sec[ \t]+"
    r"(?P<moved>[0-9]{1,12}(?:\.[0-9]{1,3})?) (?P<prefix>[KMGT]?)Bytes[ \t]+"
    r"(?P<rate>[0-9]{1,9}(?:\.[0-9]+)?) (?P<unit>[KMGT]?)(?P<of>bits|Bytes)/sec(?P<rest>.*)"
)
_NAMED = re.compile(r"[ \t]*\[ *(?:SUM(?:-\d+)?|\*?\d{1,6}|ID)\]")
_OTHER = re.compile(
    r"[ \t]*\[ *(?:ID\]|(?:SUM(?:-\d+)?|\*?\d+)\][ \t]+(?:local |Sent |Server Report|WARNING|Host "
    r"|Role|\((?:sender|receiver) statistics not available\)))"
)
#: iperf 2, below the line of a stream of UDP
_OUT_OF_ORDER = re.compile(
    r"[ \t]*\[ *(?:SUM(?:-\d+)?|\*?\d{1,6})\][ \t]+[0-9.]{1,15} ?- *[0-9.]{1,15}[ \t]+sec[ \t]+"
    r"[0-9]{1,15} +datagrams? received out-of-order[ \t]*"
)
#: what the receiver of UDP knows: ``35148/62949 (56%)``, lost of sent; iperf 2 pads both numbers.
#: Lost is negative where datagrams came twice.
_DATAGRAMS = re.compile(
    r"[ \t]+(?:[0-9.]{1,20} ms[ \t]+)?(-?[0-9]{1,15})/ *([0-9]{1,15})[ \t]+\([-+0-9.ena]{1,20}%\)"
)
#: An interval line that something else was printed into, or before.
_HIDDEN = re.compile(r"[0-9]\.[0-9]+ ?- *[0-9]+\.[0-9]|[KMGT]?(?:bits|Bytes)/sec")
_COMMAND = re.compile(r"\biperf3? [^\n#]*(?:-P|--parallel) *([0-9]{1,5})\b")

_ENDS = re.compile(
    r"[ \t]*\[ *\*?\d{1,6}\] local ([^\s%]{1,80})\S{0,20} port \d{1,5}"
    r" connected (?:to|with) ([^\s%]{1,80})\S{0,20} port \d"
)

_FAILED = re.compile(
    r"iperf3?: (?:error|interrupt)|(?:connect|write|read) failed|[Cc]onnection refused"
    r"|WARNING: did not receive ack"
)

#: prefixes of bytes are powers of 1024 (iperf 2 and 3: unit_snprintf in src/stdio.c and units.c)
_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

#: iperf's decimal prefixes (1 Kbit is 1000 bits for rates) -> our unit.
_UNITS = {"": "bit/s", "K": "kb/s", "M": "Mb/s", "G": "Gb/s", "T": "Tb/s"}


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


def read_intervals(section: TextSection) -> tuple[Interval, ...]:
    """Return every interval line of the section.

    Raises:
        ParseError: a line begins as one and is damaged, the test ran in both directions at once,
            the tool reports an error, or the text says that the job died.
    """
    found: list[Interval] = []
    for index, line in enumerate(section.lines):
        match = _INTERVAL.fullmatch(line)
        if match is not None:
            if match["way"]:
                raise section.error(index, "two directions at once", expected="one direction")
            found.append(_interval(match, index))
        elif _is_damaged(line):
            raise section.error(
                index, "damaged row", expected="interval, transfer, rate with their units"
            )
        elif _reports_error(line):
            raise section.error(index, "the test failed", expected="a test that ended well")
    return tuple(found)


def ends_of(section: TextSection) -> list[tuple[str, str]]:
    """Return the addresses of both ends of each connection, as far as the text names them."""
    found = (_ENDS.match(line[:400]) for line in section.lines)
    return [(match[1], match[2]) for match in found if match]


def own_address(ends: Iterable[tuple[str, str]]) -> dict[str, str | int | float]:
    """Return the address that both ends of a connection have: what it moved never left the node."""
    found = [own for own, other in ends if own == other or (_is_loop(own) and _is_loop(other))]
    return {"own_address": found[0]} if found else {}


def _is_loop(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _is_damaged(line: str) -> bool:
    """Tell whether a line that is no interval line may have been one."""
    if _OUT_OF_ORDER.fullmatch(line):
        return False
    is_other = _NAMED.match(line) is None or _OTHER.match(line) is not None
    return not is_other or _HIDDEN.search(line) is not None


def _interval(match: re.Match[str], index: int) -> Interval:
    datagrams = _DATAGRAMS.match(match["rest"])
    return Interval(
        stream="SUM" if match["id"].startswith("SUM") else match["id"],
        starred=bool(match["star"]),
        start=float(match["start"]),
        end=float(match["end"]),
        rate_mb_s=_megabytes(match, float(match["rate"])),
        rounding_mb_s=_megabytes(match, _half_digit(match["rate"])),
        moved_bytes=_at_least(match["moved"], match["prefix"]),
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


def _at_least(printed: str, prefix: str) -> int:
    """Return the fewest bytes that print as ``printed``."""
    least = max(0.0, float(printed) - _half_digit(printed)) if prefix else float(printed)
    return int(least * _BYTES[prefix])


def _half_digit(printed: str) -> float:
    """Return half a unit in the last place of a printed number."""
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


def _reports_error(line: str) -> bool:
    head = line[:2000]
    return not head.lstrip().startswith("$") and (death(head) or _FAILED.search(head) is not None)


def asked_streams(section: TextSection) -> int | None:
    """Return the number of streams after ``-P`` on a command line in the text, or None."""
    matches = (_COMMAND.search(line[:2000]) for line in section.lines)
    return next((int(match[1]) for match in matches if match), None)


def loss(
    section: TextSection, index: int, lost: int, datagrams: int
) -> tuple[float, dict[str, str | int | float]]:
    """Return the fraction of the datagrams that was lost, and what the table says of it.

    Raises:
        ParseError: more were lost than sent, or none was sent.
    """
    if not 0 <= lost <= datagrams or not datagrams:
        raise section.error(index, "damaged row", expected="lost datagrams of those sent")
    return lost / datagrams, {"protocol": "UDP", "datagrams": datagrams, "lost_datagrams": lost}
