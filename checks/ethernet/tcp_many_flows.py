"""One TCP connection beside eight of one process over each rail, without MPI (iperf3)."""

import reframe as rfm

from fabricproof.rfm.checks.ethernet import FlowsBenchmark


@rfm.simple_test
class TcpManyFlows(FlowsBenchmark):
    """One TCP connection beside eight of one process over each rail, without MPI (iperf3)."""

    suite = "iperf3"
    program = "iperf3"
    family_tags = ["ethernet", "nightly", "full"]
