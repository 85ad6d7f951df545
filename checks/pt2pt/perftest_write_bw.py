"""Bandwidth of each port by itself, written by verbs, without MPI (ib_write_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.peers import PeerBenchmark


@rfm.simple_test
class PerftestWriteBandwidth(PeerBenchmark):
    """Bandwidth of each port by itself, written by verbs, without MPI (ib_write_bw)."""

    suite = "perftest"
    program = "ib_write_bw"
    family_tags = ["pt2pt", "quick", "nightly", "full"]
