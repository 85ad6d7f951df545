"""A block from every rank to every other over all rails together (osu_alltoall)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuAlltoallRails(CollectiveBenchmark):
    """A block from every rank to every other over all rails together (osu_alltoall)."""

    suite = "osu"
    program = "osu_alltoall"
    family_tags = ["collectives", "full"]
    roads = "all"
