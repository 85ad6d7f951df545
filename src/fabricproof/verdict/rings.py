"""Rings: every rank sends to both neighbours at once, in the order of the ranks or a random one.

From hpcc 1.5.0, src/bench_lat_bw_1.5.2.c: a step of time T moves one message to either side, and
what is printed is ``b = 2 m / T`` for each process.  A node that sends ``c`` messages of each step
to other nodes, over a rail that carries ``R`` one way, cannot end it before ``c m / R``; so
``b <= 2 R / c``.  With ``r`` ranks in a block on each of ``N`` nodes (``P = N r``):

- in the order of the ranks ``c = 2``: only the first and the last rank of a node have a neighbour
  elsewhere.  ``b = R``, whatever ``r``.
- in a random order ``2 <= c <= 2 r``, and ``2 r (P - r) / (P - 1)`` on average, because each of the
  other ``P - 1`` ranks is as likely a neighbour.  Where nothing but the nodes' own rails is shared
  ``b`` is ``R / r`` at least; ``R`` at most.

docs/physics.md derives the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from fabricproof.core.measure import Verdict
from fabricproof.physics import Ceiling, Fabric, bound, latency_floor_us
from fabricproof.physics.collective import RankLayout
from fabricproof.verdict.laws import Row
from fabricproof.verdict.limits import Limits
from fabricproof.verdict.value import Judgement, from_ceiling, judge_value

#: what a run moves: measurements x (one natural and ten random orders) x (a first step and two
#: timed ones) by each of two implementations (ring_lat_bw_loop(2000000, 3, 2, 10), bench_lat_bw)
LEAST_STEPS = 3 * (1 + 10) * (1 + 2) * 2

#: random orders whose geometric mean is printed (bench_lat_bw)
RANDOM_ORDERS = 10

#: ranks of a node whose clocks do not run at the same time leave each other the rail: two timed
#: steps after one that is not, and neighbours wait for each other after each
SKEW = 2.0

#: A step ends with the slowest of all ranks, and only two are timed at once: a healthy ring may
#: stay this much below its rails (on the virtual cluster 5 to 8 % on one rail, 14 to 17 % on two,
#: whose eight links two cores play).
RING_TOLERANCE = 0.20

#: no ten random orders are this many standard deviations from their mean: one in 10^6
SIGMAS = 5.0

#: hpcc's orders are not equally likely: it puts a rank into a random place, else the next free one,
#: so that neighbours stay together; played with its algorithm, up to a fifth fewer messages leave
HPCC_ORDERS = 0.75

#: of five timed steps or more the first message may have been under way before (bench_lat_bw), and
#: the printed latency is half a step
LEAST_FLOOR = 0.4


@dataclass(frozen=True, kw_only=True)
class Crossings:
    """Messages of one step that a node sends to other nodes in a ring of random order.

    Attributes:
        least, most: whatever the order is.
        mean: over all random orders, if each is as likely.
        low: no ten orders of hpcc's have fewer, taken over all nodes.
    """

    least: float
    most: float
    mean: float
    low: float


def natural_crossings(layout: RankLayout) -> int:
    """Return the messages of one step that leave each node in the order of the ranks: 2, or 0."""
    return 2 if layout.num_nodes > 1 else 0


def random_crossings(layout: RankLayout) -> Crossings:
    """Return the messages of one step that leave a node in a ring of random order.

    For equal blocks: ``ranks_per_node`` must divide the number of ranks, else the last node, with
    fewer ranks, sends less than ``least`` and ``mean`` say.
    """
    ranks, here = layout.num_ranks, layout.ranks_per_node
    if layout.num_nodes < 2:
        return Crossings(least=0, most=0, mean=0, low=0)
    mean = 2 * here * (ranks - here) / (ranks - 1)
    spread = 2 * math.sqrt(_variance_inside(ranks, here)) / layout.num_nodes
    low = HPCC_ORDERS * mean - SIGMAS * spread / math.sqrt(RANDOM_ORDERS)
    return Crossings(least=2, most=2 * here, mean=mean, low=max(2.0, low))


def _variance_inside(ranks: int, here: int) -> float:
    """Return the variance of the number of a random ring's edges that stay inside a node.

    Of ``ranks`` edges each stays with ``p = (r - 1) / (P - 1)``; two that share a rank with
    ``p (r - 2) / (P - 2)``; two that share none see where the first pair took its ranks from.
    """
    if ranks < 4:
        return 0.0
    stays = (here - 1) / (ranks - 1)
    joined = stays * (here - 2) / (ranks - 2)
    same = (here - 2) / (ranks - 2) * (here - 3) / (ranks - 3)
    other = (ranks - here) / (ranks - 2) * (here - 1) / (ranks - 3)
    pairs = 2 * ranks * joined + ranks * (ranks - 3) * stays * (same + other)
    mean = ranks * stays
    return max(0.0, mean + pairs - mean**2)


def least_bytes(layout: RankLayout, message_size: int) -> int:
    """Return the payload that each node must send, and receive, whatever the random orders are.

    Every ring through all nodes enters and leaves each of them at least once on either side.
    """
    return LEAST_STEPS * natural_crossings(layout) * message_size


def judge_rings(limits: Limits) -> list[Judgement]:
    """Judge the rings of hpcc.

    A bandwidth is held against the rails; a latency, which is a time under load, against the
    floor, and else only against a reference that somebody gave.
    """
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
            message_size=None,
            reference=given,
            floor=floor,
            fault=limits.fault(row) if given else None,
        )
        judged += [time] if given or time.verdict is Verdict.INVALID else []
    return judged


def ring_ceiling(fabric: Fabric, layout: RankLayout, name: str) -> Ceiling:
    """Return what a process of a ring can send, as an interval: ``name`` is natural or random.

    A node sends while it receives as much: half of what its rails carry both ways.
    """
    few = mean = many = 2.0
    if name == "random":
        across = random_crossings(layout)
        few, mean, many = across.low, across.mean, across.most
    flows = [1 if layout.num_ranks == 2 else max(1, each) for each in (2, int(many))]
    both = replace(fabric, bidirectional=True)
    least, most = (bound(replace(both, num_flows=fabric.num_flows * each)) for each in flows)
    skew = 1.0 if layout.ranks_per_node == 1 else SKEW
    return replace(
        most,
        low_mb_s=least.low_mb_s / many,
        nominal_mb_s=most.nominal_mb_s / mean,
        high_mb_s=most.high_mb_s / few * skew,
        formula=f"2 x {most.nominal_mb_s / 2:.6g} MB/s one way / {mean:.3g} messages of a step "
        "that leave a node",
    )


def _bandwidth(
    limits: Limits, row: Row, name: str, layout: RankLayout | None, unplaced: str | None
) -> Judgement:
    quantity, rules = f"{name}_ring_bandwidth", limits.rules
    ceiling = derived = None
    if rules.fabric is not None and layout is not None:
        ceiling = ring_ceiling(rules.fabric, layout, name)
        shaper, high = rules.fabric.shaper, ceiling.high_mb_s
        if shaper is not None:  # a token bucket lets the beginning of a step pass faster
            least_us = shaper.least_time_us(int(row["message_size"]), high)
            high = max(high, row["message_size"] / least_us if least_us > 0 else math.inf)
            ceiling = replace(ceiling, high_mb_s=high)
        usual = max(RING_TOLERANCE, rules.tolerance)
        tolerance = rules.tolerance if rules.tolerance_asked else usual
        derived = from_ceiling(ceiling, tolerance=tolerance)
    given = None if unplaced else rules.references.get(quantity)
    judged = judge_value(
        name=quantity,
        value=row[f"{quantity}_mb_s"],
        unit="MB/s",
        message_size=None,
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
        across = random_crossings(layout)
        expected = f"; by the nodes' rails alone {2 / across.most:.2f} to 1.00"
    found = [
        f"contention: the random rings carry {share:.2f} of the natural one{expected}",
        (
            f"8 B to both neighbours: half a step takes {value['natural_ring_latency_us']:.3g} us "
            f"in the order of the ranks, {value['random_ring_latency_us']:.3g} us in random ones"
        ),
        (
            f"ping-pong of single pairs: {value['bandwidth_min_mb_s']:.4g} to "
            f"{value['bandwidth_max_mb_s']:.4g} MB/s, {value['latency_min_us']:.3g} to "
            f"{value['latency_max_us']:.3g} us"
        ),
    ]
    if not limits.table.attributes["success"]:
        found.append("hpcc says that a test failed: not the rings, which compare their bytes")
    return found
