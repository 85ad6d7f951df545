"""The legs of a quick campaign, planned by the product: sizes, repetitions, bytes that are due."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.units import at_size
from fabricproof.job.commands import make_job, plan_ping_pong, plan_windowed
from fabricproof.job.leg import FabricFacts, Leg
from fabricproof.job.outcomes import BACK, LARGEST_SIZES, backward
from fabricproof.proof.machine.model import ModelFabric
from fabricproof.proof.machine.scene import LIBRARY
from fabricproof.verdict.value import Reference, at_most

#: check -> its suite and program
CHECKS = {
    "OsuBandwidth": ("osu", "osu_bw"),
    "OsuLatency": ("osu", "osu_latency"),
    "ImbPingPong": ("imb", "PingPong"),
    "OsuMultirail": ("osu", "osu_bw"),
}

#: budget of a leg, s, and largest message, as of a quick suite
LEG_SECONDS, LARGEST_BYTES = 3.0, 4 * 1024 * 1024

#: how much more than the usual a small message may take, by the model's site file
LATENCY_TOLERANCE = 0.15


def legs_of(check: str, fabric: ModelFabric, nodes: tuple[str, ...]) -> tuple[Leg, ...]:
    """Return the legs of ``check`` on a pair of nodes.

    Args:
        check: a key of :data:`CHECKS`.
        fabric: of the model.
        nodes: the pair, in the order of the ranks.
    """
    return tuple(replace(leg, nodes=nodes) for leg in _planned(check, fabric))


@lru_cache
def _planned(check: str, fabric: ModelFabric) -> tuple[Leg, ...]:
    if check == "OsuMultirail":
        return (_leg(check, fabric, fabric.rails),)
    each = tuple(_leg(check, fabric, (rail,)) for rail in fabric.rails)
    if check != "OsuBandwidth":
        return each
    return (*each, *(_backward(leg, fabric) for leg in each))


def _backward(leg: Leg, fabric: ModelFabric) -> Leg:
    short = _leg("OsuBandwidth", fabric, leg.rails, sizes=leg.expected_sizes[-LARGEST_SIZES:])
    return backward(replace(short, name=f"{leg.name}.{BACK}"))


def _leg(
    check: str, fabric: ModelFabric, rails: tuple[str, ...], sizes: tuple[int, ...] = ()
) -> Leg:
    suite, program = CHECKS[check]
    is_rate = meaning(suite, program).kind is ProgramKind.BANDWIDTH
    plan = plan_windowed if is_rate else plan_ping_pong
    effort = plan(
        max_size=LARGEST_BYTES,
        rate_mb_s=fabric.rate_mb_s * len(rails),
        latency_us=fabric.start_us,
        seconds=LEG_SECONDS,
        sizes=sizes,
    )
    job = make_job(suite, program, (program,), effort)
    return Leg(
        name="+".join(rails),
        rails=rails,
        suite=suite,
        program=program,
        environment={},
        commands=job.commands,
        expected_sizes=job.sizes,
        sent_bytes=job.sent_bytes,
        sent_per_message=job.sent_per_message,
        sent_messages=None if is_rate or len(rails) > 1 else job.sent_messages,
        least_repetitions=job.least_repetitions,
        spread=len(rails) > 1,
        required=_required(program, job.sizes, is_rate=is_rate),
        references={} if program == "osu_bw" else {"latency": _usual(fabric)},
        tolerance=0.10,
        fabric=_facts(fabric, rails),
        library=LIBRARY,
    )


def _facts(fabric: ModelFabric, rails: tuple[str, ...]) -> FabricFacts:
    return replace(fabric.facts, num_rails=len(rails))


def _required(program: str, sizes: tuple[int, ...], *, is_rate: bool) -> tuple[str, ...]:
    plateau, smallest = at_size("bandwidth", sizes[-1]), at_size("latency", sizes[0])
    if program == "osu_bw":
        return (plateau,)
    return (plateau, smallest) if is_rate else (smallest,)


def _usual(fabric: ModelFabric) -> Reference:
    """Return the site's own word on small messages: 5 % above what the model's best node has."""
    return at_most(
        1.05 * fabric.start_us * fabric.reference_factor,
        tolerance=LATENCY_TOLERANCE,
        origin="the site's own measurement",
    )
