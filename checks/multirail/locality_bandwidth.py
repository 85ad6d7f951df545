"""Bandwidth from the socket beside the adapter and from the one across (osu_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.multirail import LocalityBenchmark


@rfm.simple_test
class LocalityBandwidth(LocalityBenchmark):
    """Bandwidth from the socket beside the adapter and from the one across (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["multirail", "locality", "nightly", "full"]
