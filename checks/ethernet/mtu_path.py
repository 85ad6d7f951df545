"""Whether each rail carries frames of the declared MTU from node to node (iperf3, ping)."""

import reframe as rfm

from fabricproof.rfm.checks.ethernet import FramesBenchmark


@rfm.simple_test
class MtuPath(FramesBenchmark):
    """Whether each rail carries frames of the declared MTU from node to node (iperf3, ping)."""

    suite = "iperf3"
    program = "iperf3"
    family_tags = ["ethernet", "nightly", "full"]
