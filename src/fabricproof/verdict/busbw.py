"""Bus bandwidth of nccl-tests and rccl-tests, held against the rails of a node.

``busbw`` is size / time x a factor f of the operation (doc/PERFORMANCE.md of NVIDIA/nccl-tests).
With n ranks on N nodes, and a message of S bytes as these programs count it, a node that sends x S
bytes over rails of rate R takes x S / R; so that busbw = f R / x:

- most: x is the least that any algorithm may send (:func:`fabricproof.physics.least_bytes`; a
  switch that adds halves what a ring sends).
- expected: x is that of a ring, which is f itself: busbw = R.  Of gather, scatter and alltoall x is
  the least.
- sendrecv: each rank sends S to the next.  Where c ranks of a node have their neighbour elsewhere,
  each may have one rail, and all of them share the R of all rails.

The buffers are those of GPUs: the quantity is ``device_busbw``, and no reference of host memory
speaks of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fabricproof.benchmarks.catalogue import program_of
from fabricproof.benchmarks.program import UNNAMED, Bus
from fabricproof.core.measure import Table, Verdict
from fabricproof.core.units import at_size, size_label
from fabricproof.physics import Ceiling, Fabric, bound
from fabricproof.physics.collective import Operation, RankLayout, least_bytes
from fabricproof.verdict.curve import SMALL_MESSAGE_BYTES
from fabricproof.verdict.gpus import unpromised
from fabricproof.verdict.laws import Law, Row, law_fault, rounding_mb_s
from fabricproof.verdict.limits import Limits
from fabricproof.verdict.rings import RING_TOLERANCE
from fabricproof.verdict.value import (
    DEFAULT_TOLERANCE,
    Judgement,
    from_ceiling,
    judge_value,
)

SUITES = frozenset({"nccl-tests", "rccl-tests"})

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

#: Allowed fraction below the rails where nobody says otherwise: an operation ends with the slowest
#: of all ranks, as a step of hpcc's rings does.
BUS_TOLERANCE = RING_TOLERANCE

#: A longer message that carries less than this part of what a shorter one did is a dip.  Protocols
#: change below so many bytes, and cost up to a third there; beyond, nothing explains it.
_DIP, _DIP_BYTES = 0.5, 2**20

#: means over ranks and repetitions agree within so many times their last digit's half
_MEANS = 3


def judge_busbw(limits: Limits) -> list[Judgement]:
    """Judge the bus bandwidth of the largest message, and what is wrong with any.

    Args:
        limits: of a table of :data:`SUITES`, out of place or in place; the rails of its fabric are
            those of one node, its references of :data:`QUANTITY`.
    """
    table, run = limits.table, _Run.of(limits.table)
    rows = table.named_rows
    start_us = _USUAL_START_US
    if rows and rows[0]["message_size"] <= SMALL_MESSAGE_BYTES and "latency_avg_us" in rows[0]:
        start_us = rows[0]["latency_avg_us"]
    judged = [
        _judged(row, limits, run, start_us=start_us, named=row is rows[-1])
        for row in rows
        if row is rows[-1] or not _lost_in_rounding(row) or _fault(row, limits, run)
    ]
    if table.attributes.get("own_minimum") == "FAILED" and judged[-1].verdict is Verdict.PASS:
        reason = "the mean of all sizes is below the minimum that was set (NCCL_TESTS_MIN_BW)"
        judged[-1] = replace(judged[-1], verdict=Verdict.FAIL, reason=reason)
    dips = _dips(rows)
    if dips and judged[-1].verdict is Verdict.PASS:
        reason = f"the largest message is fast enough, but {dips[0]}"
        judged[-1] = replace(judged[-1], verdict=Verdict.UNJUDGED, reason=reason)
    return [each for each in judged if each.named or each.verdict is Verdict.INVALID]


def _dips(rows: list[dict[str, float]]) -> list[str]:
    """Return the long messages that carry far less than shorter ones, in words."""
    found, best, best_size = [], 0.0, 0
    for row in rows:
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
    """Return what is worth reading beside the verdict."""
    said = table.attributes
    found = [f"dip: {each}" for each in _dips(table.named_rows)]
    if not said["checked"] and said["placement"] == "out-of-place":
        found.append("the values that arrived were not checked (-c 0)")
    return found


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What a run was, and why it is not held against the rails; empty: it is.

    Attributes:
        bus: what its program does; None: not known.
        layout: where the ranks ran; None: not known.
        neighbours_elsewhere: ranks of the busiest node whose right-hand neighbour is elsewhere.
        silence: why no rail says what it should have.
    """

    bus: Bus | None
    layout: RankLayout | None
    neighbours_elsewhere: int
    silence: str

    @classmethod
    def of(cls, table: Table) -> _Run:
        """Return what the head of a table says."""
        said = table.attributes
        ranks, here = int(said.get("num_ranks", 0)), int(said.get("ranks_per_node", 0))
        layout = RankLayout(num_ranks=ranks, ranks_per_node=here) if ranks > 1 and here else None
        bus = _bus(table, ranks)
        silence = ""
        if not ranks:
            silence = "on which nodes the ranks ran is not in the output"
        elif int(said["num_nodes"]) < 2:
            silence = "all ranks ran on one node: their bytes crossed no link between nodes"
        elif int(said.get("num_groups", 1)) > 1:
            silence = "several groups ran at once: how they shared the rails is not in the output"
        elif layout is None:
            silence = "the nodes do not hold as many ranks each"
        elif bus is None:
            silence = f"what {table.program} should reach is not known"
        return cls(
            bus=bus,
            layout=layout,
            neighbours_elsewhere=int(said.get("neighbours_elsewhere", 0)),
            silence=silence,
        )

    def ceiling(self, fabric: Fabric, size: int) -> Ceiling:
        """Return what busbw can be over the rails of ``fabric``, as an interval."""
        assert self.bus is not None
        assert self.layout is not None
        rails, operation = _one_way(fabric), self.bus.operation
        factor = self.bus.factor.of(self.layout.num_ranks)
        if operation is None:
            one = _one_way(replace(fabric, num_rails=1, unlike_rails_high_mb_s=None))
            each = rails.low_mb_s / self.neighbours_elsewhere
            expected, most = min(one.low_mb_s, each), rails.high_mb_s / self.neighbours_elsewhere
        else:
            crossing = _crossing(operation, size, self.layout)
            usual = crossing if operation in _AT_LEAST else factor
            expected, most = factor * rails.low_mb_s / usual, factor * rails.high_mb_s / crossing
        return replace(
            rails,
            low_mb_s=expected,
            nominal_mb_s=max(expected, min(most, rails.nominal_mb_s)),
            high_mb_s=most,
            formula=f"{rails.formula}, of {self.layout.num_ranks} ranks on "
            f"{self.layout.num_nodes} nodes",
        )


