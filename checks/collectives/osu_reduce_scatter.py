"""A sum over all ranks, a share to each, on every layout (osu_reduce_scatter)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuReduceScatter(CollectiveBenchmark):
    """A sum over all ranks, a share to each, on every layout (osu_reduce_scatter)."""

    suite = "osu"
    program = "osu_reduce_scatter"
    family_tags = ["collectives", "full"]
