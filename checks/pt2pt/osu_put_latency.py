"""Time of a one-sided put until it is complete (osu_put_latency)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class OsuPutLatency(PairBenchmark):
    """Time of a one-sided put until it is complete (osu_put_latency)."""

    suite = "osu"
    program = "osu_put_latency"
    family_tags = ["pt2pt", "full"]
    roads = "each"
