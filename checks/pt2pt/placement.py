"""A pair on one leaf beside one across the spine, by hop count."""

import reframe as rfm

from fabricproof.rfm.checks.family import family
from fabricproof.rfm.families.places import PlacementBenchmark

osu = family(rfm.simple_test, __name__, PlacementBenchmark, "pt2pt", "placement", suite="osu")
osu("PlacementBandwidth", "osu_bw", "full", "Bandwidth on one leaf and across the spine")
osu("PlacementLatency", "osu_latency", "nightly", "Latency on one leaf and across the spine")
