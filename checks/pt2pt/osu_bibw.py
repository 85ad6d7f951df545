"""Both directions at once, added up, over each rail by itself (osu_bibw)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class OsuBidirectionalBandwidth(PairBenchmark):
    """Both directions at once, added up, over each rail by itself (osu_bibw)."""

    suite = "osu"
    program = "osu_bibw"
    family_tags = ["pt2pt", "nightly", "full"]
    roads = "each"
