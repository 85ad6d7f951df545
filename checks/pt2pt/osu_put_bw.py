"""Bandwidth of one-sided puts (osu_put_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class OsuPutBandwidth(PairBenchmark):
    """Bandwidth of one-sided puts (osu_put_bw)."""

    suite = "osu"
    program = "osu_put_bw"
    family_tags = ["pt2pt", "full"]
    roads = "each"
