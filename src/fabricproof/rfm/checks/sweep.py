"""Checks that sweep over the algorithms of a collective: own choice and all others in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reframe.core.builtins import parameter, run_after, variable

from fabricproof.job.leg import Plan
from fabricproof.job.outcome import Outcome
from fabricproof.job.relations.own_choice import describe_sweep
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.current import current_site
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.programs import choose_suite
from fabricproof.rfm.legs.sweep import plan_sweep, programs_of, why_no_comparison
from fabricproof.rfm.stacks import built_of
from fabricproof.tuning.knobs import COLLECTIVES, find_knobs
from fabricproof.tuning.trial import read_trial


class AlgorithmSweepBenchmark(FabricBenchmark):
    """One collective under the stack's own choice and under each algorithm that can be forced."""

    suite = "osu"
    program = ""

    #: what is swept: ``bcast``, ``allreduce`` ...
    collective = parameter(COLLECTIVES, loggable=True)

    #: a proposal of ``fabricproof tune write`` to be tried: then the own choice is with it
    tuning = variable(str, value="")

    @run_after("init")
    def name_the_program(self) -> None:
        """Say what is measured before anything is planned; another suite may have to do it."""
        self.program = f"osu_{self.collective}"

    def why_not(self) -> str:
        """Take the first suite that has the collective; tell where there is nothing to sweep."""
        site = current_site()
        stack = site.stack(self.current_environ.name)
        built = built_of(site, stack)
        version = built.mpi.version if built else stack.version
        knobs, reason = find_knobs(stack.family, version, self.collective)
        if knobs is None:
            return reason
        for suite, program in programs_of(self.collective):
            found, reason = choose_suite(stack, suite, program, built, assumed=self.is_dry_run())
            if found is not None:
                reason = why_no_comparison(found, program)
            if not reason:
                self.suite, self.program = suite, program
                return ""
        return reason

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the turns of all series, and the relation that owns them."""
        trial = read_trial(Path(self.tuning)) if self.tuning else None
        return plan_sweep(planner, self.collective, trial)

    def more_records(self, of_legs: Sequence[Outcome]) -> Sequence[Mapping[str, object]]:
        """Keep every time that was taken: ``fabricproof tune`` decides anew from them."""
        return [describe_sweep(relation, of_legs) for relation in self.relations]
