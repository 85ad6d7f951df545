"""Checks of all ranks at once: a collective on every layout, and the rings of HPC Challenge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reframe.core.builtins import variable

from fabricproof.core.units import at_size, parse_size
from fabricproof.job.collective_commands import (
    HPCC_MESSAGE_BYTES,
    HPCC_PROGRAM,
    HPCC_SUITE,
    LIMIT_FACTOR,
    hpcc_command,
    hpcc_seconds,
    hpcc_traffic,
    make_collective_job,
)
from fabricproof.job.leg import Leg, Plan
from fabricproof.nodes.topology import contiguous, spread
from fabricproof.physics.collective import RankLayout
from fabricproof.physics.collective_models import Channel
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.families.places import choose_nodes
from fabricproof.rfm.families.rails import expected_gain
from fabricproof.rfm.legs.compare import MakeLeg, compare
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import PartitionSpec
from fabricproof.stacks.launch import Layout
from fabricproof.stacks.stack import printed_name
from fabricproof.verdict.collective import RING_TOLERANCE
from fabricproof.verdict.value import at_least

#: A collective is measured on several layouts: each gets this part of a leg's budget.
LAYOUT_SHARE = 0.5

#: what measures a message between two nodes, by suite
_POINT_TO_POINT = {"osu": ("osu", "osu_latency"), "imb": ("imb", "PingPong")}

RINGS = ("natural_ring_bandwidth", "random_ring_bandwidth")

#: both rings of a ratio ran over like paths within minutes, each the best of three measurements
PLACE_TOLERANCE = 0.10

#: Of two nodes both neighbours are one: the ring is a pair, whose messages may share a connection
#: (Open MPI's btl/tcp carried 11.7 of 23.5 MB/s, one direction after the other).
LEAST_NODES = 3


def any_pair(planner: LegPlanner) -> tuple[LegPlanner | None, str]:
    """Return the planner of a program that the stack has, whose legs say how to take a path."""
    found, reason = planner.of("osu", "osu_latency")
    return (found, reason) if found is not None else planner.of("imb", "PingPong")


def layouts_of(partition: PartitionSpec) -> tuple[Layout, ...]:
    """Return the layouts of a collective, small ones first: nodes double from 2 up to all."""
    most = partition.num_nodes
    counts = {*(1 << step for step in range(1, most.bit_length())), most} - {1}
    return tuple(
        Layout(num_nodes=nodes, ranks_per_node=ranks)
        for ranks in partition.ranks_per_node
        for nodes in sorted(counts)
    )


def channel_planner(planner: LegPlanner) -> tuple[LegPlanner | None, str]:
    """Return the planner of the point-to-point latency of the same suite, or why there is none.

    Of the same suite, so that one package made all numbers of a job, and a port's own time stands
    on both sides of the comparison.
    """
    suite, program = _POINT_TO_POINT[planner.suite.partition("-")[0]]
    found, reason = planner.of(suite, program)
    if found is not None and found.suite != planner.suite:
        found, reason = None, f"{planner.suite} has no {program}"
    return found, f"nothing says what a message costs here: {reason}" if found is None else ""


class CollectiveBenchmark(FabricBenchmark):
    """One collective on every layout of the partition, over one path."""

    #: ``first``: the first rail; ``all``: all rails together
    net_paths = variable(str, value="first")

    def why_not(self, planner: LegPlanner) -> str:
        """Tell where several rails are asked for and there is one."""
        return planner.why_one_rail() if self.net_paths == "all" else ""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the point-to-point leg, and one leg of the collective for each layout."""
        rails = planner.rails if self.net_paths == "all" else planner.rails[:1]
        reason = planner.why_not_between_nodes()
        if not reason and len(rails) > 1:
            reason = planner.refusal(rails) or ""
        pair, no_pair = channel_planner(planner)
        if reason or pair is None:
            return Plan(reason=reason or no_pair)
        layouts = layouts_of(planner.partition)
        legs = (collective_leg(planner, pair, rails, layout) for layout in layouts)
        return Plan(legs=(pair.leg(rails, variant="pair"), *legs))


def collective_leg(
    planner: LegPlanner,
    pair: LegPlanner,
    rails: tuple[str, ...],
    layout: Layout,
    *,
    variant: str = "",
    environment: Mapping[str, str] | None = None,
) -> Leg:
    """Return the leg of the planner's collective on ``layout``, judged by the pair's numbers.

    The leg of ``pair`` over the same rails, variant ``pair``, must be in the plan; ``variant``
    tells it from another leg of the same path and layout: an algorithm.
    """
    shape = f"{layout.num_nodes}x{layout.ranks_per_node}"
    program, fabric = printed_name(planner.program), pair.physics(rails)
    stated = pair.references(rails).get("latency")
    alpha_us = stated.value if stated else 0.0
    job = make_collective_job(
        planner.suite,
        program,
        planner.argv,
        RankLayout(num_ranks=layout.num_ranks, ranks_per_node=layout.ranks_per_node),
        max_size=parse_size(planner.partition.collective_max_size),
        # What a message may cost, to size the effort by: the site's word, else physics.
        channel=Channel(
            alpha_us=(fabric and alpha_us) or pair.latency_guess_us(fabric),
            beta_us_per_byte=1 / pair.rate_mb_s(fabric) if fabric else 0.001,
        ),
        seconds=LAYOUT_SHARE * planner.partition.leg_seconds,
    )
    ends = dict.fromkeys((job.sizes[0], job.sizes[-1])) if job.sizes else ()
    # mpi4py's barrier prints a row of 0 bytes.
    barrier = (0,) if planner.suite == "osu-mpi4py" else ()
    named = f"{shape}.{variant}" if variant else shape
    return replace(
        pair.leg(rails, variant=named, layout=layout, environment=environment),
        suite=planner.suite,
        program=program,
        commands=job.commands,
        expected_sizes=job.sizes or barrier,
        spread=len(rails) > 1 and bool(job.sizes),
        traffic=job.traffic,
        required=tuple(at_size("latency", size) for size in ends) or ("latency",),
        references=replace(planner, hops=None).references(
            rails, num_nodes=layout.num_nodes, ranks_per_node=layout.ranks_per_node
        ),
        channel_leg=f"{'+'.join(rails)}.pair",
        stated_alpha_us=alpha_us,
        model_factor=planner.partition.collective_factor,
        library=planner.mpi_library(),
    )


