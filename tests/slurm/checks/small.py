"""A bandwidth that is measured in seconds, for tests of what is made of many runs."""

from dataclasses import replace

import reframe as rfm

from fabricproof.job.leg import Plan
from fabricproof.rfm.checks.base import FabricBenchmark

#: some 5 MB of the largest messages at 200 Mb/s; what needs the exact plateau takes OsuBandwidth
LEG_SECONDS = 0.5


@rfm.simple_test
class SmallBandwidth(FabricBenchmark):
    """Each rail by itself, one way."""

    suite = "osu"
    program = "osu_bw"

    def plan(self, planner):
        """Return a leg for each rail of a planner whose budget is small."""
        partition = planner.partition.model_copy(update={"leg_seconds": LEG_SECONDS})
        small = replace(planner, partition=partition)
        return Plan(legs=tuple(small.leg((rail,)) for rail in small.rails))
