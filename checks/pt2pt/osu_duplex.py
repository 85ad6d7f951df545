"""Both directions at once beside one direction, over the first rail (osu_bw, osu_bibw)."""

import reframe as rfm

from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.legs.duplex import duplex_plan


@rfm.simple_test
class OsuDuplex(FabricBenchmark):
    """Both directions at once beside one direction, over the first rail (osu_bw, osu_bibw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["pt2pt", "nightly", "full"]

    def plan(self, planner):
        """Return a leg each way of loading the rail, and their ratio."""
        return duplex_plan(planner)
