"""Latency of several pairs at once (osu_multi_lat)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class OsuMultiPairLatency(PairBenchmark):
    """Latency of several pairs at once (osu_multi_lat)."""

    suite = "osu"
    program = "osu_multi_lat"
    family_tags = ["pt2pt", "nightly", "full"]
    roads = "each"
