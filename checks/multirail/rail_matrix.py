"""Bandwidth of every rail of one node to every rail of another (osu_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.multirail import RailMatrix


@rfm.simple_test
class RailMatrixBandwidth(RailMatrix):
    """Bandwidth of every rail of one node to every rail of another (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["multirail", "full"]
