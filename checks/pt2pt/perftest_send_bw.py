"""Bandwidth of each port by itself, sent by verbs, without MPI (ib_send_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.peers import PeerBenchmark


@rfm.simple_test
class PerftestSendBandwidth(PeerBenchmark):
    """Bandwidth of each port by itself, sent by verbs, without MPI (ib_send_bw)."""

    suite = "perftest"
    program = "ib_send_bw"
    family_tags = ["pt2pt", "full"]
