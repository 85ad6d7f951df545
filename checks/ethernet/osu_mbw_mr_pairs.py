"""Several pairs between two nodes over each rail, together against the rail (osu_mbw_mr)."""

import reframe as rfm

from fabricproof.rfm.checks.ethernet import PairsBenchmark


@rfm.simple_test
class OsuManyPairs(PairsBenchmark):
    """Several pairs between two nodes over each rail, together against the rail (osu_mbw_mr)."""

    suite = "osu"
    program = "osu_mbw_mr"
    family_tags = ["ethernet", "nightly", "full"]
