"""One-way bandwidth of a pair with a window in flight, over each rail by itself (osu_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class OsuBandwidth(PairBenchmark):
    """One-way bandwidth of a pair with a window in flight, over each rail by itself (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["pt2pt", "quick", "nightly", "full"]
    roads = "each"
    one_way = True
