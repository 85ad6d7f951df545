"""From one rank to all, on every layout of the partition (osu_bcast)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuBcast(CollectiveBenchmark):
    """From one rank to all, on every layout of the partition (osu_bcast)."""

    suite = "osu"
    program = "osu_bcast"
    family_tags = ["collectives", "nightly", "full"]
