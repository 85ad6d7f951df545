"""The limits that apply to one table: its fabric as the program loads it, and what it says."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.program import (
    Consistency,
    Meaning,
    ProgramKind,
    buffers_of,
    ends_on_gpus,
)
from fabricproof.core.measure import Table
from fabricproof.physics import (
    Ceiling,
    Fabric,
    Floor,
    Gpus,
    Protocol,
    bound,
    find_protocol,
    latency_floor_us,
    message_ceiling,
)
from fabricproof.verdict.curve import start_up_us
from fabricproof.verdict.laws import (
    ROUNDING,
    Row,
    percentiles,
    rounding_mb_s,
    row_fault,
    wire_bytes,
)
from fabricproof.verdict.value import Rules, from_ceiling, impossible

#: a missing fraction of a time that no printed digit shows
NEGLIGIBLE = 0.001


def num_pairs(table: Table) -> int:
    """Return how many pairs (or streams) the output says ran at once; 1 if it says nothing.

    ``num_processes`` is printed by IMB, whose pair benchmarks use every second process to send.
    """
    said = table.attributes
    pairs = max(int(said.get(name, 1)) for name in ("num_pairs", "streams"))
    return max(pairs, int(said.get("num_processes", 2)) // 2)


def loaded_fabric(table: Table, fabric: Fabric) -> Fabric:
    """Return ``fabric`` as this table's program loads it: directions, number of flows, GPUs."""
    protocol, mtu = _spoken(table, fabric)
    ends = ends_on_gpus(buffers_of(table))
    queue_pairs = int(table.attributes.get("num_qps", 1) or 1)
    return replace(
        fabric,
        protocol=protocol,
        mtu=mtu,
        bidirectional=reading_of(table).bidirectional,
        gpus=replace(fabric.gpus or Gpus(), ends=ends) if ends else None,
        num_rails=max(fabric.num_rails, int(table.attributes.get("num_ports", 1))),
        num_flows=max(fabric.num_flows, num_pairs(table), queue_pairs),
    )


#: technology -> what verbs speak over it
_VERBS = {"ethernet": "rocev2", "infiniband": "ib"}


def _spoken(table: Table, fabric: Fabric) -> tuple[Protocol | str | None, int | None]:
    """Return the protocol and its MTU: what is stated, else what the output itself says.

    Verbs over Ethernet are RoCE, and the ``Mtu`` that perftest prints is the path MTU of its queue
    pairs.  ``Transport type : IW`` is iWARP, whose MTU is IP's and not the printed one;
    ``Connection type : RawEth`` sends each message as one frame, which counts whole.
    """
    said = table.attributes
    is_ethernet = fabric.link.technology == "ethernet"
    if table.suite != "perftest" or fabric.link.technology not in _VERBS:
        is_udp = str(said.get("protocol", "")).lower() == "udp"
        own = "udp" if is_udp and is_ethernet else None
        return fabric.protocol or own, fabric.mtu
    if is_ethernet and fabric.protocol is None:
        if said.get("transport") == "IW":
            return "iwarp", fabric.mtu
        if said.get("connection") == "RawEth":
            largest = int(max(table.column("message_size")))
            frames = find_protocol("raw-ethernet").mtus
            return "raw-ethernet", largest if largest in frames else None
    protocol = find_protocol(_VERBS[fabric.link.technology])
    printed = int(said.get("mtu", 0))
    path_mtu = printed if printed in protocol.mtus else None
    if fabric.protocol is not None:
        return fabric.protocol, fabric.mtu or (path_mtu if fabric.framing == protocol else None)
    # An MTU that was stated beside no protocol may be the one that IP has, 1500 or 9000.
    stated = fabric.mtu if fabric.mtu in protocol.mtus else None
    return protocol.name, path_mtu or stated


