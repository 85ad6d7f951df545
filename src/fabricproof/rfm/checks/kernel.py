"""The kernel of a campaign over all nodes beside stock programs on the same two nodes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from reframe.core.builtins import variable

from fabricproof.job.leg import Plan
from fabricproof.job.outcome import Outcome
from fabricproof.pairs.campaign.plan import BUILD, BUILD_SCRIPT, KERNEL, KERNEL_RUN, Mode
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.checks.ethernet import one_node
from fabricproof.rfm.legs.kernel import kernel_plan, with_binaries
from fabricproof.rfm.legs.leg import LegPlanner


class WithKernel(FabricBenchmark):
    """A check whose job builds the kernel before its legs."""

    def _write_plan(self, plan: Plan) -> None:
        super()._write_plan(plan)
        self.prerun_cmds = [BUILD]
        for source in (KERNEL, BUILD_SCRIPT, KERNEL_RUN):
            shutil.copy(source, Path(self.stagedir) / source.name)

    def judged(self, of_legs: Sequence[Outcome]) -> tuple[Outcome, ...]:
        """Return what counts, with the kernel's binary: runs are compared by it."""
        return with_binaries(super().judged(of_legs), self.relations, of_legs)


class KernelBenchmark(WithKernel):
    """The kernel in one mode and a stock program over the first rail, in turn until decided."""

    #: what the kernel does that the program does, too
    mode = variable(str, value=Mode.UNI.value)

    def why_not(self) -> str:
        """Tell where there are no two nodes: the kernel has one rank on each."""
        return one_node(self)

    def plan(self, planner: LegPlanner) -> Plan:
        """Return a leg of each, and what the kernel measured over what the other did."""
        return kernel_plan(planner, Mode(self.mode))
