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
from fabricproof.site import gpus_of
from fabricproof.site.roll import stack_of_looks
from fabricproof.stacks.family import bus_environment, gpu_environment
from fabricproof.stacks.launch import Layout

#: options of spack-envs/options that build a stack for buffers on GPUs
GPU_OPTIONS = frozenset({"cuda", "rocm"})

#: where OSU puts the buffers of rank 0 and of rank 1 -> how the names of the quantities begin
PLACES = {("D", "D"): "device_", ("H", "D"): "host_to_device_", ("D", "H"): "device_to_host_"}

#: what OSU calls the kinds of GPUs (``-d``, util/osu_util_options.h); Level Zero it reaches by SYCL
_ACCELERATORS = {"cuda": "cuda", "rocm": "rocm", "level-zero": "sycl"}

#: what shows a program some GPUs alone (CUDA programming guide; ROCm, "GPU isolation"; oneAPI Level
#: Zero specification, ZE_AFFINITY_MASK)
VISIBLE_GPUS = {
    "cuda": "CUDA_VISIBLE_DEVICES",
    "rocm": "ROCR_VISIBLE_DEVICES",
    "level-zero": "ZE_AFFINITY_MASK",
}


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

    def why_not(self, planner: LegPlanner) -> str:
        """Tell where there are no GPUs or no two nodes, and where the stack takes none."""
        partition = planner.partition
        if partition.same_node:
            return f"it measures between two nodes, and partition {partition.name} has one"
        if partition.gpus is None:
            return f"partition {partition.name} has no GPUs: site.toml has no gpus there"
        return self.why_not_of_kind(planner)

    def why_not_of_kind(self, planner: LegPlanner) -> str:
        """Return why nothing with buffers on GPUs runs with the stack; empty where it does."""
        gpus, stack = planner.partition.gpus, planner.stack.spec
        assert gpus is not None, "why_not was asked before"
        if GPU_OPTIONS & set(stack.options) or stack.name in gpus.stacks:
            return ""
        return (
            f"stack {stack.name} takes no buffers on GPUs: it is built without cuda and rocm, and "
            f"gpus of partition {planner.partition.name} does not name it in stacks"
        )

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg over each rail for buffers on both GPUs, and on either.

        IMB-MPI1-GPU has both buffers on GPUs and no other way.
        """
        gpus = planner.partition.gpus
        assert gpus is not None, "why_not was asked before"
        refusal = planner.refusal(planner.rails[:1])
        if planner.suite == "osu-mpi4py":
            refusal = f"{planner.suite} has no buffers on GPUs; OSU's C programs have"
        if refusal is not None:
            return Plan(reason=refusal)
        is_imb, legs = planner.suite == "imb", []
        for rail in planner.spec.rails:
            # Behind the launcher: Slurm's step sets the variable to all GPUs of the job.
            beside = () if rail.gpu is None else ("env", f"{VISIBLE_GPUS[gpus.kind]}={rail.gpu}")
            program = {"FABRICPROOF_PROGRAM": planner.argv[0]} if beside else {}
            for places, begin in list(PLACES.items())[: 1 if is_imb else None]:
                variant = "".join(places)
                leg = planner.leg((rail.interface,), variant=variant, environment=program)
                options: tuple[str, ...] = ("-d", _ACCELERATORS[gpus.kind], *places)
                options = ("-mem_alloc_type", "device") if is_imb else options
                leg = replace(
                    _on_gpus(planner, leg, num_gpus=1),
                    commands=tuple((*beside, *argv, *options) for argv in leg.commands),
                    required=tuple(f"{begin}{each}" for each in leg.required),
                )
                legs.append(leg)
        return Plan(legs=tuple(legs))


class BusBenchmark(GpuBenchmark):
    """All GPUs of all nodes of the partition at once, over all rails: nccl-tests, rccl-tests."""

    def why_not_of_kind(self, planner: LegPlanner) -> str:
        """Take the suite of the GPUs' kind; tell where there is none for them."""
        partition = planner.partition
        assert partition.gpus is not None, "why_not was asked before"
        if partition.gpus.kind not in BUS_SUITES:
            return f"nccl-tests and rccl-tests have no GPUs of kind {partition.gpus.kind}"
        self.suite = BUS_SUITES[partition.gpus.kind]
        few = partition.num_nodes < 2
        return f"num_nodes of partition {partition.name} is below 2" if few else ""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the leg."""
        gpus, rails = planner.partition.gpus, planner.rails
        assert gpus is not None, "why_not was asked before"
        pair, reason = any_pair(planner)
        if pair is None:
            return Plan(reason=f"nothing says how this stack starts its ranks: {reason}")
        if refusal := planner.refusal(rails[:1]):
            return Plan(reason=refusal)
        try:
            path = bus_environment(planner.protocol, rails, planner.stack.spec.environment)
        except ConfigError as error:
            return Plan(reason=f"{error.problem}: {planner.protocol}")
        layout = Layout(num_nodes=planner.partition.num_nodes, ranks_per_node=gpus.per_node)
        ranks = RankLayout(num_ranks=layout.num_ranks, ranks_per_node=layout.ranks_per_node)
        job = make_bus_job(planner.suite, planner.program, planner.argv, ranks)
        shape = f"{layout.num_nodes}x{layout.ranks_per_node}"
        leg = pair.leg(rails[:1], variant=shape, layout=layout)
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
            fabric=planner.stated(rails),
        )
        return Plan(legs=(_on_gpus(planner, leg, num_gpus=gpus.per_node),))


def _on_gpus(planner: LegPlanner, leg: Leg, *, num_gpus: int) -> Leg:
    """Return a leg with what its MPI is told of GPUs, the ceiling of their slot, and the question.

    ``num_gpus`` of a node send at once.
    """
    gpus = planner.partition.gpus
    assert gpus is not None, "why_not was asked before"
    mine = gpu_environment(planner.stack.family, gpus.kind, leg.environment)
    return replace(
        leg,
        environment={**leg.environment, **mine},
        fabric=leg.fabric and replace(leg.fabric, gpus=gpus_of(gpus, num_gpus)),
        ask=("gpus", gpus.kind),
    )
