"""The limits that apply to one table: its fabric as the program loads it, and its own arithmetic.

A table that contradicts itself proves nothing.  The tools print two decimals, so every law between
the columns of a row is checked within what that rounding allows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.program import (
    Consistency,
    Meaning,
    ProgramKind,
    buffers_of,
    ends_on_gpus,
)
from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import (
    SOFT_ROCE,
    Ceiling,
    Fabric,
    Floor,
    Gpus,
    Protocol,
    bound,
    find_protocol,
    latency_floor_us,
)
from fabricproof.verdict.curve import start_up_us
from fabricproof.verdict.value import CURVE_TOLERANCE, Reference, Rules, from_ceiling, judge_value

#: a missing fraction of a time that no printed digit shows
NEGLIGIBLE = 0.001


def num_pairs(table: Table) -> int:
    """Return how many pairs (or streams) the output says ran at once; 1 where it says nothing.

    ``num_processes`` is printed by IMB, whose pair benchmarks use every second process to send.
    """
    said = table.attributes
    pairs = max(int(said.get(name, 1)) for name in ("num_pairs", "streams"))
    return max(pairs, int(said.get("num_processes", 2)) // 2)


def rounding_mb_s(table: Table) -> float:
    """Return half the last printed digit of a bandwidth, in MB/s, where two decimals are not there.

    iperf prints three digits, nccl-tests hundredths of GB/s, perftest also those of Gb/s: a true
    number may be printed above its ceiling by so much.
    """
    return float(table.attributes.get("bandwidth_rounding_mb_s", 0.0))


def loaded_fabric(table: Table, fabric: Fabric) -> Fabric:
    """Return ``fabric`` as this table's program loads it: directions, number of flows, GPUs."""
    protocol, mtu = _spoken(table, fabric)
    return replace(
        fabric,
        protocol=protocol,
        mtu=mtu,
        bidirectional=reading_of(table).bidirectional,
        gpus=_gpus(table, fabric),
        num_rails=max(fabric.num_rails, int(table.attributes.get("num_ports", 1))),
        num_flows=max(
            fabric.num_flows, num_pairs(table), int(table.attributes.get("num_qps", 1) or 1)
        ),
    )


def _gpus(table: Table, fabric: Fabric) -> Gpus | None:
    """Return the GPUs of the fabric where the buffers were on some; None where they were not."""
    ends = ends_on_gpus(buffers_of(table))
    return replace(fabric.gpus or Gpus(), ends=ends) if ends else None


def _spoken(table: Table, fabric: Fabric) -> tuple[Protocol | str | None, int | None]:
    """Return the protocol and its MTU: what is stated, else what the output itself says.

    UDP has shorter headers than TCP: by TCP's ceiling a true number would be impossible.  Verbs
    over Ethernet are RoCE (perftest prints ``Link type: Ethernet``), and ``Mtu`` is the path MTU
    of its queue pairs.
    """
    is_ethernet = fabric.link.technology == "ethernet"
    if table.suite == "perftest" and fabric.link.technology in _VERBS:
        return _spoken_by_verbs(table, fabric)
    is_udp = str(table.attributes.get("protocol", "")).lower() == "udp"
    if is_udp and is_ethernet and fabric.protocol is None:
        return "udp", fabric.mtu
    return fabric.protocol, fabric.mtu


#: technology -> what verbs speak over it
_VERBS = {"ethernet": "rocev2", "infiniband": "ib"}


def _spoken_by_verbs(table: Table, fabric: Fabric) -> tuple[Protocol | str | None, int | None]:
    """Return what perftest's own lines say: RoCE or InfiniBand, iWARP, or frames of Ethernet.

    ``Transport type : IW`` is iWARP, whose MTU is IP's and not the one that is printed;
    ``Connection type : RawEth`` sends each message as one frame, which counts whole.
    """
    said = table.attributes
    if fabric.link.technology == "ethernet" and fabric.protocol is None:
        if said.get("transport") == "IW":
            return "iwarp", fabric.mtu
        if said.get("connection") == "RawEth":
            largest = int(max(table.column("message_size")))
            least, most = find_protocol("raw-ethernet").mtu_range or (0, 0)
            return "raw-ethernet", largest if least <= largest <= most else None
    protocol = find_protocol(_VERBS[fabric.link.technology])
    printed = int(said.get("mtu", 0))
    path_mtu = printed if printed in protocol.mtu_choices else None
    if fabric.protocol is not None:
        return fabric.protocol, fabric.mtu or (path_mtu if fabric.framing == protocol else None)
    # An MTU that was stated beside no protocol may be the one that IP has, 1500 or 9000.
    stated = fabric.mtu if fabric.mtu in protocol.mtu_choices else None
    return protocol.name, path_mtu or stated


