"""The check of congestion: a pair and a small group of nodes alone, and beside loads on others."""

from __future__ import annotations

from collections.abc import Sequence

from reframe.core.builtins import variable

from fabricproof.job.leg import Plan
from fabricproof.rfm.checks.kernel import WithKernel
from fabricproof.rfm.current import current_site
from fabricproof.rfm.legs.congestion import congestion_plan, minutes_of_rounds
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.load_places import LoadPlaces, draw_places
from fabricproof.rfm.slurm_nodes import distances, require_not_due
from fabricproof.site import PartitionSpec


class CongestionBenchmark(WithKernel):
    """A pair and a group alone, beside loads that share their links, and beside one apart."""

    suite = "osu"
    program = "osu_bw"

    #: of the draw of nodes; another one measures other leaves
    seed = variable(int, value=1, loggable=True)

    def why_not(self) -> str:
        """Tell where there is no fabric between nodes."""
        site = current_site()
        if site.partition(self.current_partition.name).same_node:
            return "it measures between nodes, and this partition has one"
        return ""

    def job_minutes(self, partition: PartitionSpec) -> int:
        """Return what as many rounds may take as make a number red."""
        return max(partition.job_minutes, minutes_of_rounds(self.legs, partition.leg_seconds))

    def plan(self, planner: LegPlanner) -> Plan:
        """Return over each rail both alone, beside each load, and what these cost them."""
        known = distances(planner.partition, dry_run=self.is_dry_run())
        if isinstance(known, str):
            return Plan(reason=known)
        topology, nodes = known

        def drawn(chosen: Sequence[str]) -> LoadPlaces | str:
            return draw_places(
                topology,
                chosen,
                most_nodes=planner.partition.num_nodes,
                spines=planner.spec.spines,
                seed=self.seed,
            )

        places = drawn(nodes)
        if not isinstance(places, str):
            return congestion_plan(planner, places)
        if not self.is_dry_run():
            require_not_due(
                places, planner.partition, topology, lambda each: not isinstance(drawn(each), str)
            )
        return Plan(reason=places)
