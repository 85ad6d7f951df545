"""One-way latency of a pair, every size, over each rail by itself (osu_latency)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class OsuLatency(PairBenchmark):
    """One-way latency of a pair, every size, over each rail by itself (osu_latency)."""

    suite = "osu"
    program = "osu_latency"
    family_tags = ["pt2pt", "quick", "nightly", "full"]
    roads = "each"
