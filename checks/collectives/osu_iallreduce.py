"""A sum over all ranks in the background, and its overlap (osu_iallreduce)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuIallreduce(CollectiveBenchmark):
    """A sum over all ranks in the background, and its overlap (osu_iallreduce)."""

    suite = "osu"
    program = "osu_iallreduce"
    family_tags = ["collectives", "full"]
