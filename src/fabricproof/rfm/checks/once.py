"""Checks of the machine, not of an MPI: once a partition and fabric, with its first stack."""

from __future__ import annotations

from reframe.core.builtins import run_after, variable

from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.current import current_site
from fabricproof.site.roll import stack_of_looks


class OnceBenchmark(FabricBenchmark):
    """Runs with the first stack of a partition that needs not be built for it."""

    #: required with one stack of each partition, not with each
    once = variable(bool, value=True)

    @run_after("init")
    def look_once(self) -> None:
        """Leave out all stacks but those that look."""
        site = current_site()
        chosen = [each for each in site.partitions if self.fabric in each.fabrics]
        lookers = {stack_of_looks(site, each) for each in chosen or site.partitions}
        self.valid_prog_environs = sorted(lookers)

    def why_not(self) -> str:
        """Tell where there is no link, or where another stack looks."""
        site = current_site()
        partition = site.partition(self.current_partition.name)
        if site.fabric_spec(self.fabric).link is None or partition.same_node:
            return f"{self.fabric} has no link: nothing to look at"
        looker = stack_of_looks(site, partition)
        if self.current_environ.name != looker:
            return f"the links of {partition.name} are looked at once, with stack {looker}"
        return ""
