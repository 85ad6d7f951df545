"""Latency of each port by itself, sent by verbs, without MPI (ib_send_lat)."""

import reframe as rfm

from fabricproof.rfm.checks.peers import PeerBenchmark


@rfm.simple_test
class PerftestSendLatency(PeerBenchmark):
    """Latency of each port by itself, sent by verbs, without MPI (ib_send_lat)."""

    suite = "perftest"
    program = "ib_send_lat"
    family_tags = ["pt2pt", "full"]
