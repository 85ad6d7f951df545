"""Each rail alone and all together, one way: gain, sharing and threshold (osu_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.multirail import RailsBenchmark


@rfm.simple_test
class OsuMultiRailBandwidth(RailsBenchmark):
    """Each rail alone and all together, one way: gain, sharing and threshold (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["multirail", "quick", "nightly", "full"]
