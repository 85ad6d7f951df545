"""Each rail alone and all together, both ways at once (osu_bibw)."""

import reframe as rfm

from fabricproof.rfm.checks.multirail import RailsBenchmark


@rfm.simple_test
class OsuMultiRailBothWays(RailsBenchmark):
    """Each rail alone and all together, both ways at once (osu_bibw)."""

    suite = "osu"
    program = "osu_bibw"
    family_tags = ["multirail", "full"]
