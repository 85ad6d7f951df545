"""Checks with buffers in the memory of GPUs: of pairs, and of NCCL or RCCL on all GPUs."""

from __future__ import annotations

from dataclasses import replace

from reframe.core.builtins import parameter, variable

from fabricproof.core.errors import ConfigError
from fabricproof.core.units import at_size
from fabricproof.job.collective_commands import BUS_SECONDS, BUS_SUITES, make_bus_job
from fabricproof.job.leg import Leg, Plan
from fabricproof.physics.collective import RankLayout
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.current import current_site, fabric_choices, why_no_site
from fabricproof.rfm.families.collectives import any_pair
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.programs import find_program
from fabricproof.site import GpuSpec, PartitionSpec, StackSpec, gpus_of
from fabricproof.site.roll import stack_of_looks
from fabricproof.stacks.family import bus_environment, gpu_environment
from fabricproof.stacks.launch import Layout

#: options of spack-envs/options that build a stack for buffers on GPUs
GPU_OPTIONS = frozenset({"cuda", "rocm"})

#: where OSU puts the buffers of rank 0 and of rank 1 -> how the names of the quantities begin
PLACES = {("D", "D"): "device_", ("H", "D"): "host_to_device_", ("D", "H"): "device_to_host_"}

#: what OSU calls the kinds of GPUs (``-d``, util/osu_util_options.h); Level Zero it reaches by SYCL
_ACCELERATORS = {"cuda": "cuda", "rocm": "rocm", "level-zero": "sycl"}


def gpu_fabrics() -> list[str]:
    """Return the fabrics of the partitions with GPUs; the site's first one where none has any."""
    if why_no_site():
        return fabric_choices()
    partitions = current_site().partitions
    with_gpus = [name for each in partitions if each.gpus for name in each.fabrics]
    return list(dict.fromkeys(with_gpus)) or partitions[0].fabrics[:1]


