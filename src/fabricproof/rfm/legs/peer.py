"""Plan legs without MPI: iperf3, iperf, perftest over one rail between two nodes."""

from __future__ import annotations

from dataclasses import replace

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.units import at_size
from fabricproof.job.commands import Pace, peer_job
from fabricproof.job.leg import Leg
from fabricproof.physics import bound
from fabricproof.rfm.legs.leg import MEMORY_MB_S, LegPlanner
from fabricproof.verdict.value import Reference


def with_links(planner: LegPlanner, links: int) -> LegPlanner:
    """Return ``planner`` for ``links`` TCP connections of a pair on each rail."""
    stack = planner.stack
    environment = {**stack.spec.environment, "OMPI_MCA_btl_tcp_links": str(links)}
    spec = stack.spec.model_copy(update={"environment": environment})
    return replace(planner, stack=replace(stack, spec=spec))


def peer_leg(
    planner: LegPlanner,
    rail: str,
    *,
    variant: str = "",
    streams: int = 1,
    environment: dict[str, str] | None = None,
) -> Leg:
    """Return a leg of the planner's program, one of a suite without MPI, over ``rail``."""
    alone = with_links(planner, 1)  # the streams stand in the output and count by themselves
    rails = (rail,)
    job = peer_job(planner.suite, planner.program, rail, _pace(alone, rail), streams=streams)
    is_latency = meaning(planner.suite, planner.program).kind is ProgramKind.LATENCY
    ends = (job.sizes[0] if is_latency else job.sizes[-1],) if job.sizes else ()
    kind = "latency" if is_latency else "bandwidth"
    return Leg(
        name=rail + (f".{variant}" if variant else ""),
        rails=rails,
        suite=planner.suite,
        program=planner.program,
        environment={
            **planner.launch.environment,
            **(environment or {}),
        },
        commands=job.commands,
        expected_sizes=job.sizes,
        traffic=job.traffic,
        spread=False,
        required=tuple(at_size(kind, size) for size in ends) or (kind,),
        references=_references(alone, rails),
        tolerance=planner.site.spec.tolerance,
        curve_tolerance=planner.partition.curve_tolerance,
        fabric=alone.stated(rails),
    )


def _references(planner: LegPlanner, rails: tuple[str, ...]) -> dict[str, Reference]:
    """Return the site's references; what it says of any latency is one way, a read goes both."""
    found = planner.references(rails)
    if not meaning(planner.suite, planner.program).round_trip:
        return found
    of_any = replace(planner, program="any other").references(rails)
    return {
        name: _both_ways(each) if each == of_any.get(name) and name.startswith("latency") else each
        for name, each in found.items()
    }


def _both_ways(reference: Reference) -> Reference:
    return replace(
        reference,
        value=2 * reference.value,
        lower=2 * reference.lower if reference.lower is not None else None,
        upper=2 * reference.upper if reference.upper is not None else None,
        origin=f"{reference.origin}, there and back",
    )


def _pace(planner: LegPlanner, rail: str) -> Pace:
    fabric = planner.physics((rail,))
    if fabric is None:
        return Pace(rate_mb_s=MEMORY_MB_S, latency_us=10.0, seconds=planner.partition.leg_seconds)
    return Pace(
        rate_mb_s=bound(fabric).low_mb_s,
        latency_us=planner.latency_guess_us(fabric),
        seconds=planner.partition.leg_seconds,
    )
