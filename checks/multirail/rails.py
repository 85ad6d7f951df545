"""Over one rail and over all of them, rail against rail, and from the near and the far socket."""

import reframe as rfm

from fabricproof.rfm.checks.multirail import LocalityBenchmark, RailMatrix, RailsBenchmark


@rfm.simple_test
class OsuMultiRailBandwidth(RailsBenchmark):
    """Each rail alone and all together, one way: gain, sharing and threshold (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["multirail", "quick", "nightly", "full"]


@rfm.simple_test
class OsuMultiRailBothWays(RailsBenchmark):
    """Each rail alone and all together, both ways at once (osu_bibw)."""

    suite = "osu"
    program = "osu_bibw"
    family_tags = ["multirail", "full"]


@rfm.simple_test
class ImbMultiRailSendrecv(RailsBenchmark):
    """Each rail alone and all together, both ways at once (IMB-MPI1 Sendrecv)."""

    suite = "imb"
    program = "Sendrecv"
    family_tags = ["multirail", "full"]


@rfm.simple_test
class RailMatrixBandwidth(RailMatrix):
    """Bandwidth of every rail of one node to every rail of another (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["multirail", "full"]


@rfm.simple_test
class LocalityBandwidth(LocalityBenchmark):
    """Bandwidth from the socket beside the adapter and from the one across (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["multirail", "locality", "nightly", "full"]
