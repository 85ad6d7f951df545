"""Messages that meet each other on the wire (IMB-MPI1 PingPing)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class ImbPingPing(PairBenchmark):
    """Messages that meet each other on the wire (IMB-MPI1 PingPing)."""

    suite = "imb"
    program = "PingPing"
    family_tags = ["pt2pt", "full"]
    roads = "each"
