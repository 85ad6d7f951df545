"""Collectives and the rings of HPC Challenge: what their numbers can be at all.

Below what mean no true time of a collective can be is in :mod:`fabricproof.physics.collective`.

In a ring every rank sends to both neighbours at once, in the order of the ranks or a random one
(hpcc 1.5.0, src/bench_lat_bw_1.5.2.c).  A step of time T moves one message to either side, and
``b = 2 m / T`` is printed for each process.  A node that sends ``c`` messages of a step to other
nodes, over rails that carry ``R`` one way, needs ``c m / R`` for it; so ``b <= 2 R / c``.  In the
order of the ranks ``c = 2``, in a random one ``2 <= c <= 2 r`` with ``r`` ranks on each node, and
``2 r (P - r) / (P - 1)`` on average, as each of the other ``P - 1`` ranks is as likely a neighbour.
"""

from __future__ import annotations

import math
from dataclasses import replace

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.core.measure import Verdict
from fabricproof.core.units import at_size, size_label
from fabricproof.physics import Ceiling, Fabric, Floor, bound, latency_floor_us
from fabricproof.physics.collective import RankLayout, Wire, least_bytes, least_mean_us
from fabricproof.verdict.curve import TIMES
from fabricproof.verdict.laws import Row
from fabricproof.verdict.limits import Limits
from fabricproof.verdict.value import Judgement, from_ceiling, judge_value

#: The columns of the judged time, best first: of a program that overlaps its own communication,
#: then the mean, which every OSU version prints.
COLLECTIVE_TIMES = ("pure_communication_us", *TIMES)


def collective_floor(limits: Limits, row: Row) -> Floor | None:
    """Return what the printed mean cannot be below; None if it is unknown how the ranks lay."""
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
    """Return what is worth reading of the largest message of a collective.

    A rooted operation may truly be faster than its root's bytes travel: its clock stops when a
    buffer is free.
    """
    table, layout = limits.table, limits.rules.layout
    program, column = collective_of(table.suite, table.program), table.first_of(COLLECTIVE_TIMES)
    if program is None or column is None or not table.rows:
        return []
    row, found, fabric = table.named_rows[-1], [], limits.fabric
    size = int(row["message_size"]) if "message_size" in row else None
    is_rooted = not program.operation.waits_for_all
    if is_rooted and fabric is not None and layout is not None and size is not None:
        root = least_bytes(program.operation, size, layout)[0]
        due_us = _wire(_shared(fabric, layout)).transfer_us(max(root.sent, root.received))
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


#: What a run of hpcc moves: measurements x (one natural and ten random orders) x (a first step and
#: two timed ones) by each of two implementations (ring_lat_bw_loop(2000000, 3, 2, 10),
#: bench_lat_bw).
LEAST_STEPS = 3 * (1 + 10) * (1 + 2) * 2

#: messages of a step that leave a node in any ring through several
FEWEST_CROSSINGS = 2

#: Ranks of a node whose clocks do not run at the same time leave each other the rail: two timed
#: steps follow one that is not, and neighbours wait for each other after each.
SKEW = 2.0

#: A step ends with the slowest of all ranks, and only two are timed at once: a healthy ring may
#: stay this much below its rails (on the virtual cluster 5 to 8 % on one rail, 14 to 17 % on two,
#: whose eight links two cores play).
RING_TOLERANCE = 0.20

#: of five timed steps or more the first message may have been under way before (bench_lat_bw), and
#: the printed latency is half a step
LEAST_FLOOR = 0.4


def ring_crossings(layout: RankLayout, name: str) -> int:
    """Return the most messages of a step that leave a node; 0 if there is one node alone.

    ``name`` is natural, where it is as many for each node, or random.
    """
    many = FEWEST_CROSSINGS * (layout.ranks_per_node if name == "random" else 1)
    return many if layout.num_nodes > 1 else 0


def least_ring_bytes(layout: RankLayout, message_size: int) -> int:
    """Return the payload that each node must send, and receive, whatever the random orders are.

    Every ring through all nodes enters and leaves each of them at least once on either side.
    """
    return LEAST_STEPS * ring_crossings(layout, "natural") * message_size


