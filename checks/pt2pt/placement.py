"""A pair on one leaf beside one across the spine, by hop count."""

import reframe as rfm

from fabricproof.rfm.checks.multirail import PlacementBenchmark


@rfm.simple_test
class PlacementBandwidth(PlacementBenchmark):
    """Bandwidth of a pair on one leaf and of one across the spine, by hop count (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["pt2pt", "placement", "full"]


@rfm.simple_test
class PlacementLatency(PlacementBenchmark):
    """Latency of a pair on one leaf and of one across the spine, by hop count (osu_latency)."""

    suite = "osu"
    program = "osu_latency"
    family_tags = ["pt2pt", "placement", "nightly", "full"]
