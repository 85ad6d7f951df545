"""Checks with buffers in the memory of GPUs; where a site has none, they are skipped once."""

from __future__ import annotations

from reframe.core.builtins import parameter, variable

from fabricproof.job.collective_commands import BUS_SUITES
from fabricproof.job.leg import Plan
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.current import current_site, fabric_choices, why_no_site
from fabricproof.rfm.legs.gpu import bus_plan, pair_plan, why_no_bus, why_no_gpus
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import PartitionSpec, StackSpec
from fabricproof.site.roll import stack_of_looks


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
        stack = site.stack(self.current_environ.name)
        if partition.same_node:
            return f"it measures between two nodes, and partition {partition.name} has one"
        return self.why_no_gpus(partition, stack)

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
