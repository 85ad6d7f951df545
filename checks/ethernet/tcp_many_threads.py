"""One TCP connection beside eight, each with a thread of its own, without MPI (iperf)."""

import reframe as rfm

from fabricproof.rfm.checks.ethernet import FlowsBenchmark


@rfm.simple_test
class TcpManyThreads(FlowsBenchmark):
    """One TCP connection beside eight, each with a thread of its own, without MPI (iperf)."""

    suite = "iperf"
    program = "iperf"
    family_tags = ["ethernet", "full"]
