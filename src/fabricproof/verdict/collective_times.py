"""The times of a collective: possible, good enough, and rows that agree with themselves.

What each program's times are, and below what mean no true one can be, is in
:mod:`fabricproof.physics.collective`; this module applies it to a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.benchmarks.program import Collective
from fabricproof.core.measure import Table
from fabricproof.core.units import at_size, size_label
from fabricproof.physics import Fabric, Floor, bound, latency_floor_us
from fabricproof.physics.collective import RankLayout, Wire, least_bytes, least_mean_us
from fabricproof.verdict.curve import TIMES
from fabricproof.verdict.limits import ROUNDING, Limits, order_fault
from fabricproof.verdict.value import Judgement, judge_value, unless_unsound

#: Percentage points that the columns' two decimals and the tools' own averaging may leave between
#: the printed overlap and the one that follows from the printed times.
OVERLAP_SLACK = 2.0

#: Pure times below this are too coarse to divide by (0.005 of 1 us is half a percent).
COARSE_US = 1.0

#: the columns that may carry the judged time, best first: a non-blocking program's own
#: communication, then the mean, which every OSU version prints.
_COLUMNS = ("pure_communication_us", *TIMES)

_Row = Mapping[str, float]


def judge_collective(table: Table, limits: Limits, layout: RankLayout | None) -> list[Judgement]:
    """Judge every message size of ``table``; a barrier's one row is called ``latency``.

    Empty where the table is of no collective program, or has no time of one.

    ``layout`` is None where nobody said how the ranks lay (a pasted table): then there is no floor.
    """
    program = collective_of(table.suite, table.program)
    column = table.first_of(_COLUMNS)
    if program is None or column is None:
        return []
    rows = [row for row in table.named_rows if not program.has_size or row.get("message_size")]
    if rows and "latency" in limits.given:
        # As of a pair, it means the smallest message.
        first = {_name(rows[0], program): limits.given["latency"]}
        limits = replace(limits, given={**first, **limits.given})
    judged = [
        _judged(row, row[column], program, limits, layout, named=index in {0, len(rows) - 1})
        for index, row in enumerate(rows)
    ]
    return [
        unless_unsound(judgement, row_contradiction(row, program, is_imb=table.suite == "imb"))
        for judgement, row in zip(judged, rows, strict=True)
    ]


def _name(row: _Row, program: Collective) -> str:
    return at_size("latency", int(row["message_size"]) if program.has_size else None)


def _judged(
    row: _Row,
    value: float,
    program: Collective,
    limits: Limits,
    layout: RankLayout | None,
    *,
    named: bool,
) -> Judgement:
    size = int(row["message_size"]) if program.has_size else None
    name = _name(row, program)
    return judge_value(
        name=name,
        value=value,
        unit="us",
        message_size=size,
        reference=limits.given.get(name),
        floor=_floor(program, size or 0, limits, layout),
        named=named,
    )


def _floor(
    program: Collective, size: int, limits: Limits, layout: RankLayout | None
) -> Floor | None:
    """Return what the printed mean cannot be below, None where nothing binds it."""
    if limits.fabric is None or layout is None:
        return None
    fabric = _shared(limits.fabric, layout)
    least = least_mean_us(program.statistic, program.operation, size, layout, _wire(fabric))
    if least is None:
        return None
    crossing = latency_floor_us(fabric, 0)
    return Floor(
        us=least,
        formula=f"the least {program.statistic.value.partition(',')[0]} of {program.operation} "
        f"with {layout.num_ranks} ranks on {layout.num_nodes} nodes: crossings of {crossing.us:g} "
        f"us and the bytes that must enter or leave a node",
        source=crossing.source,
    )


def _shared(fabric: Fabric, layout: RankLayout) -> Fabric:
    """Return ``fabric`` as a node's ranks use it: a flow from each to each rank elsewhere."""
    here = layout.ranks_per_node
    flows = here * max(1, layout.num_ranks - here)
    return replace(fabric, bidirectional=False, num_flows=max(fabric.num_flows, flows))


