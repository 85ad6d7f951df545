"""Bandwidth and message rate of several pairs at once (osu_mbw_mr)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class OsuMultiPairBandwidth(PairBenchmark):
    """Bandwidth and message rate of several pairs at once (osu_mbw_mr)."""

    suite = "osu"
    program = "osu_mbw_mr"
    family_tags = ["pt2pt", "full"]
    roads = "each"
