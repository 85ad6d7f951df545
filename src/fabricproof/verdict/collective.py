"""Collectives: the least that their times can be, and what is worth reading beside them.

What each program's times are, and below what mean no true one can be, is in
:mod:`fabricproof.physics.collective`; this module applies it to a table.
"""

from __future__ import annotations

from dataclasses import replace

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.core.units import at_size, size_label
from fabricproof.physics import Fabric, Floor, bound, latency_floor_us
from fabricproof.physics.collective import RankLayout, Wire, least_bytes, least_mean_us
from fabricproof.verdict.curve import TIMES
from fabricproof.verdict.laws import Row
from fabricproof.verdict.limits import Limits

#: The columns of the judged time, best first: of a program that overlaps its own communication,
#: then the mean, which every OSU version prints.
COLLECTIVE_TIMES = ("pure_communication_us", *TIMES)


def collective_floor(limits: Limits, row: Row) -> Floor | None:
    """Return what the printed mean cannot be below, None if nothing binds it.

    Nothing does where nobody said how the ranks lay (a pasted table).
    """
    program = collective_of(limits.table.suite, limits.table.program)
    layout = limits.rules.layout
    if program is None or limits.fabric is None or layout is None:
        return None
    fabric = _shared(limits.fabric, layout)
    size = int(row["message_size"]) if program.has_size else 0
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
    rate, crossing = bound(fabric).high_mb_s, latency_floor_us(fabric, 0).us
    shaper = fabric.shaper
    if shaper is None:
        return Wire.plain(latency_us=crossing, rate_mb_s=rate)
    return Wire(latency_us=crossing, transfer_us=lambda size: shaper.least_time_us(size, rate))


def describe_collective(limits: Limits) -> list[str]:
    """Return what a person should know of the largest message of a collective.

    Where a rooted operation is printed faster than its root's bytes can travel the time is no wrong
    one: the clock stopped when a buffer was free.  It says less than it seems to.
    """
    table, layout = limits.table, limits.rules.layout
    program, column = collective_of(table.suite, table.program), table.first_of(COLLECTIVE_TIMES)
    if program is None or column is None or not table.rows:
        return []
    row, found = table.named_rows[-1], []
    size = int(row["message_size"]) if "message_size" in row else None
    if None not in (limits.fabric, layout, size) and not program.operation.waits_for_all:
        assert limits.fabric is not None
        assert layout is not None
        root = least_bytes(program.operation, size or 0, layout)[0]
        due_us = _wire(_shared(limits.fabric, layout)).transfer_us(max(root.sent, root.received))
        if row[column] < due_us:
            found.append(
                f"{at_size('latency', size)} of {row[column]:g} us is no delivery: the root's "
                f"bytes travel {due_us:.4g} us at least; its clock stopped when a buffer was free"
            )
    if "overlap_percent" in row:
        at = "" if size is None else f" at {size_label(size)}"
        overlap = f"{row['overlap_percent']:g} % of the communication overlaps with computing"
        found.append(overlap + at)
    return found
