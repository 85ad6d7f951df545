"""Checks of collectives: one program on every layout of the partition, in one job."""

from __future__ import annotations

from reframe.core.builtins import variable

from fabricproof.job.leg import Plan
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.current import current_site
from fabricproof.rfm.legs.collective import (
    channel_leg,
    channel_planner,
    collective_leg,
    plan_collective,
)
from fabricproof.rfm.legs.leg import LegPlanner

__all__ = ["CollectiveBenchmark", "channel_leg", "channel_planner", "collective_leg"]


class CollectiveBenchmark(FabricBenchmark):
    """One collective on every layout of the partition, over one path."""

    #: ``first``: the first rail; ``all``: all rails together
    net_paths = variable(str, value="first")
    #: its name in version 1
    roads = variable(alias=net_paths)

    def why_not(self) -> str:
        """Tell where several rails are asked for and there is one."""
        one_rail = len(current_site().fabric_spec(self.fabric).rails) < 2
        return f"fabric {self.fabric} has one rail" if self.net_paths == "all" and one_rail else ""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the point-to-point leg, and one leg of the collective for each layout."""
        return plan_collective(
            planner, planner.rails if self.net_paths == "all" else planner.rails[:1]
        )