class Limits:
    """What one table is judged by: what is stated, applied to what the table says of its run.

    Attributes:
        reading: how the table is to be read.
        fabric: as the program loads it, None if nothing is declared.
        ceiling: what binds, None without a fabric.
        reference: what the plateau is judged by.
        silence: why there is no reference where physics would have one, None otherwise.
        unknown_nodes: why a number that one node's rails could carry is no PASS, or None.
        most_nodes: nodes whose rails the pairs may have had together.
    """

    def __init__(self, table: Table, rules: Rules) -> None:
        self.table, self.rules, self.reading = table, rules, reading_of(table)
        self.fabric = loaded_fabric(table, rules.fabric) if rules.fabric else None
        given = rules.references.get("bandwidth")
        shared = _shared_rails(table, self.reading)
        if shared and self.reading.kind is ProgramKind.LATENCY:
            given = None
        self.silence = f"{shared}; give a --reference" if shared and given is None else None
        self.unknown_nodes = _unknown_nodes(table, self.reading, rules)
        self.most_nodes = num_pairs(table) if self.unknown_nodes else 1
        self.ceiling = ceiling = bound(self.fabric) if self.fabric else None
        self.reference = given
        if ceiling is not None:
            if given is None and shared is None:
                self.reference = from_ceiling(ceiling, tolerance=rules.tolerance)
            # At the most each pair has a node of its own, with all its rails.
            high = ceiling.high_mb_s * self.most_nodes + rounding_mb_s(table)
            self.ceiling = replace(ceiling, high_mb_s=high)
        if "bandwidth" in rules.references:
            self.unknown_nodes = None

    def ceiling_of(self, num_bytes: int | None) -> Ceiling | None:
        """Return the ceiling for messages of ``num_bytes`` bytes: of bytes, packets or rates.

        perftest posts each message by itself; an MPI library may join several.
        """
        if self.ceiling is None or self.fabric is None or not num_bytes:
            return self.ceiling
        shaper = self.fabric.shaper
        if shaper is None:
            is_perftest = self.table.suite == "perftest"
            messages = message_ceiling(self.fabric, num_bytes, packet_each=is_perftest)
            high = messages.high_mb_s * self.most_nodes + rounding_mb_s(self.table) + ROUNDING
            messages = replace(messages, high_mb_s=high)
            return min(self.ceiling, messages, key=lambda each: each.high_mb_s)
        rate = self.ceiling.high_mb_s  # which short messages may exceed
        least_us = shaper.least_time_us(num_bytes, rate)
        high = num_bytes / least_us if least_us > 0 else float("inf")
        return replace(self.ceiling, high_mb_s=max(rate, high))

    @cached_property
    def start_us(self) -> float | None:
        """What a message costs before its bytes count, in us; None if it is not known.

        By the small rows of the table; else the floor over the messages that perftest keeps under
        way at once: its ``TX depth`` (run_iter_bw in src/perftest_resources.c), and of reads its
        ``Outstand reads``, which only programs that read print (ctx_print_test_info).
        """
        start = start_up_us(self.table)
        if start is not None or self.fabric is None:
            return start
        depth = reads = 1
        if self.table.suite == "perftest" and self.reading.kind is ProgramKind.BANDWIDTH:
            depth = int(self.table.attributes.get("tx_depth", 1))
            reads = int(self.table.attributes.get("outstanding_reads", depth))
        return latency_floor_us(self.fabric, 0).us / max(1, min(depth, reads))

    @cached_property
    def curve_mb_s(self) -> float | None:
        """What the points inside the curve are judged by: one rail's worth of the reference.

        Up to a threshold of its own an MPI sends a message over one rail (document 000 of the
        sources: up to 8 KiB).  None if buffers are on GPUs: there an MPI has more ways to move a
        message, each with a step of its own.
        """
        if self.reference is None or (self.fabric is not None and self.fabric.gpus is not None):
            return None
        if self.fabric is None or self.fabric.num_rails < 2:
            return self.reference.value
        share = bound(replace(self.fabric, num_rails=1)).low_mb_s / bound(self.fabric).low_mb_s
        return self.reference.value * share

    def floor(self, row: Row) -> Floor | None:
        """Return the latency floor of a row's message, None where no crossing is timed.

        Of 2 x repetitions messages one end may miss the last, which is half as much of the mean of
        both ends' times.  By themselves programs repeat at least 1000 times (LAT_LOOP_LARGE of OSU
        5.7, demo/osu_multi_lat.py): that shows in no digit.
        """
        num_bytes, reading = wire_bytes(row), self.reading
        if self.fabric is None or num_bytes is None or not reading.crosses:
            return None
        if num_bytes == 0 and not reading.empty_crosses:
            return None
        floor = latency_floor_us(self.fabric, num_bytes)
        if reading.round_trip:
            request = latency_floor_us(self.fabric, 0)
            formula = f"the answer's {floor.formula}, after a request's {request.us:.3g} us"
            floor = replace(floor, us=floor.us + request.us, formula=formula)
        said = float(self.table.attributes.get("least_repetitions", 0))
        repetitions = row.get("repetitions", said)
        uncounted = 1 / (4 * repetitions) if repetitions > 0 else 0.0
        if not reading.last_send_uncounted or uncounted < NEGLIGIBLE:
            return floor
        formula = f"({floor.formula}) less {uncounted:.1%}, the last message not waited for"
        return replace(floor, us=floor.us * (1 - uncounted), formula=formula)

    def fault(self, row: Row) -> str | None:
        """Return why a row proves nothing, or None: it is unsound, or an end cannot be.

        perftest's t_min and OSU's percentiles are of single messages or windows, which do not
        outrun the fabric either.  perftest's peak may by a little: it divides by whole cycles of
        the CPU (print_report_bw in src/perftest_parameters.c).
        """
        fault = row_fault(self.table, self.reading, row)
        if fault or self.table.suite not in {"osu", "perftest"}:
            return fault
        columns = self.table.columns if row else ()
        times = [
            each for each in ("latency_min_us", *percentiles(columns, "latency")) if each in row
        ]
        for name in (*times[:1], *percentiles(columns, "bandwidth")[-1:]):
            is_time = name.endswith("_us")
            ceiling = None if is_time else self.ceiling_of(wire_bytes(row))
            floor = self.floor(row) if is_time else None
            if (ceiling or floor) and (why := impossible(row[name], ceiling, floor)):
                return f"{name}: {why}"
        return None


