"""The checks over several rails, by socket and by distance; what they plan is in rooms beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fabricproof.job.leg import Plan
from fabricproof.nodes.topology import Pair, pairs_by_hops
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.current import why_one_rail
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.placement import locality_plan, placement_plan
from fabricproof.rfm.legs.rails import matrix_plan, rails_plan
from fabricproof.rfm.slurm_nodes import distances, require_not_due


class RailsBenchmark(FabricBenchmark):
    """Each rail by itself and all rails together, on the same two nodes in one job."""

    def why_not(self) -> str:
        """Tell where there is one rail only."""
        return why_one_rail(self.fabric)

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the legs over each rail and over all, with their scaling and sharing."""
        refusal = planner.refusal(planner.rails)
        if refusal is not None and not planner.own_launcher:
            # srun may be what cannot start it: MPICH's wheel speaks PMI-1 to srun alone.
            own = replace(planner, own_launcher=True)
            if own.refusal(own.rails) is None:
                self.own_launcher = True
                return rails_plan(own)
        return Plan(reason=refusal) if refusal is not None else rails_plan(planner)


class RailMatrix(FabricBenchmark):
    """Each rail of one node against each rail of another, one leg for each pair of rails."""

    def why_not(self) -> str:
        """Tell where there is one rail only."""
        return why_one_rail(self.fabric)

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg for each pair of rails."""
        return matrix_plan(planner)


class LocalityBenchmark(FabricBenchmark):
    """Over each rail: ranks beside its slot, across from it, and as the launcher puts them."""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return three legs for each rail, and near over far."""
        return locality_plan(planner)


class PlacementBenchmark(FabricBenchmark):
    """Pairs of nodes at every distance, each over each rail, in one job."""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg for each rail and distance, and the relation of far to near."""
        if planner.partition.num_nodes < 3:
            name = planner.partition.name
            return Plan(reason=f"num_nodes of partition {name} is below 3: near, far and a hub")
        known = distances(planner.partition, dry_run=self.is_dry_run())
        if isinstance(known, str):
            return Plan(reason=known)
        topology, nodes = known

        def pairs_of(chosen: Sequence[str]) -> tuple[Pair, ...]:
            return pairs_by_hops(topology, chosen, max_nodes=planner.partition.num_nodes)

        pairs = pairs_of(nodes)
        if len(pairs) < 2:
            reason = f"the {len(nodes)} usable nodes are all equally far from each other"
            if not self.is_dry_run():
                require_not_due(
                    reason, planner.partition, topology, lambda each: len(pairs_of(each)) > 1
                )
            return Plan(reason=reason)
        return placement_plan(planner, pairs)