#: ``Link type`` of perftest -> technologies over which it says something else.  Of EFA and others
#: it says IB or Unknown: both stand for "not specified" (link_layer_str, and the kernel's drivers).
_NOT_OVER = {
    "Ethernet": frozenset({"infiniband", "omni-path"}),
    "IB": frozenset({"ethernet", SOFT_ROCE}),
}


#: what libfabric (prov/tcp, prov/sockets, prov/udp), UCX, NCCL and Google's plugin call sockets
_SOCKETS = frozenset(
    {"tcp", "tcp;ofi_rxm", "sockets", "udp", "udp;ofi_rxd", "Socket", "FastSocket"}
)

#: what NCCL, its plugins (``IBext_v8``, ``gIB``), libfabric, UCX and old Intel MPI call verbs
_BY_VERBS = re.compile(r"g?IB\w*|InfiniBand|RoCE|verbs(?:;\w+)?|(?:rc|dc|ud|gga)(?:_\w+)?|ofa")

#: what sockets speak
_BY_SOCKETS = frozenset({"tcp", "tcp-bypass", "udp", "ipoib"})

#: a word -> the technologies that it can be over: the link layer of NCCL's cards, and providers
#: of libfabric (prov/psm2, prov/opx, prov/cxi, prov/efa)
_ONLY_OVER = {
    "InfiniBand": frozenset({"infiniband", "omni-path"}),
    "RoCE": frozenset({"ethernet", SOFT_ROCE}),
    "psm2": frozenset({"omni-path"}),
    "opx": frozenset({"omni-path"}),
    "cxi": frozenset({"slingshot"}),
    "efa": frozenset({"efa", "ethernet"}),
}


def networks_of(table: Table) -> tuple[frozenset[str], str]:
    """Return what the library says that carried the messages, and the same as a person reads it."""
    used = str(table.attributes.get("network", ""))
    return frozenset(used.split(",")), used.replace(",", " and ")


def _other_network(table: Table, fabric: Fabric) -> str | None:
    """Return why the library took another path than the declared one, by its own word, or None.

    Words for sockets and for verbs side by side say that ranks of NCCL differ; of an MPI library
    they may be of something beside the messages (one-sided windows, collectives of another).
    """
    used, words = networks_of(table)
    sockets, verbs = used & _SOCKETS, frozenset(filter(_BY_VERBS.fullmatch, used))
    if sockets and verbs:
        if table.suite not in {"nccl-tests", "rccl-tests"}:
            return None
        return f"the library says that it used {words}: its ranks did not take one path"
    speaks, technology = fabric.framing.name, fabric.link.technology
    other = verbs if speaks in _BY_SOCKETS else sockets
    if not other and all(technology in _ONLY_OVER.get(word, {technology}) for word in used):
        return None
    return (
        f"the library says that it used {words}, and the declared link is {fabric.link.name} "
        f"({speaks}): the run took another path, or the declaration is wrong"
    )


def _other_path(table: Table, fabric: Fabric | None, devices: Collection[str]) -> str | None:
    """Return why the table is of another path than the declared one, by its own word, or None."""
    if own := table.attributes.get("own_address"):
        return f"both ends have the address {own}: what it moved never left the node"
    if fabric is None:
        return None
    if table.suite == "perftest":
        return _other_device(table, fabric, devices)
    return _other_network(table, fabric)


def _other_device(table: Table, fabric: Fabric, devices: Collection[str]) -> str | None:
    """Return why perftest ran over another path than the declared one, or None."""
    said = table.attributes
    printed = str(said.get("link_layer", ""))
    if devices and said.get("device", "") not in {"", *devices}:
        named = " or ".join(sorted(devices))
        return f"the output is of the device {said['device']}, and the rails are of {named}"
    if fabric.link.technology not in _NOT_OVER.get(printed, ()):
        return None
    # Drivers that specify no link layer print IB; those of InfiniBand have its transport.
    if printed == "IB" and said.get("transport", "IB") != "IB":
        return None
    device = said.get("device", "the device")
    return (
        f"the output says Link type {printed} of {device}, and the declared link is "
        f"{fabric.link.name} ({fabric.link.technology}): the run was over another fabric, or the "
        "declaration is wrong"
    )


