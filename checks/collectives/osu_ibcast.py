"""A broadcast in the background, and its overlap (osu_ibcast)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuIbcast(CollectiveBenchmark):
    """A broadcast in the background, and its overlap (osu_ibcast)."""

    suite = "osu"
    program = "osu_ibcast"
    family_tags = ["collectives", "full"]
