"""MPI beside iperf3 over the same rails in one job: its share of what TCP carries (osu_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.ethernet import MpiOverTcp


@rfm.simple_test
class MpiOverTcpBandwidth(MpiOverTcp):
    """MPI beside iperf3 over the same rails in one job: its share of what TCP carries (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["ethernet", "nightly", "full"]
