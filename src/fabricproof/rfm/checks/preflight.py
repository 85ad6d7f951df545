"""The checks of the machine, not of an MPI: are the nodes and their links what is declared?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reframe.core.builtins import variable

from fabricproof.job.leg import Plan
from fabricproof.job.links import PROGRAM, SUITE, judge_looks, read_looks, rows_of_links
from fabricproof.job.outcome import Outcome
from fabricproof.job.script import INVENTORY_FOLDER
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.current import current_site
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import PartitionSpec
from fabricproof.site.roll import stack_of_looks


class OnceBenchmark(FabricBenchmark):
    """Runs with the first stack of a partition that needs not be built for it."""

    #: required with one stack of each partition, not with each
    once = variable(bool, value=True)

    def environs(self) -> list[str]:
        """Leave out all stacks but those that look."""
        site = current_site()
        chosen = [each for each in site.partitions if self.fabric in each.fabrics]
        return sorted({stack_of_looks(site, each) for each in chosen or site.partitions})

    def why_not(self, planner: LegPlanner) -> str:
        """Tell where there is no link, or where another stack looks."""
        partition = planner.partition
        if planner.spec.link is None or partition.same_node:
            return f"{self.fabric} has no link: nothing to look at"
        looker = stack_of_looks(planner.site, partition)
        if planner.stack.name == looker:
            return ""
        return f"the links of {partition.name} are looked at once, with stack {looker}"


class PreflightBenchmark(OnceBenchmark):
    """All nodes of a job, looked at once per partition and fabric, with whatever stack starts it.

    Nothing is measured, so no stack is: the first one of the partition only starts the look.
    """

    suite = SUITE
    program = PROGRAM
    tells_the_path = False

    def choose_suite(self, planner: LegPlanner) -> tuple[str, str]:  # noqa: ARG002
        """Need no program of the stack's."""
        return SUITE, ""

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg that does nothing on every node, so that each says that it took part."""
        look = planner.idle_leg("look", SUITE, PROGRAM, planner.partition.num_nodes)
        return Plan(legs=(look,))

    def looks(self, partition: PartitionSpec) -> bool:  # noqa: ARG002
        """Tell that the nodes are asked, whatever other jobs do: that is what is judged."""
        return True

    def rows(self, of_legs: Sequence[Outcome]) -> tuple[Outcome, ...]:
        """Judge what the nodes left of themselves; one outcome for each rail."""
        folder, spec = Path(self.stagedir) / INVENTORY_FOLDER, self.planner.spec
        looks = read_looks(folder, of_legs, [*self.job_says.nodes])
        rails = self.planner.rails
        return rows_of_links(rails, judge_looks(spec, looks), looks, self.legs[0].num_nodes)