class GpuBenchmark(FabricBenchmark):
    """A pair of nodes whose buffers lie on GPUs, over each rail by itself."""

    fabric = parameter(gpu_fabrics(), loggable=True)

    #: required with one stack of each partition, not with each: where the site has no GPUs
    once = variable(bool, value=False)

    def environs(self) -> list[str]:
        """Leave one row of each check to a site without GPUs, not one for each stack."""
        site = current_site()
        if any(each.gpus for each in site.partitions):
            return super().environs()
        chosen = [each for each in site.partitions if self.fabric in each.fabrics]
        self.once = True
        return sorted({stack_of_looks(site, each) for each in chosen})

    def why_not(self) -> str:
        """Tell where there are no GPUs, where the stack takes none, and where another one skips."""
        site = current_site()
        partition = site.partition(self.current_partition.name)
        if partition.same_node:
            return f"it measures between two nodes, and partition {partition.name} has one"
        return self.why_no_gpus(partition, site.stack(self.current_environ.name))

    def why_no_gpus(self, partition: PartitionSpec, stack: StackSpec) -> str:
        """Return what the partition or the stack lacks; empty where both have all."""
        return why_no_gpus(partition, stack)

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg over each rail for buffers on both GPUs, and on either."""
        return pair_plan(planner)


class BusBenchmark(GpuBenchmark):
    """All GPUs of all nodes of the partition at once, over all rails: nccl-tests, rccl-tests."""

    def why_no_gpus(self, partition: PartitionSpec, stack: StackSpec) -> str:  # noqa: ARG002
        """Take the suite of the GPUs' kind; tell where there is none for them."""
        if reason := why_no_bus(partition):
            return reason
        assert partition.gpus is not None, "why_no_bus asked"
        self.suite = BUS_SUITES[partition.gpus.kind]
        return ""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the leg."""
        return bus_plan(planner)


def _no_gpus(partition: PartitionSpec) -> str:
    return f"partition {partition.name} has no GPUs: site.toml has no gpus there"


def why_no_gpus(partition: PartitionSpec, stack: StackSpec) -> str:
    """Return why nothing with buffers on GPUs runs there; empty where it does."""
    gpus = partition.gpus
    if gpus is None:
        return _no_gpus(partition)
    if GPU_OPTIONS & set(stack.options) or stack.name in gpus.stacks:
        return ""
    return (
        f"stack {stack.name} takes no buffers on GPUs: it is built without cuda and rocm, and gpus "
        f"of partition {partition.name} does not name it in stacks"
    )


def why_no_bus(partition: PartitionSpec) -> str:
    """Return why nothing of nccl-tests or rccl-tests runs there; empty where it does."""
    if partition.gpus is None:
        return _no_gpus(partition)
    if partition.gpus.kind not in BUS_SUITES:
        return f"nccl-tests and rccl-tests have no GPUs of kind {partition.gpus.kind}"
    return f"num_nodes of partition {partition.name} is below 2" if partition.num_nodes < 2 else ""


def pair_plan(planner: LegPlanner) -> Plan:
    """Return a leg over each rail for each of :data:`PLACES`, or the reason for none.

    IMB-MPI1-GPU has both buffers on GPUs and no other way.
    """
    gpus = planner.partition.gpus
    assert gpus is not None, "why_no_gpus was asked before"
    refusal = planner.refusal(planner.rails[:1])
    if planner.suite == "osu-mpi4py":
        refusal = f"{planner.suite} has no buffers on GPUs; OSU's C programs have"
    if refusal is not None:
        return Plan(reason=refusal)
    is_imb, legs = planner.suite == "imb", []
    for rail in planner.rails:
        for places in list(PLACES)[:1] if is_imb else PLACES:
            leg = planner.leg((rail,), variant="".join(places))
            told: tuple[str, ...] = ("-d", _ACCELERATORS[gpus.kind], *places)
            told = ("-mem_alloc_type", "device") if is_imb else told
            leg = replace(
                on_gpus(planner, gpus, leg, num_gpus=1),
                commands=tuple((*argv, *told) for argv in leg.commands),
                required=tuple(f"{PLACES[places]}{each}" for each in leg.required),
            )
            legs.append(leg)
    return Plan(legs=tuple(legs))


def bus_plan(planner: LegPlanner) -> Plan:
    """Return the leg of one of nccl-tests on all GPUs of all nodes, over all rails."""
    gpus, rails = planner.partition.gpus, planner.rails
    assert gpus is not None, "why_no_bus was asked before"
    pair, reason = any_pair(planner)
    if pair is None:
        return Plan(reason=f"nothing says how this stack starts its ranks: {reason}")
    refusal = planner.refusal(rails[:1])
    if refusal is not None:
        return Plan(reason=refusal)
    try:
        path = bus_environment(planner.protocol, rails, planner.stack.spec.environment)
    except ConfigError as error:
        return Plan(reason=f"{error.problem}: {planner.protocol}")
    found = find_program(planner.stack, planner.suite, planner.program)
    assert found.argv is not None, "choose_suite found it before"
    layout = Layout(num_nodes=planner.partition.num_nodes, ranks_per_node=gpus.per_node)
    ranks = RankLayout(num_ranks=layout.num_ranks, ranks_per_node=layout.ranks_per_node)
    job = make_bus_job(planner.suite, planner.program, found.argv, ranks)
    shape = f"{layout.num_nodes}x{layout.ranks_per_node}"
    leg = pair.leg(rails[:1], variant=shape, layout=layout)
    leg = on_gpus(planner, gpus, leg, num_gpus=gpus.per_node)
    fabric, own = planner.stated(rails), leg.fabric.gpus if leg.fabric is not None else None
    leg = replace(
        leg,
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
        fabric=fabric and replace(fabric, gpus=own),
    )
    return Plan(legs=(leg,))


def on_gpus(planner: LegPlanner, gpus: GpuSpec, leg: Leg, *, num_gpus: int) -> Leg:
    """Return a leg with what its MPI is told of GPUs, the ceiling of their slot, and the question.

    ``num_gpus`` of a node send at once.
    """
    mine = gpu_environment(planner.stack.family, gpus.kind, leg.environment)
    return replace(
        leg,
        environment={**leg.environment, **mine},
        fabric=leg.fabric and replace(leg.fabric, gpus=gpus_of(gpus, num_gpus)),
        ask=("gpus", gpus.kind),
    )
