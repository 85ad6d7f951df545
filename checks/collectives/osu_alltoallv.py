"""As alltoall, with a count for each pair, on every layout (osu_alltoallv)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuAlltoallv(CollectiveBenchmark):
    """As alltoall, with a count for each pair, on every layout (osu_alltoallv)."""

    suite = "osu"
    program = "osu_alltoallv"
    family_tags = ["collectives", "full"]
