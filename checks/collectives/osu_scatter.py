"""A block from one rank to every other, on every layout (osu_scatter)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuScatter(CollectiveBenchmark):
    """A block from one rank to every other, on every layout (osu_scatter)."""

    suite = "osu"
    program = "osu_scatter"
    family_tags = ["collectives", "full"]