def judge_rings(limits: Limits) -> list[Judgement]:
    """Judge the rings of hpcc: bandwidths by the rails, latencies by the floor or a reference."""
    (row,) = limits.table.named_rows
    fabric, layout, ranks = limits.rules.fabric, limits.rules.layout, int(row["num_processes"])
    unplaced = None
    if layout is None or layout.num_ranks != ranks:
        where = f"{layout.num_ranks} were started" if layout else "on how many nodes is not said"
        layout, unplaced = None, f"{ranks} processes ran, {where}"
    crosses = layout is not None and layout.num_nodes > 1
    judged = [
        _bandwidth(limits, row, name, layout if crosses else None, unplaced)
        for name in ("natural", "random")
    ]
    if unplaced is not None:
        return judged
    floor = None
    if fabric is not None and crosses:
        floor = latency_floor_us(fabric, int(limits.table.attributes["latency_message_size"]))
        formula = f"{LEAST_FLOOR:g} x ({floor.formula}): half a step, its first message under way"
        floor = replace(floor, us=LEAST_FLOOR * floor.us, formula=formula)
    for name in ("natural_ring_latency", "random_ring_latency"):
        given = limits.rules.references.get(name)
        time = judge_value(
            name=name,
            value=row[f"{name}_us"],
            unit="us",
            reference=given,
            floor=floor,
            fault=limits.fault(row) if given else None,
        )
        judged += [time] if given or time.verdict is Verdict.INVALID else []
    return judged


def ring_ceiling(fabric: Fabric, layout: RankLayout, name: str) -> Ceiling:
    """Return what a process of a ring can send, as an interval: ``name`` is natural or random.

    A node sends while it receives as much: half of what its rails carry both ways.  ``layout`` has
    several nodes.
    """
    ranks, here, most = layout.num_ranks, layout.ranks_per_node, ring_crossings(layout, name)
    mean = 2 * here * (ranks - here) / (ranks - 1) if name == "random" else 2.0
    flows = (1, 1) if ranks == 2 else (FEWEST_CROSSINGS, most)
    both = replace(fabric, bidirectional=True)
    lower, upper = (bound(replace(both, num_flows=fabric.num_flows * each)) for each in flows)
    return replace(
        upper,
        low_mb_s=lower.low_mb_s / most,
        nominal_mb_s=upper.nominal_mb_s / mean,
        high_mb_s=upper.high_mb_s / FEWEST_CROSSINGS * (1.0 if here == 1 else SKEW),
        formula=f"2 x {upper.nominal_mb_s / 2:.6g} MB/s one way / {mean:.3g} messages of a step "
        "that leave a node",
    )


def _bandwidth(
    limits: Limits, row: Row, name: str, layout: RankLayout | None, unplaced: str | None
) -> Judgement:
    quantity, rules = f"{name}_ring_bandwidth", limits.rules
    ceiling = derived = None
    if rules.fabric is not None and layout is not None:
        ceiling = ring_ceiling(rules.fabric, layout, name)
        if (shaper := rules.fabric.shaper) is not None:
            # a token bucket lets the beginning of a step pass faster
            least_us = shaper.least_time_us(int(row["message_size"]), ceiling.high_mb_s)
            burst = row["message_size"] / least_us if least_us > 0 else math.inf
            ceiling = replace(ceiling, high_mb_s=max(ceiling.high_mb_s, burst))
        usual = 0.0 if rules.tolerance_asked else RING_TOLERANCE
        derived = from_ceiling(ceiling, tolerance=max(usual, rules.tolerance))
    given = None if unplaced else rules.references.get(quantity)
    judged = judge_value(
        name=quantity,
        value=row[f"{quantity}_mb_s"],
        unit="MB/s",
        reference=given or derived,
        ceiling=ceiling,
        fault=limits.fault(row),
        silence=unplaced,
    )
    if judged.verdict is not Verdict.FAIL or given is not None:
        return judged
    hint = "a rail below its rate, or nodes that share links between switches"
    return replace(judged, reason=f"{judged.reason}; {hint}")


def describe_rings(limits: Limits) -> list[str]:
    """Return what is worth reading in hpcc's numbers and gets no verdict."""
    (value,) = limits.table.named_rows
    layout = limits.rules.layout
    share = value["random_ring_bandwidth_mb_s"] / value["natural_ring_bandwidth_mb_s"]
    expected = ""
    if layout is not None and layout.num_nodes > 1:
        least = FEWEST_CROSSINGS / ring_crossings(layout, "random")
        expected = f"; by the nodes' rails alone {least:.2f} to 1.00"
    found = [f"contention: the random rings carry {share:.2f} of the natural one{expected}"]
    if not limits.table.attributes["success"]:
        found.append("hpcc says that a test failed: not the rings, which compare their bytes")
    return found
