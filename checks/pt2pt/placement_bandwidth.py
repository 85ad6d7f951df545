"""Bandwidth of a pair on one leaf and of one across the spine, by hop count (osu_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.multirail import PlacementBenchmark


@rfm.simple_test
class PlacementBandwidth(PlacementBenchmark):
    """Bandwidth of a pair on one leaf and of one across the spine, by hop count (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["pt2pt", "placement", "full"]
