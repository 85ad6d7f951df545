"""One TCP connection over each rail, without MPI: the floor that MPI stands on (iperf3)."""

import reframe as rfm

from fabricproof.rfm.checks.peers import PeerBenchmark


@rfm.simple_test
class TcpSingleFlow(PeerBenchmark):
    """One TCP connection over each rail, without MPI: the floor that MPI stands on (iperf3)."""

    suite = "iperf3"
    program = "iperf3"
    family_tags = ["ethernet", "quick", "nightly", "full"]
