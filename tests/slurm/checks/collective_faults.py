"""Collectives that go wrong on purpose, for the tests of the verdicts on a real Slurm."""

from dataclasses import replace
from typing import ClassVar

import reframe as rfm

from fabricproof.job.leg import Plan
from fabricproof.rfm.families.collectives import CollectiveBenchmark
from fabricproof.stacks.launch import Layout, layout_options, plan_launch


class FaultyCollective(CollectiveBenchmark):
    """A collective whose largest layout of one rank on each node is changed after planning."""

    suite = "osu"
    program = "osu_allgather"
    family_tags: ClassVar = ["fault"]

    def plan(self, planner):
        """Keep the pair and one layout, and let the subclass change that."""
        pair, *legs = super().plan(planner).legs
        last = [leg for leg in legs if leg.ranks_per_node == 1][-1]
        return Plan(legs=(pair, self.spoiled(last)))

    def spoiled(self, leg):
        return leg


@rfm.simple_test
class AllgatherOverManagement(FaultyCollective):
    """Open MPI, told to use the management network while rail0 is judged."""

    def spoiled(self, leg):
        detour = {"OMPI_MCA_btl_tcp_if_include": "mgmt0"}
        return replace(leg, environment={**leg.environment, **detour})


@rfm.simple_test
class BarrierOverManagement(FaultyCollective):
    """Packets without payload over the management network: only their number can show it."""

    program = "osu_barrier"

    def spoiled(self, leg):
        detour = {"OMPI_MCA_btl_tcp_if_include": "mgmt0"}
        return replace(leg, environment={**leg.environment, **detour})


@rfm.simple_test
class AllgatherOnTwoNodes(FaultyCollective):
    """Four ranks asked for on four nodes and started on two."""

    def plan(self, planner):
        """Keep the largest layout too, so that the job may start two ranks on a node."""
        plan = super().plan(planner)
        largest = CollectiveBenchmark.plan(self, planner).legs[-1]
        return Plan(legs=(*plan.legs, largest))

    def spoiled(self, leg):
        two = layout_options("mpich", "srun", Layout(num_nodes=2, ranks_per_node=2))
        return replace(leg, launch=("srun", *plan_launch("mpich").options, *two))


@rfm.simple_test
class AllgatherCutShort(FaultyCollective):
    """A collective that asks for larger messages than its table has."""

    def spoiled(self, leg):
        return replace(leg, expected_sizes=(*leg.expected_sizes, 2 * leg.expected_sizes[-1]))
