"""Time of a one-sided get until it is complete (osu_get_latency)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class OsuGetLatency(PairBenchmark):
    """Time of a one-sided get until it is complete (osu_get_latency)."""

    suite = "osu"
    program = "osu_get_latency"
    family_tags = ["pt2pt", "full"]
    roads = "each"
