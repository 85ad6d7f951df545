"""What is planned of rings: all nodes send to both neighbours at once (HPC Challenge)."""

from __future__ import annotations

from dataclasses import asdict, replace

from fabricproof.job.collective_commands import (
    HPCC_MESSAGE_BYTES,
    HPCC_PROGRAM,
    HPCC_SUITE,
    LIMIT_FACTOR,
    hpcc_command,
    hpcc_seconds,
    hpcc_traffic,
)
from fabricproof.job.leg import Leg, Plan, Relation, in_turns
from fabricproof.physics.collective import RankLayout as Ranks
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.programs import find_program
from fabricproof.rfm.legs.rails import expected_gain
from fabricproof.stacks.launch import Layout
from fabricproof.verdict.collective import RING_TOLERANCE
from fabricproof.verdict.value import Reference, at_least

QUANTITIES = ("natural_ring_bandwidth", "random_ring_bandwidth")

#: both rings of a ratio ran over like paths within minutes, each the best of three measurements
TOLERANCE = 0.10

#: Over all rails a ring may lose what a ring may lose by itself: the same two steps, timed at once
#: on twice the links.  Stricter, a pair of rings that both pass would be red together (0.83 of two
#: rails over 0.95 of one is 1.75).  One rail at half its rate leaves 1.5 and is red.
RAILS_TOLERANCE = RING_TOLERANCE

RAILS_HINT = "see the legs of the rails alone (OsuMultiRailBandwidth)"
PLACE_HINT = "nodes far apart share links between switches that near ones do not need"


def ranks_on_a_node(planner: LegPlanner, *, packed: bool) -> int:
    """Return the most or the fewest ranks on a node that the partition tries."""
    return (max if packed else min)(planner.partition.ranks_per_node)


def ring_plan(planner: LegPlanner, ranks: int) -> Plan:
    """Return the rings of all nodes over the first rail and, where the stack can, over all."""
    nodes = planner.partition.num_nodes
    if nodes < 2:
        return Plan(reason=f"num_nodes of partition {planner.partition.name} is below 2")
    layout = Layout(num_nodes=nodes, ranks_per_node=ranks)
    legs, reason = ring_legs(planner, {"": layout})
    if reason or len(planner.rails) < 2 or planner.refusal(planner.rails) is not None:
        return Plan(legs=legs, reason=reason)
    (together,), _ = ring_legs(planner, {"": layout}, rails=planner.rails)
    reference = at_least(
        expected_gain(planner), unit="x", tolerance=RAILS_TOLERANCE, origin="the rails' rates"
    )
    relation = _ratio("one_rail", together, legs[0], reference, RAILS_HINT)
    turns = {each.name: each.turn() for each in (legs[0], together)}
    return Plan(legs=(*legs, together, *turns.values()), relations=(in_turns(relation, turns),))


def placed_plan(
    planner: LegPlanner, near: tuple[str, ...], far: tuple[str, ...], ranks: int
) -> Plan:
    """Return the rings of ``near`` nodes, of as many that are ``far``, and how these compare."""
    layouts = {
        "contiguous": Layout(num_nodes=len(near), ranks_per_node=ranks, nodes=near),
        "spread": Layout(num_nodes=len(far), ranks_per_node=ranks, nodes=far),
    }
    legs, reason = ring_legs(planner, layouts)
    if reason:
        return Plan(reason=reason)
    reference = at_least(
        1.0, unit="x", tolerance=TOLERANCE, origin="links between switches as wide as needed"
    )
    relation = _ratio("contiguous", legs[1], legs[0], reference, PLACE_HINT)
    turns = {each.name: each.turn() for each in legs}
    return Plan(legs=(*legs, *turns.values()), relations=(in_turns(relation, turns),))


def ring_legs(
    planner: LegPlanner, layouts: dict[str, Layout], rails: tuple[str, ...] = ()
) -> tuple[tuple[Leg, ...], str]:
    """Return a leg of hpcc for each layout by name, or none and why.

    ``layouts`` are by what is added to a leg's name beside its shape; without ``rails`` it is the
    first.
    """
    pair, reason = _pair(planner)
    if pair is None:
        return (), reason
    net_path = rails or planner.rails[:1]
    return tuple(_leg(planner, pair, net_path, name, each) for name, each in layouts.items()), ""


def _pair(planner: LegPlanner) -> tuple[LegPlanner | None, str]:
    """Return the planner of a program that the stack has, whose legs say how to take a path."""
    found, reason = planner.of("osu", "osu_latency")
    return (found, reason) if found is not None else planner.of("imb", "PingPong")


def _leg(
    planner: LegPlanner, pair: LegPlanner, rails: tuple[str, ...], name: str, layout: Layout
) -> Leg:
    shape = f"{layout.num_nodes}x{layout.ranks_per_node}"
    found = find_program(planner.stack, HPCC_SUITE, HPCC_PROGRAM)
    assert found.argv is not None, "choose_suite found it before"
    ranks = Ranks(num_ranks=layout.num_ranks, ranks_per_node=layout.ranks_per_node)
    base = pair.leg(
        rails,
        variant=f"{shape}.{name}" if name else shape,
        layout=layout,
        environment={"FABRICPROOF_PROGRAM": found.argv[0]},
    )
    expected = hpcc_seconds(planner.physics(rails), ranks)
    return replace(
        base,
        suite=HPCC_SUITE,
        program=HPCC_PROGRAM,
        commands=(hpcc_command(found.argv),),
        expected_sizes=(HPCC_MESSAGE_BYTES,),
        traffic=hpcc_traffic(ranks),
        spread=len(rails) > 1,
        required=QUANTITIES,
        references=planner.references(rails),
        library=None,
        limit_seconds=int(LIMIT_FACTOR * expected),
    )


def _ratio(name: str, over: Leg, under: Leg, reference: Reference, hint: str) -> Relation:
    return over.relation(
        f"{over.name}.over_{name}",
        "ratio",
        [over, under],
        {
            "quantity": "random_ring_bandwidth",
            "sizes": [None],
            "over": [over.name],
            "under": [under.name],
            "reference": asdict(reference),
            "hint": hint,
        },
    )
