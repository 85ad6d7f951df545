"""PingPong of the IMB-P2P binary, with its message rate."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class ImbP2pPingPong(PairBenchmark):
    """PingPong of the IMB-P2P binary, with its message rate."""

    suite = "imb"
    program = "P2P/PingPong"
    family_tags = ["pt2pt", "full"]
    roads = "each"