def _wire(fabric: Fabric) -> Wire:
    rate = bound(fabric).high_mb_s
    crossing = latency_floor_us(fabric, 0).us
    shaper = fabric.shaper
    if shaper is None:
        return Wire.plain(latency_us=crossing, rate_mb_s=rate)
    return Wire(latency_us=crossing, transfer_us=lambda size: shaper.least_time_us(size, rate))


def row_contradiction(row: _Row, program: Collective, *, is_imb: bool) -> str | None:
    """Return why a row contradicts itself, None where it is sound.

    The least is at most the mean is at most the most; and of non-blocking programs, an overlap of
    0 to 100 % that follows from the three times by the tool's own formula.
    """
    fault = order_fault(row)
    if fault is not None or not program.non_blocking:
        return fault
    return _overlap_contradiction(row, is_imb=is_imb)


_OVERLAP_COLUMNS = frozenset(
    {"overlap_percent", "overall_us", "compute_us", "pure_communication_us"}
)


def _overlap_contradiction(row: _Row, *, is_imb: bool) -> str | None:
    if not row.keys() >= _OVERLAP_COLUMNS:
        return None
    printed = row["overlap_percent"]
    if not 0 <= printed <= 100:
        return f"the row contradicts itself: an overlap of {printed:g} %"
    if row["pure_communication_us"] < COARSE_US:
        return None
    follows = _overlap(row, is_imb=is_imb)
    slack = OVERLAP_SLACK + 400 * ROUNDING / row["pure_communication_us"]
    if abs(follows - printed) <= slack:
        return None
    return (
        f"the row contradicts itself: overall {row['overall_us']:g}, compute "
        f"{row['compute_us']:g} and communication {row['pure_communication_us']:g} us make an "
        f"overlap of {follows:.1f} %, the table says {printed:g}"
    )


def _overlap(row: _Row, *, is_imb: bool) -> float:
    """Return the overlap in percent as the tool computes it.

    OSU: 100 - (overall - compute) / pure, not below 0 (util/osu_util_mpi.c,
    calculate_and_print_stats).  IMB: (pure + compute - overall) / max(pure, compute), within 0
    and 1 (src_c/IMB_output.c, IMB_display_times).
    """
    overall, compute, pure = row["overall_us"], row["compute_us"], row["pure_communication_us"]
    if is_imb:
        return 100 * max(0.0, min(1.0, (pure + compute - overall) / max(pure, compute)))
    return max(0.0, 100 - 100 * (overall - compute) / pure)


def early_ends(table: Table, limits: Limits, layout: RankLayout | None) -> list[str]:
    """Return a note where a rooted operation is printed faster than its root's bytes can travel.

    Such a time is no wrong one: the clock stopped when a buffer was free.  It says less than it
    seems to, which a reader should know.
    """
    program = collective_of(table.suite, table.program)
    column = table.first_of(_COLUMNS)
    if program is None or column is None or limits.fabric is None or layout is None:
        return []
    if program.operation.waits_for_all or "message_size" not in table.columns:
        return []
    row = table.named_rows[-1]
    root = least_bytes(program.operation, int(row["message_size"]), layout)[0]
    due_us = _wire(_shared(limits.fabric, layout)).transfer_us(max(root.sent, root.received))
    if row[column] >= due_us:
        return []
    note = (
        f"{_name(row, program)} of {row[column]:g} us is no delivery: the root's bytes travel "
        f"{due_us:.4g} us at least; its clock stopped when a buffer was free, the counters show "
        "the path"
    )
    return [note]


def overlaps(table: Table) -> list[str]:
    """Return what a non-blocking program says of its overlap, for a person to read."""
    program = collective_of(table.suite, table.program)
    if program is None or "overlap_percent" not in table.columns or not table.rows:
        return []
    row = table.named_rows[-1]
    size = f" at {size_label(int(row['message_size']))}" if "message_size" in row else ""
    return [f"{row['overlap_percent']:g} % of the communication overlaps with computing{size}"]