def _bus(table: Table, ranks: int) -> Bus | None:
    """Return what a program does; of one that does not print its name, what its numbers tell.

    Only allreduce and reduce_scatter combine values without a root, and their factors differ.
    """
    if table.program != UNNAMED:
        program = program_of(table.suite, table.program)
        return None if program is None else program.bus
    said = table.attributes
    combines = said.get("operation", "none") != "none"
    if ranks < 2 or not combines or str(said.get("root", "-1")) not in {"-1", "N/A"}:
        return None
    programs = [
        program_of(table.suite, name) for name in ("all_reduce_perf", "reduce_scatter_perf")
    ]
    buses = [each.bus for each in programs if each is not None and each.bus is not None]
    row, coarse = table.named_rows[-1], _MEANS * rounding_mb_s(table)
    agree = [each for each in buses if law_fault(_bus_law(each, ranks), row, coarse) is None]
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
    whole = max(size, 1) * layout.num_ranks
    nodes = least_bytes(operation, whole // blocks, layout)
    return max(max(node.sent, node.received) for node in nodes) / whole


def _lost_in_rounding(row: Row) -> bool:
    """Tell whether a small message has 0.00 GB/s only because two decimals are printed."""
    is_short = "latency_avg_us" in row or row["message_size"] <= SMALL_MESSAGE_BYTES
    return row["bus_bandwidth_mb_s"] == 0 and is_short


def _judged(row: Row, limits: Limits, run: _Run, *, start_us: float, named: bool) -> Judgement:
    rules, size = limits.rules, int(row["message_size"])
    in_place = "_in_place" if limits.table.attributes["placement"] == "in-place" else ""
    given = rules.references.get(at_size(QUANTITY, size))
    given = given or (rules.references.get(QUANTITY) if named else None)
    ceiling = derived = None
    doubt = run.silence
    if rules.fabric is not None and not run.silence and size:
        ceiling = run.ceiling(rules.fabric, size)
        ceiling = replace(ceiling, high_mb_s=ceiling.high_mb_s + rounding_mb_s(limits.table))
        asked = rules.tolerance_asked or rules.tolerance != DEFAULT_TOLERANCE
        if named:
            derived = from_ceiling(ceiling, tolerance=rules.tolerance if asked else BUS_TOLERANCE)
        # Our own runs state the rails of a node, one included.
        doubt = "" if rules.path_required else _unknown_rails(rules.fabric, run)
    judged = judge_value(
        name=at_size(f"{QUANTITY}{in_place}", size),
        value=row["bus_bandwidth_mb_s"],
        unit="MB/s",
        message_size=size,
        reference=given or derived,
        ceiling=None if doubt else ceiling,
        fault=_fault(row, limits, run) or (limits.fault(row) if named else None),
        named=named,
    )
    if given is not None or judged.verdict is Verdict.INVALID:
        return judged
    if judged.verdict is Verdict.FAIL:
        # bytes over MB/s are us; a rate that is printed as 0.00 took longer than any start
        if size < start_us / _START_FRACTION * row["bandwidth_mb_s"]:
            doubt = f"{judged.reason}; but {size_label(size)} is too short to show the rate"
        elif (gpus := limits.rules.fabric and limits.rules.fabric.gpus) and (
            why := unpromised(gpus)
        ):
            doubt = f"{judged.reason}; but {why}: give a reference of {QUANTITY}"
        else:
            return judged
    return replace(judged, verdict=Verdict.UNJUDGED, reason=doubt) if doubt else judged


def _unknown_rails(fabric: Fabric, run: _Run) -> str:
    """Return why what one rail could carry is no PASS; what is too slow for one is for more."""
    assert run.layout is not None
    if run.layout.ranks_per_node == 1 or fabric.num_rails > 1:
        return ""
    return (
        f"{run.layout.ranks_per_node} GPUs on each node, and how many rails they have is not in "
        f"the output: give --link NAME,rails=N, or --reference {QUANTITY}=..."
    )


def _fault(row: Row, limits: Limits, run: _Run) -> str | None:
    """Return why a row proves nothing, None if it is sound."""
    outside = int(limits.table.attributes["out_of_bounds"])
    coarse = _MEANS * rounding_mb_s(limits.table)
    if row.get("wrong_values", 0) > 0:
        return f"{row['wrong_values']:g} values that arrived were wrong"
    if outside > 0:
        return f"{outside} values of the run were beyond their limit"
    laws = [_RATE_LAW] if run.bus else []
    if run.bus and run.layout:
        laws.append(_bus_law(run.bus, run.layout.num_ranks))
    broken = (law_fault(law, row, coarse) for law in laws if "latency_avg_us" in row)
    return next(filter(None, broken), None)
