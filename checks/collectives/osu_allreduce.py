"""A sum over all ranks that all get, on every layout (osu_allreduce)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuAllreduce(CollectiveBenchmark):
    """A sum over all ranks that all get, on every layout (osu_allreduce)."""

    suite = "osu"
    program = "osu_allreduce"
    family_tags = ["collectives", "quick", "nightly", "full"]
