"""The legs of a collective: one for each layout, and a pair's that says what a message costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fabricproof.core.errors import ConfigError
from fabricproof.core.units import at_size, parse_size
from fabricproof.job.collective_commands import make_collective_job
from fabricproof.job.leg import Leg, Plan
from fabricproof.physics import bound
from fabricproof.physics.collective import RankLayout as Ranks
from fabricproof.physics.collective_models import Channel
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.programs import find_program
from fabricproof.site import PartitionSpec
from fabricproof.stacks.launch import Layout
from fabricproof.stacks.stack import printed_name

#: A collective is measured on several layouts: each gets this part of a leg's budget.
LAYOUT_SHARE = 0.5

#: what measures a message between two nodes, by suite
_POINT_TO_POINT = {"osu": ("osu", "osu_latency"), "imb": ("imb", "PingPong")}


def node_counts(most: int) -> tuple[int, ...]:
    """Return the numbers of nodes to try: the powers of two from 2, and all."""
    powers = [2**step for step in range(1, most.bit_length()) if 2**step <= most]
    return tuple(sorted({*powers, most})) if most > 1 else ()


def layouts_of(partition: PartitionSpec) -> tuple[Layout, ...]:
    """Return the layouts that a collective is measured on, small ones first."""
    return tuple(
        Layout(num_nodes=nodes, ranks_per_node=ranks)
        for ranks in partition.ranks_per_node
        for nodes in node_counts(partition.num_nodes)
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


def channel_leg(pair: LegPlanner, rails: tuple[str, ...]) -> Leg:
    """Return the leg that measures what a message costs over ``rails``."""
    return pair.leg(rails, variant="pair")


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

    The leg of ``pair`` over the same rails must be in the plan; ``variant`` tells it from another
    leg of the same path and layout: an algorithm.

    Raises:
        ConfigError: the program is no known collective, or the stack has not got it.
    """
    found = find_program(planner.stack, planner.suite, planner.program)
    if found.argv is None:
        raise ConfigError("a leg without its program", got=found.reason)
    shape = f"{layout.num_nodes}x{layout.ranks_per_node}"
    shape = f"{shape}.{variant}" if variant else shape
    net_path = pair.leg(rails, variant=shape, layout=layout, environment=environment)
    program = printed_name(planner.program)
    job = make_collective_job(
        planner.suite,
        program,
        found.argv,
        Ranks(num_ranks=layout.num_ranks, ranks_per_node=layout.ranks_per_node),
        max_size=parse_size(planner.partition.collective_max_size),
        channel=_guess(pair, rails),
        seconds=LAYOUT_SHARE * planner.partition.leg_seconds,
    )
    return replace(
        net_path,
        suite=planner.suite,
        program=program,
        commands=job.commands,
        expected_sizes=_printed_sizes(planner.suite, job.sizes),
        spread=len(rails) > 1 and bool(job.sizes),
        traffic=job.traffic,
        required=_required(job.sizes),
        references=planner.site.references_for(
            fabric=planner.fabric,
            suite=planner.suite,
            program=program,
            stack=planner.stack.name,
            num_rails=len(rails),
            stack_digest=planner.stack_digest,
            num_nodes=layout.num_nodes,
            ranks_per_node=layout.ranks_per_node,
        ),
        channel_leg=channel_leg(pair, rails).name,
        stated_alpha_us=_stated_alpha_us(pair, rails),
        model_factor=planner.partition.collective_factor,
        library=planner.mpi_library(),
    )


def _printed_sizes(suite: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes in the table: mpi4py's barrier prints one of 0 bytes."""
    return sizes or ((0,) if suite == "osu-mpi4py" else ())


def _required(sizes: tuple[int, ...]) -> tuple[str, ...]:
    ends = dict.fromkeys((sizes[0], sizes[-1])) if sizes else ()
    return tuple(at_size("latency", size) for size in ends) or ("latency",)


def _stated_alpha_us(pair: LegPlanner, rails: tuple[str, ...]) -> float:
    """Return what the site says that a small message of a pair takes; 0 where it does not."""
    stated = pair.references(rails).get("latency")
    return stated.value if stated else 0.0


def _guess(pair: LegPlanner, rails: tuple[str, ...]) -> Channel:
    """Return what a message may cost, to size the effort by: the site's word, else physics."""
    fabric = pair.physics(rails)
    if fabric is None:
        return Channel(alpha_us=10.0, beta_us_per_byte=0.001)
    return Channel(
        alpha_us=_stated_alpha_us(pair, rails) or pair.latency_guess_us(fabric),
        beta_us_per_byte=1 / bound(fabric).low_mb_s,
    )


def plan_collective(planner: LegPlanner, rails: tuple[str, ...]) -> Plan:
    """Return the legs of one collective over ``rails``, or the reason for none."""
    layouts = layouts_of(planner.partition)
    if planner.partition.same_node or not layouts:
        return Plan(
            reason=f"partition {planner.partition.name} has one node for it: no fabric between"
        )
    refusal = planner.refusal(rails) if len(rails) > 1 else None
    pair, reason = channel_planner(planner)
    if refusal is not None or pair is None:
        return Plan(reason=refusal or reason)
    legs = tuple(collective_leg(planner, pair, rails, layout) for layout in layouts)
    return Plan(legs=(channel_leg(pair, rails), *legs))