def _unknown_nodes(table: Table, reading: Meaning, rules: Rules) -> str | None:
    """Return why the rails of one node do not bind the sum over several pairs, or None.

    A run of our own puts all pairs between two nodes; of a file it is unknown, unless ``flows=``
    says that the pairs shared the rails.
    """
    pairs, fabric = num_pairs(table), rules.fabric
    is_sum = reading.kind is ProgramKind.BANDWIDTH and reading.pairs_share_rails and pairs > 1
    if not is_sum or rules.path_required or fabric is None or fabric.num_flows >= pairs:
        return None
    return (
        f"the sum over {pairs} pairs, and on how many nodes they ran is not in the output: give a "
        f"--reference, or flows={pairs} in --link if all of them ran between two nodes"
    )


def _shared_rails(table: Table, reading: Meaning) -> str | None:
    """Return why one number of this table cannot be held against whole rails, or None."""
    said = table.attributes
    processes = int(said.get("num_processes", 2))
    counts_own = {Consistency.TWICE_SIZE_OVER_TIME, Consistency.FOUR_TIMES_SIZE_OVER_TIME}
    if int(said.get("multi", 0)):
        return "several groups ran at once: how they shared the rails is not in the output"
    if reading.consistency in counts_own and processes > 2:
        return f"{processes} processes ran at once: how they shared the rails is not in the output"
    if reading.kind is ProgramKind.LATENCY and reading.pairs_share_rails:
        return (
            None if "num_pairs" in said else "how many pairs shared the rails is not in the output"
        )
    return None
