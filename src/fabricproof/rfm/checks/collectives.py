"""Checks of collectives: each program on every layout, sweeps over algorithms, rings of hpcc."""

from __future__ import annotations

from collections.abc import Sequence

from reframe.core.builtins import parameter, run_after, variable

from fabricproof.job.collective_commands import HPCC_PROGRAM, HPCC_SUITE
from fabricproof.job.leg import Plan
from fabricproof.nodes.topology import contiguous, spread
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.current import why_one_rail
from fabricproof.rfm.legs.collective import plan_collective
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.programs import choose_suite
from fabricproof.rfm.legs.rings import placed_plan, ranks_on_a_node, ring_plan
from fabricproof.rfm.legs.sweep import plan_sweep, programs_of, why_no_comparison
from fabricproof.rfm.slurm_nodes import distances, require_not_due
from fabricproof.tuning import COLLECTIVES, find_knobs


class CollectiveBenchmark(FabricBenchmark):
    """One collective on every layout of the partition, over one path."""

    #: ``first``: the first rail; ``all``: all rails together
    net_paths = variable(str, value="first")
    #: its name in version 1
    roads = variable(alias=net_paths)

    def why_not(self) -> str:
        """Tell where several rails are asked for and there is one."""
        return why_one_rail(self.fabric) if self.net_paths == "all" else ""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the point-to-point leg, and one leg of the collective for each layout."""
        return plan_collective(
            planner, planner.rails if self.net_paths == "all" else planner.rails[:1]
        )


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
        known = distances(planner.partition, dry_run=self.is_dry_run())
        if isinstance(known, str):
            return Plan(reason=known)
        topology, nodes = known
        count = max(LEAST_NODES, planner.partition.num_nodes // 2)

        def placed(chosen: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
            return contiguous(topology, chosen, count), spread(topology, chosen, count)

        def differ(chosen: Sequence[str]) -> bool:
            near, far = placed(chosen)
            return len(near) >= LEAST_NODES and set(near) != set(far)

        if not differ(nodes):
            reason = f"no {count} of the {len(nodes)} usable nodes are nearer than others"
            if not self.is_dry_run():
                require_not_due(reason, planner.partition, topology, differ)
            return Plan(reason=reason)
        near, far = placed(nodes)
        return placed_plan(planner, near, far, ranks_on_a_node(planner, packed=self.packed))


class AlgorithmSweepBenchmark(FabricBenchmark):
    """One collective under the stack's own choice and under each algorithm that can be forced."""

    suite = "osu"
    program = ""

    #: what is swept: ``bcast``, ``allreduce`` ...
    collective = parameter(COLLECTIVES, loggable=True)

    @run_after("init")
    def name_the_program(self) -> None:
        """Say what is measured before anything is planned; another suite may have to do it."""
        self.program = f"osu_{self.collective}"

    def why_not(self) -> str:
        """Take the first suite that has the collective; tell where there is nothing to sweep."""
        stack = self.resolved()
        knobs, reason = find_knobs(stack.family, stack.version, self.collective)
        if knobs is None:
            return reason
        for suite, program in programs_of(self.collective):
            found, reason = choose_suite(stack, suite, program)
            if found is not None:
                reason = why_no_comparison(found, program)
            if not reason:
                self.suite, self.program = suite, program
                return ""
        return reason

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the turns of all series, and the relation that owns them."""
        return plan_sweep(planner, self.collective)
