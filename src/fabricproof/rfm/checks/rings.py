"""Checks of rings: all nodes send to both neighbours at once (HPC Challenge)."""

from __future__ import annotations

from reframe.core.builtins import variable

from fabricproof.core.errors import FabricproofError
from fabricproof.job.collective_commands import HPCC_PROGRAM, HPCC_SUITE
from fabricproof.job.leg import Plan
from fabricproof.nodes.topology import Shape, contiguous, spread
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.rings import placed_plan, ranks_on_a_node, ring_plan
from fabricproof.rfm.slurm_nodes import places

#: Of two nodes both neighbours are one: the ring is a pair, whose messages may share a connection
#: (Open MPI's btl/tcp carried 11.7 of 23.5 MB/s, one direction after the other).
LEAST_NODES = 3


class RingBenchmark(FabricBenchmark):
    """The rings of hpcc on all nodes of the partition, over one rail and over all."""

    suite = HPCC_SUITE
    program = HPCC_PROGRAM

    #: as many ranks on a node as the partition allows, else as few
    packed = variable(bool, value=False)

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg over the first rail and, where the stack can, one over all."""
        return ring_plan(planner, ranks_on_a_node(planner, packed=self.packed))


class RingPlacement(RingBenchmark):
    """The rings of hpcc on nodes close together, and on as many that are spread."""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg for each placement and what the spread one is to the other."""
        try:
            topology, nodes = places(planner.partition)
        except FabricproofError as error:
            if self.is_dry_run():
                return Plan(reason=f"only Slurm knows the distances: {error}")
            raise
        if topology is None or topology.shape is Shape.FLAT:
            return Plan(reason="Slurm knows no topology here: no node is nearer than another")
        count = max(LEAST_NODES, planner.partition.num_nodes // 2)
        near, far = contiguous(topology, nodes, count), spread(topology, nodes, count)
        if len(near) < LEAST_NODES or set(near) == set(far):
            return Plan(
                reason=f"no {count} of the {len(nodes)} usable nodes are nearer than others"
            )
        return placed_plan(planner, near, far, ranks_on_a_node(planner, packed=self.packed))
