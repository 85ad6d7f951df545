"""A sum over all ranks that one gets, on every layout (osu_reduce)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuReduce(CollectiveBenchmark):
    """A sum over all ranks that one gets, on every layout (osu_reduce)."""

    suite = "osu"
    program = "osu_reduce"
    family_tags = ["collectives", "full"]