class RingBenchmark(FabricBenchmark):
    """The rings of hpcc on all nodes of the partition, over one rail and over all."""

    suite = HPCC_SUITE
    program = HPCC_PROGRAM

    #: as many ranks on a node as the partition allows, else as few
    packed = variable(bool, value=False)

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg over the first rail and, where the stack can, one over all."""
        ranks = (max if self.packed else min)(planner.partition.ranks_per_node)
        nodes, (pair, reason) = planner.partition.num_nodes, any_pair(planner)
        if nodes < 2:
            reason = f"num_nodes of partition {planner.partition.name} is below 2"
        if nodes < 2 or pair is None:
            return Plan(reason=reason)
        layout = Layout(num_nodes=nodes, ranks_per_node=ranks)
        one = _ring(planner, pair, planner.rails[:1], layout)
        if len(planner.rails) < 2 or planner.refusal(planner.rails) is not None:
            return Plan(legs=(one(()),))
        # Over all rails a ring may lose what a ring may lose by itself: the same two steps, timed
        # at once on twice the links.  Stricter, a pair of rings that both pass would be red
        # together (0.83 of two rails over 0.95 of one is 1.75).  One rail at half its rate leaves
        # 1.5 and is red.
        gain, origin = expected_gain(planner)[0], "the rails' rates"
        return compare(
            f"{'+'.join(planner.rails)}.{nodes}x{ranks}.over_one_rail",
            over=[_ring(planner, pair, planner.rails, layout)],
            under=[one],
            reference=at_least(gain, unit="x", tolerance=RING_TOLERANCE, origin=origin),
            quantity=RINGS[1],
            sizes=None,
            hint="see the legs of the rails alone (OsuMultiRailBandwidth)",
        )


class RingPlacement(FabricBenchmark):
    """The rings of hpcc on nodes close together, and on as many that are spread."""

    suite = HPCC_SUITE
    program = HPCC_PROGRAM

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg for each placement and what the spread one is to the other."""
        count = max(LEAST_NODES, planner.partition.num_nodes // 2)
        placed = choose_nodes(
            planner,
            lambda topology, nodes: (
                contiguous(topology, nodes, count),
                spread(topology, nodes, count),
            ),
            lambda both: len(both[0]) >= LEAST_NODES and set(both[0]) != set(both[1]),
            f"no {count} are nearer than others",
        )
        return Plan(reason=placed) if isinstance(placed, str) else self.of_nodes(planner, *placed)

    @staticmethod
    def of_nodes(planner: LegPlanner, near: tuple[str, ...], far: tuple[str, ...]) -> Plan:
        """Return the rings of ``near`` nodes, of as many that are ``far``, and how they compare."""
        pair, reason = any_pair(planner)
        if pair is None:
            return Plan(reason=reason)
        rails, ranks = planner.rails[:1], min(planner.partition.ranks_per_node)

        def on(nodes: tuple[str, ...], name: str) -> MakeLeg:
            layout = Layout(num_nodes=len(nodes), ranks_per_node=ranks, nodes=nodes)
            return _ring(planner, pair, rails, layout, f".{name}")

        origin = "links between switches as wide as needed"
        return compare(
            f"{rails[0]}.{len(far)}x{ranks}.spread.over_contiguous",
            over=[on(far, "spread")],
            under=[on(near, "contiguous")],
            reference=at_least(1.0, unit="x", tolerance=PLACE_TOLERANCE, origin=origin),
            quantity=RINGS[1],
            sizes=None,
            hint="nodes far apart share links between switches that near ones do not need",
        )


def _ring(
    planner: LegPlanner, pair: LegPlanner, rails: tuple[str, ...], layout: Layout, name: str = ""
) -> MakeLeg:
    argv = planner.argv
    ranks = RankLayout(num_ranks=layout.num_ranks, ranks_per_node=layout.ranks_per_node)
    leg = replace(
        pair.leg(
            rails,
            variant=f"{layout.num_nodes}x{layout.ranks_per_node}{name}",
            layout=layout,
            environment={"FABRICPROOF_PROGRAM": argv[0]},
        ),
        suite=HPCC_SUITE,
        program=HPCC_PROGRAM,
        commands=(hpcc_command(argv),),
        expected_sizes=(HPCC_MESSAGE_BYTES,),
        traffic=hpcc_traffic(ranks),
        spread=len(rails) > 1,
        required=RINGS,
        references=planner.references(rails),
        library=None,
        limit_seconds=int(LIMIT_FACTOR * hpcc_seconds(planner.physics(rails), ranks)),
    )
    return lambda _: leg
