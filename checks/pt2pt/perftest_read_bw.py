"""Bandwidth of each port by itself, read by verbs, without MPI (ib_read_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.peers import PeerBenchmark


@rfm.simple_test
class PerftestReadBandwidth(PeerBenchmark):
    """Bandwidth of each port by itself, read by verbs, without MPI (ib_read_bw)."""

    suite = "perftest"
    program = "ib_read_bw"
    family_tags = ["pt2pt", "nightly", "full"]
