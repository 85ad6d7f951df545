"""Latency and bandwidth of one message bounced between a pair (IMB-MPI1 PingPong)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class ImbPingPong(PairBenchmark):
    """Latency and bandwidth of one message bounced between a pair (IMB-MPI1 PingPong)."""

    suite = "imb"
    program = "PingPong"
    family_tags = ["pt2pt", "quick", "nightly", "full"]
    roads = "each"
