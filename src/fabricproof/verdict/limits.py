"""The limits that apply to one table: its fabric as the program loads it, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.program import Consistency, Kind, Meaning
from fabricproof.core.measure import Table
from fabricproof.physics import (
    Ceiling,
    Fabric,
    Floor,
    Protocol,
    bound,
    find_protocol,
    latency_floor_us,
)
from fabricproof.verdict.curve import start_up_us
from fabricproof.verdict.reference import CURVE_TOLERANCE, Reference, from_ceiling
from fabricproof.verdict.value import Rules

#: a missing fraction of a time that no printed digit shows
NEGLIGIBLE = 0.001


def num_pairs(table: Table) -> int:
    """Return how many pairs (or streams) the output says ran at once; 1 where it says nothing.

    ``num_processes`` is printed by IMB, whose pair benchmarks use every second process to send.
    """
    said = table.attributes
    pairs = max(int(said.get(name, 1)) for name in ("num_pairs", "streams"))
    return max(pairs, int(said.get("num_processes", 2)) // 2)


def loaded_fabric(table: Table, fabric: Fabric) -> Fabric:
    """Return ``fabric`` as this table's program loads it: its directions, its number of flows."""
    protocol, mtu = _spoken(table, fabric)
    return replace(
        fabric,
        protocol=protocol,
        mtu=mtu,
        bidirectional=reading_of(table).bidirectional,
        num_flows=max(
            fabric.num_flows, num_pairs(table), int(table.attributes.get("num_qps", 1) or 1)
        ),
    )


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
    protocol = find_protocol(_VERBS[fabric.link.technology])
    printed = int(table.attributes.get("mtu", 0))
    path_mtu = printed if printed in protocol.mtu_choices else None
    if fabric.protocol is not None:
        return fabric.protocol, fabric.mtu or (path_mtu if fabric.framing == protocol else None)
    # An MTU that was stated beside no protocol may be the one that IP has, 1500 or 9000.
    stated = fabric.mtu if fabric.mtu in protocol.mtu_choices else None
    return protocol.name, path_mtu or stated


def _in_flight(table: Table) -> int:
    """Return how many messages perftest keeps under way at once; 1 where that is not known.

    ``TX depth`` in its header: ``run_iter_bw`` posts until so many are not completed
    (src/perftest_resources.c of linux-rdma/perftest).  Of reads the adapter has fewer, its
    ``Outstand reads``, which the programs that read print alone (ctx_print_test_info).
    """
    if table.suite != "perftest" or reading_of(table).kind is not Kind.BANDWIDTH:
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

    @classmethod
    def of(cls, table: Table, reading: Meaning, rules: Rules) -> Limits:
        """Return the limits of ``table`` under ``rules``."""
        fabric = loaded_fabric(table, rules.fabric) if rules.fabric else None
        ceiling = bound(fabric) if fabric else None
        silence = _shared_rails(table, reading)
        reference = rules.references.get("bandwidth")
        if silence and reading.kind is Kind.LATENCY:
            reference = None
        elif reference is not None:
            silence = None
        elif ceiling is not None and silence is None:
            reference = from_ceiling(ceiling, tolerance=rules.tolerance)
        unknown_nodes = _unknown_nodes(table, reading, rules)
        if unknown_nodes and ceiling is not None:
            # At the most each pair has a node of its own, with all its rails.
            ceiling = replace(ceiling, high_mb_s=ceiling.high_mb_s * num_pairs(table))
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
        its own business (document 000 of the sources: equal to one rail up to 8 KiB).
        """
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


def _uncounted(table: Table, reading: Meaning) -> Mapping[int, float]:
    """Return what may be missing from the mean of both ends' times, by message size.

    Of 2 x repetitions messages one end may miss the last, which is half as much of the mean.
    Where neither the table nor who ran it says how often, it was as often as the programs do by
    themselves, at least 1000 times (LAT_LOOP_LARGE of OSU 5.7, demo/osu_multi_lat.py), and what is
    missing shows in no digit.
    """
    if not reading.last_send_uncounted:
        return {}
    least = float(table.attributes.get("least_repetitions", 0))
    said = "repetitions" in table.columns
    repetitions = table.column("repetitions") if said else (least,) * len(table.rows)
    counts = zip(table.column("message_size"), repetitions, strict=True)
    return {int(size): 1 / (4 * repetitions) for size, repetitions in counts if repetitions > 0}


def _unknown_nodes(table: Table, reading: Meaning, rules: Rules) -> str | None:
    """Return why the rails of one node do not bind the sum over several pairs, or None.

    A run of our own puts all pairs between two nodes; of a file nobody knows, unless ``--flows``
    says that the pairs shared the rails.  What is too slow for one node is too slow for more.
    """
    pairs = num_pairs(table)
    is_sum = reading.kind is Kind.BANDWIDTH and reading.pairs_share_rails
    if rules.road_required or rules.fabric is None or not is_sum or pairs < 2:
        return None
    if rules.fabric.num_flows >= pairs:
        return None
    return (
        f"the sum over {pairs} pairs, and on how many nodes they ran is not in the output: give a "
        f"--reference, or --flows {pairs} if all of them ran between two nodes"
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
    is_multi_pair_latency = reading.kind is Kind.LATENCY and reading.pairs_share_rails
    if is_multi_pair_latency and "num_pairs" not in said:
        return "how many pairs shared the rails is not in the output"
    return None
