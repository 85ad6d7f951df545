"""Every rank's block to all, on every layout (osu_allgather)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuAllgather(CollectiveBenchmark):
    """Every rank's block to all, on every layout (osu_allgather)."""

    suite = "osu"
    program = "osu_allgather"
    family_tags = ["collectives", "quick", "nightly", "full"]
