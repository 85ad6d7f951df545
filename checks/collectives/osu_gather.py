"""Every rank's block to one, on every layout (osu_gather)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuGather(CollectiveBenchmark):
    """Every rank's block to one, on every layout (osu_gather)."""

    suite = "osu"
    program = "osu_gather"
    family_tags = ["collectives", "full"]
