"""Bandwidth of one-sided gets (osu_get_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class OsuGetBandwidth(PairBenchmark):
    """Bandwidth of one-sided gets (osu_get_bw)."""

    suite = "osu"
    program = "osu_get_bw"
    family_tags = ["pt2pt", "full"]
    roads = "each"
