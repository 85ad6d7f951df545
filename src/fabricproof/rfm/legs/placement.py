"""What is planned by place: one pair for every distance in Slurm's topology, in one job.

The nodes are chosen before the job is submitted, from Slurm's topology and the nodes' states of the
moment, and asked for by name: legs, quantities and references are then known beforehand, and a
rank on any other node makes its number INVALID.  The job waits until they are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.job.leg import Leg, Plan, Relation, in_turns
from fabricproof.nodes.topology import Pair
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.stacks.launch import Layout
from fabricproof.verdict.value import Reference, at_least, at_most

#: What one more switch may add to a latency, as a fraction of that over one: document 002 of the
#: sources has 1.03 us for its nearest and 1.85 us for its farthest pairs, over up to five switches.
SHARE_OF_A_SWITCH = 0.2

#: Latencies of two pairs may differ by this much beyond what their switches explain.
LATENCY_TOLERANCE = 0.25

#: A far pair by itself shares its links with nobody: its bandwidth is a near pair's.
BANDWIDTH_TOLERANCE = 0.10

#: sizes whose median ratio counts: the smallest for latency, the largest for bandwidth
SIZES = 11
LARGE_SIZES = 3

HINT = "a slow or misrouted link between the switches, or a topology that is not what is wired"


def placement_plan(planner: LegPlanner, pairs: tuple[Pair, ...]) -> Plan:
    """Return the plan for pairs at two distances or more, the nearest first."""
    legs: list[Leg] = []
    again: list[Leg] = []
    relations: list[Relation] = []
    for rail in planner.rails:
        mine = [_leg(planner, rail, pair) for pair in pairs]
        relation = _far_over_near(planner, rail, mine, pairs)
        sizes = relation.settings["sizes"]
        turns = {
            leg.name: _leg(planner, rail, pair, sizes).turn()
            for leg, pair in ((mine[0], pairs[0]), (mine[-1], pairs[-1]))
        }
        legs += mine
        again += turns.values()
        relations.append(in_turns(relation, turns))
    return Plan(legs=(*legs, *again), relations=tuple(relations))


def _leg(planner: LegPlanner, rail: str, pair: Pair, sizes: Sequence[int] = ()) -> Leg:
    placed = replace(planner, hops=pair.hops)
    layout = Layout(nodes=pair.nodes)
    return placed.leg((rail,), variant=f"hops{pair.hops}", layout=layout, sizes=sizes)


def _far_over_near(
    planner: LegPlanner, rail: str, legs: list[Leg], pairs: tuple[Pair, ...]
) -> Relation:
    near, far = legs[0], legs[-1]
    kind = meaning(planner.suite, planner.program).kind
    is_bandwidth = kind is ProgramKind.BANDWIDTH
    sizes = near.expected_sizes
    reference = _equal() if is_bandwidth else _with_switches(pairs[-1].hops - pairs[0].hops)
    return Relation(
        name=f"{rail}.far_over_near",
        kind="ratio" if is_bandwidth else "hops",
        legs=tuple(leg.name for leg in legs),
        suite=near.suite,
        program=near.program,
        rails=(rail,),
        settings={
            "quantity": "bandwidth" if is_bandwidth else "latency",
            "sizes": list(sizes[-LARGE_SIZES:] if is_bandwidth else sizes[:SIZES]),
            "over": [far.name],
            "under": [near.name],
            "reference": asdict(reference),
            "hops": {leg.name: pair.hops for leg, pair in zip(legs, pairs, strict=True)},
            "hint": f"{HINT} ({' and '.join(pairs[-1].nodes)})",
        },
    )


def _with_switches(more: int) -> Reference:
    return at_most(
        1 + SHARE_OF_A_SWITCH * more,
        unit="x",
        tolerance=LATENCY_TOLERANCE,
        origin=f"{more} switches more",
    )


def _equal() -> Reference:
    return at_least(
        1.0, unit="x", tolerance=BANDWIDTH_TOLERANCE, origin="a pair alone has its links to itself"
    )
