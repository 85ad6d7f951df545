"""Latency of each port by itself, read by verbs, without MPI (ib_read_lat)."""

import reframe as rfm

from fabricproof.rfm.checks.peers import PeerBenchmark


@rfm.simple_test
class PerftestReadLatency(PeerBenchmark):
    """Latency of each port by itself, read by verbs, without MPI (ib_read_lat)."""

    suite = "perftest"
    program = "ib_read_lat"
    family_tags = ["pt2pt", "nightly", "full"]
