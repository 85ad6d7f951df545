"""Latency of each port by itself, written by verbs, without MPI (ib_write_lat)."""

import reframe as rfm

from fabricproof.rfm.checks.peers import PeerBenchmark


@rfm.simple_test
class PerftestWriteLatency(PeerBenchmark):
    """Latency of each port by itself, written by verbs, without MPI (ib_write_lat)."""

    suite = "perftest"
    program = "ib_write_lat"
    family_tags = ["pt2pt", "quick", "nightly", "full"]
