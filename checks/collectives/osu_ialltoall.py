"""Blocks from all to all in the background, and their overlap (osu_ialltoall)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuIalltoall(CollectiveBenchmark):
    """Blocks from all to all in the background, and their overlap (osu_ialltoall)."""

    suite = "osu"
    program = "osu_ialltoall"
    family_tags = ["collectives", "full"]
