"""Bus bandwidth of nccl-tests and rccl-tests, held against the rails of a node.

``busbw`` is size / time x a factor f of the operation (doc/PERFORMANCE.md of NVIDIA/nccl-tests).
With n ranks on N nodes, and a message of S bytes as these programs count it, a node that sends x S
bytes over rails of rate R takes x S / R; so that busbw = f R / x:

- most: x is the least that any algorithm may send (:func:`fabricproof.physics.least_bytes`; a
  switch that adds halves what a ring sends).
- expected: x is that of a ring, which is f itself: busbw = R.  Of gather, scatter and alltoall x is
  the least.
- sendrecv: each rank sends S to the next.  If c ranks of a node have their neighbour elsewhere,
  each may have one rail, and all of them share the R of all rails.

Their buffers are on GPUs.  What MPI programs do with such buffers is judged by :func:`on_gpus`.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from fabricproof.benchmarks.catalogue import program_of
from fabricproof.benchmarks.program import UNNAMED, Bus
from fabricproof.core.measure import Table, Verdict
from fabricproof.core.units import at_size, size_label
from fabricproof.physics import Ceiling, Fabric, Gpus, bound
from fabricproof.physics.collective import Operation, RankLayout, least_bytes
from fabricproof.verdict.causes.evidence import through_host
from fabricproof.verdict.collective import RING_TOLERANCE
from fabricproof.verdict.curve import SMALL_MESSAGE_BYTES
from fabricproof.verdict.laws import Law, Row, law_fault, rounding_mb_s
from fabricproof.verdict.limits import Limits
from fabricproof.verdict.value import (
    DEFAULT_TOLERANCE,
    Judgement,
    from_ceiling,
    judge_value,
)

QUANTITY = "device_busbw"

#: Operations whose size is what one rank sends to all, or gets from all; the catalogue of
#: collectives counts one rank's block of it.
_OF_BLOCKS = frozenset(
    {Operation.ALLGATHER, Operation.ALLTOALL, Operation.GATHER, Operation.SCATTER}
)
#: operations that a ring does with no more than any algorithm must send
_AT_LEAST = frozenset({Operation.ALLTOALL, Operation.GATHER, Operation.SCATTER})

#: A row shows the rate of the rails where starting takes less than this part of its time; starting
#: takes as long as the smallest message, or so many us where the table has no small one.
_START_FRACTION, _USUAL_START_US = 0.05, 50.0

#: Allowed fraction below the rails unless stated otherwise: an operation ends with the slowest of
#: all ranks, as a step of hpcc's rings does.
BUS_TOLERANCE = RING_TOLERANCE

#: A longer message that carries less than this part of what a shorter one did is a dip.  Protocols
#: change below so many bytes, and cost up to a third there; beyond, nothing explains it.
_DIP, _DIP_BYTES = 0.5, 2**20

#: means over ranks and repetitions agree within so many times their last digit's half
_MEANS = 2


def judge_busbw(limits: Limits) -> list[Judgement]:
    """Judge the bus bandwidth of the largest message, and what is wrong with any.

    ``limits`` are of a table of nccl-tests, out of place or in place; its fabric has the rails
    of one node, its references are of :data:`QUANTITY`.
    """
    table, rules = limits.table, limits.rules
    rows, layout, bus = table.named_rows, _layout(table), _bus(table)
    silence = _silence(table, layout, bus)
    in_place = "_in_place" if table.attributes["placement"] == "in-place" else ""
    # Our own runs state the rails of a node, one included.
    unknown_rails = "" if rules.path_required else _unknown_rails(rules.fabric, layout)
    asked = rules.tolerance_asked or rules.tolerance != DEFAULT_TOLERANCE
    found = []
    for row in rows:
        size, named, ceiling, derived = int(row["message_size"]), row is rows[-1], None, None
        fault = _fault(row, limits, bus, layout) or (limits.fault(row) if named else None)
        is_short = "latency_avg_us" in row or size <= SMALL_MESSAGE_BYTES
        if is_short and not (named or fault or row["bus_bandwidth_mb_s"]):
            continue  # lost in rounding
        if rules.fabric and bus and layout and size and not silence:
            ceiling = _ceiling(table, rules.fabric, bus, layout, size)
            tolerance = rules.tolerance if asked else BUS_TOLERANCE
            derived = from_ceiling(ceiling, tolerance=tolerance) if named else None
        given = rules.references.get(at_size(QUANTITY, size))
        given = given or (rules.references.get(QUANTITY) if named else None)
        judged = judge_value(
            name=at_size(f"{QUANTITY}{in_place}", size),
            value=row["bus_bandwidth_mb_s"],
            unit="MB/s",
            message_size=size,
            reference=given or derived,
            ceiling=None if unknown_rails else ceiling,
            fault=fault,
            silence=silence or None,
            named=named,
        )
        doubt = None if given else _doubt(judged, row, limits, unknown_rails if ceiling else "")
        if doubt:
            judged = replace(judged, verdict=Verdict.UNJUDGED, reason=doubt)
        found.append(_as_a_whole(judged, limits) if named else judged)
    return [each for each in found if each.named or each.verdict is Verdict.INVALID]


def _layout(table: Table) -> RankLayout | None:
    ranks = int(table.attributes.get("num_ranks", 0))
    here = int(table.attributes.get("ranks_per_node", 0))
    return RankLayout(num_ranks=ranks, ranks_per_node=here) if ranks > 1 and here else None


def _silence(table: Table, layout: RankLayout | None, bus: Bus | None) -> str:
    """Return why no rail says what a run should have; empty if one does."""
    said = table.attributes
    if not int(said.get("num_ranks", 0)):
        return "on which nodes the ranks ran is not in the output"
    if int(said["num_nodes"]) < 2:
        return "all ranks ran on one node: their bytes crossed no link between nodes"
    if int(said.get("num_groups", 1)) > 1:
        return "several groups ran at once: how they shared the rails is not in the output"
    if layout is None:
        return "the nodes do not hold as many ranks each"
    return "" if bus else f"what {table.program} should reach is not known"


def _unknown_rails(fabric: Fabric | None, layout: RankLayout | None) -> str:
    """Return why what one rail could carry is no PASS; what is too slow for one is for more."""
    if fabric is None or layout is None or layout.ranks_per_node == 1 or fabric.num_rails > 1:
        return ""
    return (
        f"{layout.ranks_per_node} GPUs on each node, and how many rails they have is not in the "
        f"output: give --link NAME,rails=N, or --reference {QUANTITY}=..."
    )


def _doubt(judged: Judgement, row: Row, limits: Limits, unknown_rails: str) -> str:
    """Return why a number that no reference names is neither good nor bad; empty if it is."""
    if judged.verdict is Verdict.INVALID:
        return ""
    if judged.verdict is not Verdict.FAIL:
        return unknown_rails
    first, start_us = limits.table.named_rows[0], _USUAL_START_US
    if first["message_size"] <= SMALL_MESSAGE_BYTES and "latency_avg_us" in first:
        start_us = first["latency_avg_us"]
    # bytes over MB/s are us; a rate that is printed as 0.00 took longer than any start
    if row["message_size"] < start_us / _START_FRACTION * row["bandwidth_mb_s"]:
        size = size_label(int(row["message_size"]))
        return f"{judged.reason}; but {size} is too short to show the rate"
    gpus = limits.rules.fabric.gpus if limits.rules.fabric else None
    why = unpromised(gpus) if gpus else ""
    return f"{judged.reason}; but {why}: give a reference of {QUANTITY}" if why else ""


def _as_a_whole(judged: Judgement, limits: Limits) -> Judgement:
    """Return a PASS of the largest message as the verdict of the whole run."""
    if judged.verdict is not Verdict.PASS:
        return judged
    if limits.table.attributes.get("own_minimum") == "FAILED":
        reason = "the mean of all sizes is below the minimum that was set (NCCL_TESTS_MIN_BW)"
        return replace(judged, verdict=Verdict.FAIL, reason=reason)
    if dips := _dips(limits.table):
        reason = f"the largest message is fast enough, but {dips[0]}"
        return replace(judged, verdict=Verdict.UNJUDGED, reason=reason)
    return judged


def _dips(table: Table) -> list[str]:
    """Return the long messages that carry far less than shorter ones, in words."""
    found, best, best_size = [], 0.0, 0
    for row in table.named_rows:
        size, value = int(row["message_size"]), row["bus_bandwidth_mb_s"]
        if size >= _DIP_BYTES and value < _DIP * best:
            found.append(
                f"{size_label(size)} has {value:g} MB/s, {1 - value / best:.0%} less than "
                f"{size_label(best_size)} ({best:g})"
            )
        if size >= _DIP_BYTES and value > best:
            best, best_size = value, size
    return found


def describe_busbw(table: Table) -> list[str]:
    """Return what is worth reading of nccl-tests beside the verdict."""
    said = table.attributes
    found = [f"dip: {each}" for each in _dips(table)]
    if not said["checked"] and said["placement"] == "out-of-place":
        found.append("the values that arrived were not checked (-c 0)")
    return found


def _ceiling(table: Table, fabric: Fabric, bus: Bus, layout: RankLayout, size: int) -> Ceiling:
    """Return what busbw can be over the rails of ``fabric``, as an interval."""
    rails, factor = _one_way(fabric), bus.factor.of(layout.num_ranks)
    if bus.operation is None:
        one = _one_way(replace(fabric, num_rails=1, unlike_rails_high_mb_s=None))
        senders = int(table.attributes.get("neighbours_elsewhere", 0))
        expected, most = min(one.low_mb_s, rails.low_mb_s / senders), rails.high_mb_s / senders
    else:
        crossing = _crossing(bus.operation, size, layout)
        usual = crossing if bus.operation in _AT_LEAST else factor
        expected, most = factor * rails.low_mb_s / usual, factor * rails.high_mb_s / crossing
    return replace(
        rails,
        low_mb_s=expected,
        nominal_mb_s=max(expected, min(most, rails.nominal_mb_s)),
        high_mb_s=most + rounding_mb_s(table),
        formula=f"{rails.formula}, of {layout.num_ranks} ranks on {layout.num_nodes} nodes",
    )


def _bus(table: Table) -> Bus | None:
    """Return what a program does; of one that does not print its name, what its numbers tell.

    Only allreduce and reduce_scatter combine values without a root, and their factors differ.
    """
    if table.program != UNNAMED:
        program = program_of(table.suite, table.program)
        return program.bus if program else None
    said = table.attributes
    combines = said.get("operation", "none") != "none"
    ranks = int(said.get("num_ranks", 0))
    if ranks < 2 or not combines or str(said.get("root", "-1")) not in {"-1", "N/A"}:
        return None
    names = ("all_reduce_perf", "reduce_scatter_perf")
    programs = filter(None, (program_of(table.suite, name) for name in names))
    row, coarse = table.named_rows[-1], _MEANS * rounding_mb_s(table)
    agree = [
        each.bus
        for each in programs
        if each.bus and law_fault(_bus_law(each.bus, ranks), row, coarse) is None
    ]
    return agree[0] if len(agree) == 1 else None


#: size / time is the rate of the algorithm, and that x a factor the rate of the bus
_RATE_LAW = Law(
    "bandwidth_mb_s", ("message_size", "latency_avg_us"), lambda size, us: size / us, "size / time"
)


def _bus_law(bus: Bus, ranks: int) -> Law:
    factor = bus.factor.of(ranks)
    words = f"algbw x {factor:g}"
    return Law("bus_bandwidth_mb_s", ("bandwidth_mb_s",), lambda rate: rate * factor, words)


def _one_way(fabric: Fabric) -> Ceiling:
    """Return what the rails carry one way while they carry as much the other way."""
    both = bound(replace(fabric, bidirectional=True))
    one = bound(replace(fabric, bidirectional=False))
    return replace(one, low_mb_s=min(one.low_mb_s, both.low_mb_s / 2))


def _crossing(operation: Operation, size: int, layout: RankLayout) -> float:
    """Return what the busiest node must send or receive at least, in messages of ``size``."""
    blocks = layout.num_ranks if operation in _OF_BLOCKS else 1
    whole = size * layout.num_ranks
    nodes = least_bytes(operation, whole // blocks, layout)
    return max(max(node.sent, node.received) for node in nodes) / whole


def _fault(row: Row, limits: Limits, bus: Bus | None, layout: RankLayout | None) -> str | None:
    outside = int(limits.table.attributes["out_of_bounds"])
    if row.get("wrong_values", 0) > 0:
        return f"{row['wrong_values']:g} values that arrived were wrong"
    if outside > 0:
        return f"{outside} values of the run were beyond their limit"
    if bus is None or "latency_avg_us" not in row:
        return None
    laws = [_RATE_LAW, *([_bus_law(bus, layout.num_ranks)] if layout else [])]
    coarse = _MEANS * rounding_mb_s(limits.table)
    return next(filter(None, (law_fault(law, row, coarse) for law in laws)), None)


def on_gpus(
    judgements: Sequence[Judgement], buffers: str, fabric: Fabric | None, given: Container[str]
) -> tuple[list[Judgement], list[str]]:
    """Return judgements of buffers on GPUs under their own names, and what is worth reading.

    Physics promises a bandwidth only if the adapter reaches the GPU and its slot is stated; else
    what is below the ceilings is UNJUDGED.

    Args:
        judgements: as of buffers of hosts.
        buffers: one of :data:`fabricproof.core.units.BUFFERS`.
        fabric: as the program loads it; None if none was declared.
        given: the quantities that a reference was given for.
    """
    found, told = [], []
    for each in judgements:
        if each.verdict is Verdict.UNJUDGED and not each.named:
            continue  # a point inside the curve, which no law binds
        mine, sentence = _unless_unpromised(each, fabric, given), None
        if fabric is not None and each.value is not None and each.unit == "MB/s" and each.named:
            sentence = through_host(each.value, fabric)
        if sentence and mine.verdict is Verdict.UNJUDGED:
            mine = replace(mine, reason=f"{mine.reason}; {sentence}")
        if sentence and mine.verdict is not Verdict.PASS:
            told.append(f"{buffers}{each.name}: {sentence}")
        named = each.name.startswith(("bandwidth", "latency"))
        found.append(replace(mine, name=f"{buffers}{each.name}") if named else mine)
    return found, told


def _unless_unpromised(
    judgement: Judgement, fabric: Fabric | None, given: Container[str]
) -> Judgement:
    value, lower = judgement.value, judgement.lower
    is_given = judgement.name in given or "bandwidth" in given
    if judgement.verdict is not Verdict.FAIL or is_given or fabric is None or fabric.gpus is None:
        return judgement
    why = unpromised(fabric.gpus)
    if not why or value is None or lower is None or value >= lower:
        return judgement
    reason = f"{judgement.reason}; but {why}: give a reference"
    return replace(judgement, verdict=Verdict.UNJUDGED, reason=reason)


def unpromised(gpus: Gpus) -> str:
    """Return why physics promises no bandwidth of GPUs; empty where it does."""
    if gpus.direct is None:
        return "whether GPUDirect is possible here is not stated"
    if not gpus.direct:
        return (
            "GPUDirect is not possible here, and what the copies through the host cost is not known"
        )
    return "" if gpus.slot is not None else "the slot of the GPU is not stated"