def _in_flight(table: Table) -> int:
    """Return how many messages perftest keeps under way at once; 1 where that is not known.

    ``TX depth`` in its header: ``run_iter_bw`` posts until so many are not completed
    (src/perftest_resources.c of linux-rdma/perftest).  Of reads the adapter has fewer, its
    ``Outstand reads``, which the programs that read print alone (ctx_print_test_info).
    """
    if table.suite != "perftest" or reading_of(table).kind is not ProgramKind.BANDWIDTH:
        return 1
    depth = int(table.attributes.get("tx_depth", 1))
    reads = int(table.attributes.get("outstanding_reads", depth))
    return max(1, min(depth, reads))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one table is judged by.

    Attributes:
        fabric: as the program loads it, None where nothing is declared.
        ceiling: what binds, None without a fabric.
        reference: what the plateau is judged by.
        given: the references that somebody gave, by quantity.
        num_pairs: pairs that loaded the rails at once.
        start_us: what a message costs before its bytes count, None where it is not known.
        silence: why there is no reference where physics would have one, None otherwise.
        unknown_nodes: why a number that one node's rails could carry is no PASS: the pairs may have
            had the rails of several nodes.  None where they are known to share one node's.
        curve_tolerance: how much longer than the model a point of the curve may take.
        uncounted: fraction of the time that may be missing from a row, by message size.
        devices: that the rails are of, empty where nobody said.
    """

    fabric: Fabric | None
    ceiling: Ceiling | None
    reference: Reference | None
    given: Mapping[str, Reference]
    num_pairs: int
    start_us: float | None
    silence: str | None = None
    unknown_nodes: str | None = None
    curve_tolerance: float = CURVE_TOLERANCE
    uncounted: Mapping[int, float] = field(default_factory=dict)
    devices: Collection[str] = ()

    @classmethod
    def of(cls, table: Table, reading: Meaning, rules: Rules) -> Limits:
        """Return the limits of ``table`` under ``rules``."""
        fabric = loaded_fabric(table, rules.fabric) if rules.fabric else None
        ceiling = bound(fabric) if fabric else None
        silence = _shared_rails(table, reading)
        reference = rules.references.get("bandwidth")
        if silence and reading.kind is ProgramKind.LATENCY:
            reference = None
        elif reference is not None:
            silence = None
        elif ceiling is not None and silence is None:
            reference = from_ceiling(ceiling, tolerance=rules.tolerance)
        unknown_nodes = _unknown_nodes(table, reading, rules)
        if unknown_nodes and ceiling is not None:
            # At the most each pair has a node of its own, with all its rails.
            ceiling = replace(ceiling, high_mb_s=ceiling.high_mb_s * num_pairs(table))
        if ceiling is not None:
            ceiling = replace(ceiling, high_mb_s=ceiling.high_mb_s + rounding_mb_s(table))
        start = start_up_us(table)
        if start is None and fabric is not None:
            start = latency_floor_us(fabric, 0).us / _in_flight(table)
        return cls(
            fabric=fabric,
            ceiling=ceiling,
            reference=reference,
            given=rules.references,
            num_pairs=num_pairs(table),
            start_us=start,
            silence=silence,
            unknown_nodes=unknown_nodes if "bandwidth" not in rules.references else None,
            curve_tolerance=rules.curve_tolerance,
            uncounted=_uncounted(table, reading),
            devices=rules.devices,
        )

    def ceiling_of(self, message_size: int | None) -> Ceiling | None:
        """Return the ceiling for messages of ``message_size`` bytes.

        Behind a shaper short messages may be faster than the rate: see
        :class:`fabricproof.physics.Shaper`.
        """
        shaper = self.fabric.shaper if self.fabric else None
        if self.ceiling is None or shaper is None or not message_size:
            return self.ceiling
        rate = self.ceiling.high_mb_s
        least_us = shaper.least_time_us(message_size, rate)
        high = message_size / least_us if least_us > 0 else float("inf")
        return replace(self.ceiling, high_mb_s=max(rate, high))

    @property
    def curve_reference(self) -> Reference | None:
        """What the points inside the curve are judged by: one rail's worth of the reference.

        Up to its striping threshold an MPI sends a message over one rail, and the threshold is
        its own business (document 000 of the sources: equal to one rail up to 8 KiB).  Nothing
        where buffers are on GPUs: there an MPI has more ways to move a message, and each begins
        with a step of its own.
        """
        if self.fabric is not None and self.fabric.gpus is not None:
            return None
        if self.reference is None or self.fabric is None or self.fabric.num_rails < 2:
            return self.reference
        share = bound(replace(self.fabric, num_rails=1)).low_mb_s / bound(self.fabric).low_mb_s
        return replace(self.reference, value=self.reference.value * share)

    def floor(self, reading: Meaning, message_size: int | None) -> Floor | None:
        """Return the latency floor of a message, None where no crossing is timed."""
        if self.fabric is None or message_size is None or not reading.crosses:
            return None
        if message_size == 0 and not reading.empty_crosses:
            return None
        floor = latency_floor_us(self.fabric, message_size)
        if reading.round_trip:
            request = latency_floor_us(self.fabric, 0)
            formula = f"the answer's {floor.formula}, after a request's {request.us:.3g} us"
            floor = replace(floor, us=floor.us + request.us, formula=formula)
        uncounted = self.uncounted.get(message_size, 0.0)
        if uncounted < NEGLIGIBLE:
            return floor
        formula = f"({floor.formula}) less {uncounted:.1%}, the last message not waited for"
        return replace(floor, us=floor.us * (1 - uncounted), formula=formula)

    def fault(self, table: Table, reading: Meaning, message_size: int | None) -> str | None:
        """Return why a row is not of this fabric, or None: by its link, least time, largest rate.

        perftest's t_min and OSU's percentiles are of single messages or windows, which no more
        outrun the fabric than their mean does.  perftest's peak may by a little: it divides by
        whole cycles of the CPU (print_report_bw in src/perftest_parameters.c).
        """
        row = _row(table, message_size)
        other = _other_path(table, self.fabric, self.devices)
        if other or row is None or table.suite not in {"osu", "perftest"}:
            return other
        ceiling, floor = self.ceiling_of(message_size), self.floor(reading, message_size)
        for name in ("latency_min_us", "latency_p50_us"):
            if name in row and floor is not None:
                return _why_impossible(name, row[name], "us", floor=floor)
        if "bandwidth_p99_mb_s" in row and ceiling is not None:
            return _why_impossible(
                "bandwidth_p99_mb_s", row["bandwidth_p99_mb_s"], "MB/s", ceiling=ceiling
            )
        return None


def _why_impossible(
    name: str,
    value: float,
    unit: str,
    *,
    ceiling: Ceiling | None = None,
    floor: Floor | None = None,
) -> str | None:
    judged = judge_value(
        name=name,
        value=value,
        unit=unit,
        message_size=None,
        reference=None,
        ceiling=ceiling,
        floor=floor,
    )
    return f"{name}: {judged.reason}" if judged.verdict is Verdict.INVALID else None


def _uncounted(table: Table, reading: Meaning) -> Mapping[int, float]:
    """Return what may be missing from the mean of both ends' times, by message size.

    Of 2 x repetitions messages one end may miss the last, which is half as much of the mean.
    Where neither the table nor who ran it says how often, it was as often as the programs do by
    themselves, at least 1000 times (LAT_LOOP_LARGE of OSU 5.7, demo/osu_multi_lat.py), and what is
    missing shows in no digit.
    """
    if not reading.last_send_uncounted or "message_size" not in table.columns:
        return {}
    least = float(table.attributes.get("least_repetitions", 0))
    said = "repetitions" in table.columns
    repetitions = table.column("repetitions") if said else (least,) * len(table.rows)
    counts = zip(table.column("message_size"), repetitions, strict=True)
    return {int(size): 1 / (4 * repetitions) for size, repetitions in counts if repetitions > 0}


def _unknown_nodes(table: Table, reading: Meaning, rules: Rules) -> str | None:
    """Return why the rails of one node do not bind the sum over several pairs, or None.

    A run of our own puts all pairs between two nodes; of a file nobody knows, unless ``flows=``
    says that the pairs shared the rails.  What is too slow for one node is too slow for more.
    """
    pairs = num_pairs(table)
    is_sum = reading.kind is ProgramKind.BANDWIDTH and reading.pairs_share_rails
    if rules.path_required or rules.fabric is None or not is_sum or pairs < 2:
        return None
    if rules.fabric.num_flows >= pairs:
        return None
    return (
        f"the sum over {pairs} pairs, and on how many nodes they ran is not in the output: give a "
        f"--reference, or flows={pairs} in --link if all of them ran between two nodes"
    )


def _shared_rails(table: Table, reading: Meaning) -> str | None:
    """Return why one number of this table cannot be held against whole rails, or None.

    Several processes of a node divide its rails, and the output does not say how many sat where.
    """
    said = table.attributes
    if int(said.get("multi", 0)):
        return "several groups ran at once: how they shared the rails is not in the output"
    counts_own = {Consistency.TWICE_SIZE_OVER_TIME, Consistency.FOUR_TIMES_SIZE_OVER_TIME}
    processes = int(said.get("num_processes", 2))
    if reading.consistency in counts_own and processes > 2:
        return f"{processes} processes ran at once: how they shared the rails is not in the output"
    is_multi_pair_latency = reading.kind is ProgramKind.LATENCY and reading.pairs_share_rails
    if is_multi_pair_latency and "num_pairs" not in said:
        return "how many pairs shared the rails is not in the output"
    return None


#: Relative difference that averaging over ranks and repetitions may leave between two columns.
RELATIVE_SLACK = 0.02

#: half a unit in the last of two printed decimals
ROUNDING = 0.005

#: relative deviation that IMB allows, rounding of its two decimals on top; a wrong value counts 1
#: (TOL in src_c/IMB_declare.h, IMB_ddiff in src_c/IMB_chk_diff.c)
MOST_DEFECTS = 0.01 + ROUNDING

#: s by which a printed end of an interval may be off: half of iperf 2's coarsest digit
CLOCK_ROUNDING_S = 0.05

#: A receiver may count this fraction more per second than its sender: the two stop their clocks,
#: and with ``--omit`` start them, at their own times, with buffers in flight between them.
AHEAD_OF_SENDER = 0.25

#: A time and a rate are means over ranks and repetitions of their own (IMB-P2P); together they say
#: how many messages were under way, which is 1 or more by design.
FEWEST_UNDER_WAY = 0.5

_TIMES = {
    Consistency.SIZE_OVER_TIME: 1,
    Consistency.TWICE_SIZE_OVER_TIME: 2,
    Consistency.FOUR_TIMES_SIZE_OVER_TIME: 4,
}


def row_fault(table: Table, reading: Meaning, message_size: int | None) -> str | None:
    """Return why the row of ``message_size`` contradicts itself, or None where it is sound.

    Also names a failed data validation: ``-c`` of OSU, ``-DCHECK`` of IMB.
    """
    if str(table.attributes.get("validation", "Pass")) != "Pass" or _has_defects(table):
        return "the benchmark's own data validation failed: the bytes that arrived were wrong"
    fault = _run_fault(table)
    row = _row(table, message_size)
    if fault is not None or row is None:
        return fault
    coarse = rounding_mb_s(table)
    is_perftest = table.suite == "perftest"
    fault = order_fault(row, is_perftest=is_perftest, coarse_mb_s=coarse)
    fault = fault or _time_fault(table, row)
    if fault is not None or "bandwidth_mb_s" not in row:
        return fault
    expected = _expected_bandwidth(reading.consistency, row)
    if expected is None:
        return None
    low, high = expected
    if low - coarse <= row["bandwidth_mb_s"] <= high + coarse:
        return None
    return (
        f"the row contradicts itself: {reading.consistency.value} gives "
        f"{(low + high) / 2:.4g} MB/s, the table says {row['bandwidth_mb_s']:g}"
    )


def _has_defects(table: Table) -> bool:
    return "defects" in table.columns and max(table.column("defects")) > MOST_DEFECTS


#: what no row has the other way round, least first
_ORDERS = (
    ("latency_min_us", "latency_avg_us", "latency_max_us"),
    ("pure_communication_min_us", "pure_communication_us", "pure_communication_max_us"),
    # both sort them (omb_calculate_tail_lat in c/util/osu_util_mpi.c of OSU 7.4, print_report_lat)
    ("latency_p50_us", "latency_p90_us", "latency_p99_us", "latency_p999_us"),
    ("bandwidth_p50_mb_s", "bandwidth_p90_mb_s", "bandwidth_p99_mb_s"),
    ("bandwidth_mb_s", "bandwidth_peak_mb_s"),
)

#: of the same sorted times in perftest alone: OSU's least and most are those of ranks
_ORDERS_OF_PERFTEST = (
    ("latency_min_us", "latency_p50_us"),
    ("latency_p999_us", "latency_max_us"),
)


def order_fault(
    row: Mapping[str, float], *, is_perftest: bool = False, coarse_mb_s: float = 0.0
) -> str | None:
    """Return why a least, mean, percentile or most of a row is out of order, or None.

    Args:
        row: its numbers by column.
        is_perftest: whether its percentiles are of the times that its least and most are of.
        coarse_mb_s: half the last digit of its bandwidths, in MB/s.
    """
    for order in _ORDERS + (_ORDERS_OF_PERFTEST if is_perftest else ()):
        # a peak of 0.00 was not measured
        names = [name for name in order if name in row and (row[name] or "peak" not in name)]
        for less, more in pairwise(names):
            slack = 2 * ROUNDING
            if less.startswith("bandwidth"):
                slack += 2 * coarse_mb_s + RELATIVE_SLACK * row[more]
            if row[less] > row[more] + slack:
                return (
                    f"the row contradicts itself: {less} of {row[less]:g} is above {more} of "
                    f"{row[more]:g}"
                )
    return None


def _run_fault(table: Table) -> str | None:
    """Return why a run of iperf or iperf3 contradicts itself: bytes, seconds, rates of both ends.

    Records of earlier versions may lack some of them; what is not there is not checked.
    """
    said = table.attributes
    is_run = table.suite in {"iperf", "iperf3"} and "bandwidth_mb_s" in table.columns
    if not is_run or len(table.rows) != 1:
        return None
    rate = table.column("bandwidth_mb_s")[0]
    if "moved_bytes" in said and "duration_s" in said:
        moved_mb, seconds = float(said["moved_bytes"]) / 1e6, float(said["duration_s"])
        if seconds <= 0:
            return f"the run contradicts itself: {rate:g} MB/s in {seconds:g} s"
        slack = RELATIVE_SLACK + CLOCK_ROUNDING_S / seconds
        if abs(moved_mb / seconds - rate) > slack * rate + ROUNDING:
            return (
                f"the run contradicts itself: {moved_mb:.4g} MB in {seconds:g} s are "
                f"{moved_mb / seconds:.4g} MB/s, it says {rate:g}"
            )
    sent = float(said.get("sent_mb_s", rate))
    if rate > sent * (1 + AHEAD_OF_SENDER):
        return f"the run contradicts itself: {rate:g} MB/s arrived of {sent:g} sent"
    return None


def _time_fault(table: Table, row: dict[str, float]) -> str | None:
    """Return why a time and a message rate of one row contradict each other, or None."""
    if not {"latency_us", "message_rate_per_s"} <= row.keys() or not row["message_rate_per_s"]:
        return None
    time_us, rate = row["latency_us"], row["message_rate_per_s"]
    most = 2 * max(2, int(table.attributes.get("num_processes", 2)))
    if (
        rate * (time_us + ROUNDING) / 1e6 >= FEWEST_UNDER_WAY
        and rate * (time_us - ROUNDING) / 1e6 <= most
    ):
        return None
    return (
        f"the row contradicts itself: {rate:g} messages a second of {time_us:g} us each "
        f"are {rate * time_us / 1e6:.3g} under way at once"
    )


def describe_loss(table: Table) -> list[str]:
    """Return what was lost on the way of UDP, in words; nothing where all arrived."""
    lost, sent = (int(table.attributes.get(name, 0)) for name in ("lost_datagrams", "datagrams"))
    if lost <= 0 or sent <= 0:
        return []
    return [f"{lost} of {sent} datagrams ({lost / sent:.2%}) were lost; only what arrived counts"]


def _row(table: Table, message_size: int | None) -> dict[str, float] | None:
    if message_size is None or "message_size" not in table.columns:
        return None
    index = table.columns.index("message_size")
    for row in table.rows:
        if row[index] == message_size:
            return dict(zip(table.columns, row, strict=True))
    return None


def _expected_bandwidth(law: Consistency, row: dict[str, float]) -> tuple[float, float] | None:
    """Return the interval in which the printed bandwidth must lie, in MB/s."""
    size = row["message_size"]
    if law in _TIMES:
        time_us = row.get("latency_us", row.get("latency_max_us", 0.0))
        if time_us <= ROUNDING:
            return None
        moved = _TIMES[law] * size
        return _widened(moved / (time_us + ROUNDING), moved / (time_us - ROUNDING))
    if law is Consistency.RATE_TIMES_SIZE and "message_rate_per_s" in row:
        value = row["message_rate_per_s"] * size / 1e6
        rounding = ROUNDING * size / 1e6 if row["message_rate_per_s"] % 1 else 0.5 * size / 1e6
        return _widened(value - rounding, value + rounding)
    return None


def _widened(low: float, high: float) -> tuple[float, float]:
    return low * (1 - RELATIVE_SLACK) - ROUNDING, high * (1 + RELATIVE_SLACK) + ROUNDING
