"""All rails together beside one rail, and each rail's share of the traffic (osu_bw)."""

import reframe as rfm

from fabricproof.rfm.base import PairBenchmark


@rfm.simple_test
class OsuMultiRailBandwidth(PairBenchmark):
    """All rails together beside one rail, and each rail's share of the traffic (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["multirail", "quick", "nightly", "full"]
    roads = "all"
