"""Legs whose buffers lie in the memory of GPUs: on both nodes, or on one of them."""

from __future__ import annotations

from dataclasses import replace

from fabricproof.job.leg import Leg, Plan
from fabricproof.physics import find_slot
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import GpuSpec, PartitionSpec, StackSpec
from fabricproof.stacks.family import gpu_environment

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
    """Return a leg over each rail for each of :data:`PLACES`, or the reason for none."""
    gpus = planner.partition.gpus
    assert gpus is not None, "why_no_gpus was asked before"
    if planner.suite != "osu":
        return Plan(reason=f"{planner.suite} has no buffers on GPUs; OSU's C programs have")
    refusal = planner.refusal(planner.rails[:1])
    if refusal is not None:
        return Plan(reason=refusal)
    return Plan(
        legs=tuple(
            _pair_leg(planner, gpus, rail, places) for rail in planner.rails for places in PLACES
        )
    )


def _pair_leg(planner: LegPlanner, gpus: GpuSpec, rail: str, places: tuple[str, str]) -> Leg:
    leg = planner.leg((rail,), variant="".join(places))
    told = ("-d", _ACCELERATORS[gpus.kind], *places)
    return replace(
        on_gpus(planner, gpus, leg, num_gpus=1),
        commands=tuple((*argv, *told) for argv in leg.commands),
        required=tuple(f"{PLACES[places]}{each}" for each in leg.required),
    )


def on_gpus(planner: LegPlanner, gpus: GpuSpec, leg: Leg, *, num_gpus: int) -> Leg:
    """Return a leg with what its MPI is told of GPUs, the ceiling of their slot, and the question.

    Args:
        planner: of the leg.
        gpus: of the partition.
        leg: as for buffers of hosts.
        num_gpus: those of a node that send at once.
    """
    mine = gpu_environment(planner.stack.family, gpus.kind, leg.environment)
    slot = find_slot(gpus.pcie).name if gpus.pcie else None
    facts = {"slot": slot, "num_gpus": num_gpus, "direct": gpus.direct}
    return replace(
        leg,
        environment={**leg.environment, **mine},
        fabric=replace(leg.fabric, gpus=facts) if leg.fabric is not None else None,
        ask=("gpus", gpus.kind),
    )
