"""What a number out of its bounds, its table and its fabric show of the cause.

Each function returns the words that the sentence of its cause needs (``suspects``), and
nothing if it does not fit.  None fits that another number of the same table refutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.measure import Table
from fabricproof.core.units import size_label
from fabricproof.physics import (
    Ceiling,
    Fabric,
    Link,
    bound,
    ceilings,
    ethernet_link,
    find_slot,
    known_links,
    through_host_mb_s,
)
from fabricproof.verdict.value import Judgement

Words = Mapping[str, object]

#: A plateau is a link's if it has this part of the link's conservative ceiling or more.  Seen:
#: 0.991 (25GbE by TCP), 1.000 (25GbE by RoCE), 0.999 (1GbE by rxe).
AT_RATE = 0.97
#: the same of a slot, whose packets may have more overhead than is stated
AT_SLOT = 0.95
#: the same of one direction, which has the acknowledgements of the other beside it
AT_ONE_WAY = 0.85

#: A curve is flat at its end if its last row carries this part of its best or more, and falls if it
#: carries less than FALLS.
FLAT, FALLS = 0.9, 0.8

#: A wrong socket leaves more than this part (5.8 of 7.9 GB/s, two ports of a ConnectX-3; 5.6 of
#: 6.7 by FDR): what is slower has another cause.
FAR_SOCKET = 0.5

#: A peak of so many times the average: it stood still in between.  Undisturbed runs have 1.05.
STALLED = 1.5

#: Sockets take longer for a small message than this, in us, and verbs less: 13.6 us by TCP over
#: 25GbE, 1 to 3 by verbs.  In a window of messages each costs 2.1 to 2.6 us, and 0.1 to 1 by verbs.
TCP_LATENCY_US, TCP_MESSAGE_US = 8.0, 2.0
SMALL_BYTES = 128

#: ports of Ethernet that nodes have, in Gb/s; and those of cheap adapters
PORTS_GBIT_S = (1, 10, 25, 40, 50, 100, 200, 400)
CHEAP_PORTS_GBIT_S = (1, 2.5, 5)

#: Verbs take at least so long for a message, in us; what copies within a node takes less.
VERBS_LATENCY_US = 0.8

#: slots that cards end up in, or train down to, from the slowest
SLOTS = ("1.0x8", "2.0x4", "2.0x8", "3.0x4", "3.0x8", "4.0x8", "3.0x16")
#: MaxPayload that many machines run at while the specification allows more
SMALL_MAX_PAYLOAD = 128

#: A figure between these parts of what copies through the host give without a pipeline is "about"
#: that: copies are slower than their slot allows, and a short pipeline hides a part of them.
THROUGH_HOST = (0.5, 1.25)

NCCL = frozenset({"nccl-tests", "rccl-tests"})
IPERF = frozenset({"iperf", "iperf3"})


@dataclass(frozen=True)
class DoubtfulNumber:
    """A number out of its bounds.

    Attributes:
        judgement: with value and unit.
        table: where it stands.
        fabric: as the program loads it.
    """

    judgement: Judgement
    table: Table
    fabric: Fabric

    @property
    def value(self) -> float:
        """The number, in MB/s or us."""
        return self.judgement.value or 0.0

    @property
    def is_latency(self) -> bool:
        """Whether it is a time in us."""
        return self.judgement.unit == "us"

    @property
    def is_bandwidth(self) -> bool:
        """Whether it is a bandwidth between two nodes, in MB/s."""
        return not self.is_latency and reading_of(self.table).kind is ProgramKind.BANDWIDTH

    @cached_property
    def curve(self) -> list[tuple[int, float]]:
        """Message size in bytes and bandwidth in MB/s of each row; empty if there are none."""
        name = self.table.first_of(("bandwidth_mb_s", "bus_bandwidth_mb_s"))
        if name is None or "message_size" not in self.table.columns:
            return []
        sizes = map(int, self.table.column("message_size"))
        return [*zip(sizes, self.table.column(name), strict=True)]

    @cached_property
    def best_mb_s(self) -> float:
        """The most that any row carried: a limit must allow it."""
        return max([self.value, *(each for _, each in self.curve)])

    @cached_property
    def is_plateau(self) -> bool:
        """Whether it is a bandwidth between two nodes, at the flat end of its curve."""
        is_last = not self.curve or self.judgement.message_size == self.curve[-1][0]
        return self.is_bandwidth and is_last and self.value >= FLAT * self.best_mb_s

    @property
    def is_tcp(self) -> bool:
        """Whether sockets over Ethernet are declared, and it is not NCCL that runs there."""
        is_declared = self.fabric.framing.name.startswith("tcp")
        is_ethernet = self.fabric.link.technology == "ethernet"
        return is_declared and is_ethernet and self.table.suite not in NCCL

    @property
    def has_several_flows(self) -> bool:
        """Whether several connections ran at once: of several iperf may print the sum alone."""
        is_sum = self.table.suite in IPERF and "streams" not in self.table.attributes
        return self.fabric.num_flows > 1 or is_sum

    @property
    def has_gpus(self) -> bool:
        """Whether the buffers were on GPUs."""
        return self.table.suite in NCCL or self.fabric.gpus is not None

    @property
    def is_verbs(self) -> bool:
        """Whether InfiniBand or RoCE of an adapter is declared."""
        return self.fabric.framing.name in {"ib", "rocev2"} and not self.fabric.link.is_soft

    @cached_property
    def message_us(self) -> float | None:
        """What a small message costs in a window of messages, in us; None if unknown."""
        size, rate = self.curve[0] if self.curve else (0, 0.0)
        is_window = self.is_bandwidth and self.table.suite.startswith("osu")
        return size / rate if is_window and 0 < size <= SMALL_BYTES and rate else None

    def at(self, limit: Ceiling, part: float = AT_RATE) -> dict[str, float]:
        """Return where the best of the table stands if it is at this limit; else nothing."""
        low, best = limit.low_mb_s, self.best_mb_s
        if not part * low <= best <= limit.high_mb_s:
            return {}
        return {"low": part * low, "high": limit.high_mb_s, "limit": low, "share": best / low}


def prints(warning: str) -> Callable[[DoubtfulNumber], bool]:
    """Return what tells whether a warning of ``benchmarks.parsers.network`` was printed."""
    return lambda number: warning in str(number.table.attributes.get("warnings", "")).split(",")


def soft_device(number: DoubtfulNumber) -> Words:
    """The device is software, and an adapter is declared."""
    said = number.table.attributes
    device = str(said.get("device", said.get("network_devices", "")))
    is_soft = device.startswith(("rxe", "siw")) and not number.fabric.link.is_soft
    return {"device": device} if is_soft else {}


def fewer_devices(number: DoubtfulNumber) -> Words:
    """An MPI library used fewer devices of a node than rails are declared."""
    said, rails = number.table.attributes, number.fabric.num_rails
    is_fewer = 0 < int(said.get("num_devices", 0)) < rails and number.table.suite not in NCCL
    return {"devices": said["network_devices"], "rails": rails} if is_fewer else {}


def stalls(number: DoubtfulNumber) -> Words:
    """The peak of the row is far above its average."""
    size = number.judgement.message_size
    for row in number.table.named_rows if number.is_bandwidth else ():
        peak = row.get("bandwidth_peak_mb_s", 0.0)
        if row.get("message_size") == size and peak >= STALLED * number.value > 0:
            return {"ratio": peak / number.value}
    return {}


def falls(number: DoubtfulNumber) -> Words:
    """A shorter message carried far more: link and slot did."""
    size, wanted = number.judgement.message_size, number.judgement.reference
    is_low = number.value < FALLS * number.best_mb_s
    if not number.is_bandwidth or not is_low or size is None or wanted is None:
        return {}
    best_size, best = max(number.curve, key=lambda row: row[1])
    words = {"size": size_label(best_size), "best": best, "share": best / wanted}
    return words if best_size < size else {}


def sockets(number: DoubtfulNumber) -> Words:
    """Verbs are declared, and small messages take as long as by TCP."""
    first = number.table.named_rows[0]
    time_us, least_us = number.message_us, TCP_MESSAGE_US
    is_small = first.get("message_size", SMALL_BYTES) < SMALL_BYTES
    if reading_of(number.table).kind is ProgramKind.LATENCY and is_small:
        time_us, least_us = first.get("latency_us", first.get("latency_avg_us")), TCP_LATENCY_US
    is_slow = time_us is not None and time_us >= least_us
    return {"time": time_us} if number.is_verbs and is_slow else {}


def one_rail(number: DoubtfulNumber) -> Words:
    """The number is what one of several rails carries."""
    if not number.is_plateau or number.fabric.num_rails < 2:
        return {}
    return number.at(bound(replace(number.fabric, num_rails=1)), AT_SLOT)


def one_direction(number: DoubtfulNumber) -> Words:
    """Both directions together carry what one of them can."""
    one = bound(replace(number.fabric, bidirectional=False))
    is_both = number.is_plateau and number.fabric.bidirectional
    return number.at(one, AT_ONE_WAY) if is_both else {}


def one_connection(number: DoubtfulNumber) -> bool:
    """One TCP connection over a link that takes several to fill."""
    fabric = number.fabric
    is_one = not number.has_several_flows and fabric.flow_limit_gbit_s is None
    return number.is_plateau and number.is_tcp and is_one and fabric.link.data_rate_gbit_s >= 10


def _links(number: DoubtfulNumber) -> Iterator[tuple[Link, Ceiling]]:
    """Yield the links that the run may have had instead, with what each would carry.

    A port trains down in speed or in lanes; Ethernet has the rates of other ports.  Beside another
    fabric Ethernet counts only where the table shows sockets.
    """
    mine = number.fabric.link
    bare = replace(
        number.fabric, slot=None, max_payload_bytes=None, rails_share_slot=False, gpus=None,
        flow_limit_gbit_s=None, capability_mb_s=None, unlike_rails_high_mb_s=None, shaper=None,
    )  # fmt: skip
    for link in known_links().values() if mine.technology != "ethernet" else ():
        has_lanes = link.lanes in {mine.lanes, 4}
        fewer_lanes = link.line_rate_gbit_s == mine.line_rate_gbit_s and link.lanes < mine.lanes
        if link.technology == mine.technology and (has_lanes or fewer_lanes):
            yield link, bound(replace(bare, link=link))
    if mine.technology != "ethernet":
        if not sockets(number) and "tcp" not in str(number.table.attributes.get("network", "")):
            return
        bare = replace(bare, link=ethernet_link(1), protocol="tcp", mtu=None, num_rails=1)
    for link in map(ethernet_link, PORTS_GBIT_S):
        yield link, bound(replace(bare, link=link))


def other_link(number: DoubtfulNumber, *, is_faster: bool = False) -> Words:
    """The number is the rate of a slower link, lane count or port, or of a faster one."""
    is_told = bool(one_rail(number) or one_direction(number))
    mine, links = number.fabric.link, _links(number) if number.is_plateau and not is_told else ()
    fits = [
        (abs(found["share"] - 1), link.name, found)
        for link, limit in links
        if link.data_rate_mb_s != mine.data_rate_mb_s
        and (link.data_rate_mb_s > mine.data_rate_mb_s) is is_faster
        and (link.technology == mine.technology or not is_faster)
        and (found := number.at(limit))
    ]
    if not fits:
        return {}
    _, name, found = min(fits, key=lambda fit: fit[0])
    return {"link": name, **found}


def slower_slot(number: DoubtfulNumber) -> Words:
    """The number is what a slower slot carries."""
    fabric = number.fabric
    for name in SLOTS if number.is_plateau and not fabric.link.is_soft else ():
        slot = find_slot(name)
        if fabric.slot is not None and slot.raw_mb_s >= fabric.slot.raw_mb_s:
            continue
        small = fabric.max_payload_bytes or SMALL_MAX_PAYLOAD
        low, high = (
            next(each for each in ceilings(in_slot) if each.name == "slot_packet")
            for in_slot in (
                replace(fabric, slot=slot, max_payload_bytes=small),
                replace(fabric, slot=slot),
            )
        )
        if found := number.at(replace(high, low_mb_s=low.low_mb_s), AT_SLOT):
            return {"slot": name, **found}
    return {}


def smaller_port(number: DoubtfulNumber) -> Words:
    """A port of at most half the declared rate could carry what sockets carried."""
    half_gbit_s = number.fabric.link.data_rate_gbit_s / 2
    fits = [rate for rate in CHEAP_PORTS_GBIT_S if number.value * 8 / 1000 <= rate <= half_gbit_s]
    is_sockets = number.is_plateau and number.table.suite in IPERF
    return {"rate": fits[0]} if is_sockets and fits else {}


def far_socket(number: DoubtfulNumber) -> bool:
    """A plateau of an adapter that is no lower than a wrong socket makes it."""
    fabric, wanted = number.fabric, number.judgement.reference or 0.0
    has_slot = number.is_verbs or fabric.slot is not None or fabric.link.technology != "ethernet"
    is_near = number.value >= FAR_SOCKET * wanted
    return number.is_plateau and has_slot and not fabric.link.is_soft and is_near


def more_rails(number: DoubtfulNumber) -> Words:
    """The number is a multiple of what the declared rails carry."""
    one = bound(number.fabric)
    for count in range(2, 9) if not number.is_latency else ():
        if AT_RATE * count * one.low_mb_s <= number.value <= count * one.high_mb_s:
            rails = count * number.fabric.num_rails
            return {"factor": number.value / one.low_mb_s, "count": count, "rails": rails}
    return {}


def verbs_instead(number: DoubtfulNumber) -> bool:
    """TCP is declared, and a message takes as long as by verbs."""
    is_tcp = number.is_latency and number.fabric.framing.name.startswith("tcp")
    return is_tcp and number.value >= VERBS_LATENCY_US


def bare_link(number: DoubtfulNumber) -> Words:
    """The number is above the link's own rate."""
    high = ceilings(number.fabric)[0].high_mb_s
    is_above = not number.is_latency and number.value > high
    return {"share": number.value / high, "high": high} if is_above else {}


def through_host(value_mb_s: float, fabric: Fabric) -> str | None:
    """Return what to say of a bandwidth, in MB/s, that copies through the host explain, or None."""
    copied = through_host_mb_s(fabric)
    if copied is None or not THROUGH_HOST[0] * copied <= value_mb_s <= THROUGH_HOST[1] * copied:
        return None
    return (
        f"as through the host: GPUDirect seems off (messages that wait for a copy at "
        f"{'each end' if fabric.gpus and fabric.gpus.ends == 2 else 'one end'} give about "
        f"{copied:.0f} MB/s)"
    )
