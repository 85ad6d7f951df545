"""Legs whose buffers lie in the memory of GPUs: on both nodes, or on one of them."""

from __future__ import annotations

from dataclasses import replace

from fabricproof.core.errors import ConfigError
from fabricproof.core.units import at_size
from fabricproof.job.collective_commands import BUS_SECONDS, BUS_SUITES, make_bus_job
from fabricproof.job.leg import Leg, Plan
from fabricproof.physics.collective import RankLayout as Ranks
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.programs import find_program
from fabricproof.site import GpuSpec, PartitionSpec, StackSpec, gpus_of
from fabricproof.stacks.family import bus_environment, gpu_environment
from fabricproof.stacks.launch import Layout

#: options of spack-envs/options that build a stack for buffers on GPUs
GPU_OPTIONS = frozenset({"cuda", "rocm"})

#: where OSU puts the buffers of rank 0 and of rank 1 -> how the names of the quantities begin
PLACES = {("D", "D"): "device_", ("H", "D"): "host_to_device_", ("D", "H"): "device_to_host_"}

#: what OSU calls the kinds of GPUs (``-d``, util/osu_util_options.h); Level Zero it reaches by SYCL
_ACCELERATORS = {"cuda": "cuda", "rocm": "rocm", "level-zero": "sycl"}


def why_no_gpus(partition: PartitionSpec, stack: StackSpec) -> str:
    """Return why nothing with buffers on GPUs runs there; empty where it does."""
    gpus = partition.gpus
    if gpus is None:
        return f"partition {partition.name} has no GPUs: site.toml has no gpus there"
    if GPU_OPTIONS & set(stack.options) or stack.name in gpus.stacks:
        return ""
    return (
        f"stack {stack.name} takes no buffers on GPUs: it is built without cuda and rocm, and gpus "
        f"of partition {partition.name} does not name it in stacks"
    )


def pair_plan(planner: LegPlanner) -> Plan:
    """Return a leg over each rail for each of :data:`PLACES`, or the reason for none.

    IMB-MPI1-GPU has both buffers on GPUs and no other way.
    """
    gpus = planner.partition.gpus
    assert gpus is not None, "why_no_gpus was asked before"
    if planner.suite == "osu-mpi4py":
        return Plan(reason=f"{planner.suite} has no buffers on GPUs; OSU's C programs have")
    refusal = planner.refusal(planner.rails[:1])
    if refusal is not None:
        return Plan(reason=refusal)
    return Plan(
        legs=tuple(
            _pair_leg(planner, gpus, rail, places)
            for rail in planner.rails
            for places in (list(PLACES)[:1] if planner.suite == "imb" else PLACES)
        )
    )


def _pair_leg(planner: LegPlanner, gpus: GpuSpec, rail: str, places: tuple[str, str]) -> Leg:
    leg = planner.leg((rail,), variant="".join(places))
    told: tuple[str, ...] = ("-d", _ACCELERATORS[gpus.kind], *places)
    if planner.suite == "imb":
        told = ("-mem_alloc_type", "device")
    return replace(
        on_gpus(planner, gpus, leg, num_gpus=1),
        commands=tuple((*argv, *told) for argv in leg.commands),
        required=tuple(f"{PLACES[places]}{each}" for each in leg.required),
    )


def why_no_bus(partition: PartitionSpec) -> str:
    """Return why nothing of nccl-tests or rccl-tests runs there; empty where it does."""
    if partition.gpus is None:
        return f"partition {partition.name} has no GPUs: site.toml has no gpus there"
    if partition.gpus.kind not in BUS_SUITES:
        return f"nccl-tests and rccl-tests have no GPUs of kind {partition.gpus.kind}"
    if partition.num_nodes < 2:
        return f"num_nodes of partition {partition.name} is below 2"
    return ""


def bus_plan(planner: LegPlanner) -> Plan:
    """Return the leg of one of nccl-tests on all GPUs of all nodes, over all rails."""
    gpus = planner.partition.gpus
    assert gpus is not None, "why_no_bus was asked before"
    pair, reason = planner.of("osu", "osu_latency")
    if pair is None:
        pair, reason = planner.of("imb", "PingPong")
    if pair is None:
        return Plan(reason=f"nothing says how this stack starts its ranks: {reason}")
    refusal = planner.refusal(planner.rails[:1])
    if refusal is not None:
        return Plan(reason=refusal)
    try:
        path = bus_environment(planner.protocol, planner.rails)
    except ConfigError as error:
        return Plan(reason=f"{error.problem}: {planner.protocol}")
    found = find_program(planner.stack, planner.suite, planner.program)
    assert found.argv is not None, "choose_suite found it before"
    rails = planner.rails
    layout = Layout(num_nodes=planner.partition.num_nodes, ranks_per_node=gpus.per_node)
    ranks = Ranks(num_ranks=layout.num_ranks, ranks_per_node=layout.ranks_per_node)
    job = make_bus_job(planner.suite, planner.program, found.argv, ranks)
    shape = f"{layout.num_nodes}x{layout.ranks_per_node}"
    leg = pair.leg(rails[:1], variant=shape, layout=layout)
    leg = replace(
        on_gpus(planner, gpus, leg, num_gpus=gpus.per_node),
        name=f"{'+'.join(rails)}.{shape}",
        rails=rails,
        suite=planner.suite,
        program=planner.program,
        environment={**leg.environment, **path},
        commands=job.commands,
        expected_sizes=job.sizes,
        traffic=job.traffic,
        spread=len(rails) > 1 and gpus.per_node >= len(rails),
        required=(at_size("device_busbw", job.sizes[-1]),),
        references=planner.references(rails),
        library=None,
        limit_seconds=BUS_SECONDS,
    )
    fabric = planner.stated(rails)
    own = leg.fabric.gpus if leg.fabric is not None else None
    return Plan(legs=(replace(leg, fabric=fabric and replace(fabric, gpus=own)),))


def on_gpus(planner: LegPlanner, gpus: GpuSpec, leg: Leg, *, num_gpus: int) -> Leg:
    """Return a leg with what its MPI is told of GPUs, the ceiling of their slot, and the question.

    Args:
        planner: of the leg.
        gpus: of the partition.
        leg: as for buffers of hosts.
        num_gpus: those of a node that send at once.
    """
    mine = gpu_environment(planner.stack.family, gpus.kind, leg.environment)
    return replace(
        leg,
        environment={**leg.environment, **mine},
        fabric=leg.fabric and replace(leg.fabric, gpus=gpus_of(gpus, num_gpus)),
        ask=("gpus", gpus.kind),
    )
