"""A block from every rank to every other, on every layout (osu_alltoall)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuAlltoall(CollectiveBenchmark):
    """A block from every rank to every other, on every layout (osu_alltoall)."""

    suite = "osu"
    program = "osu_alltoall"
    family_tags = ["collectives", "nightly", "full"]
