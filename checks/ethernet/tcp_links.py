"""Open MPI with 1, 2 and 4 TCP connections of a pair: whether the best is in force (osu_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.ethernet import LinksBenchmark


@rfm.simple_test
class TcpLinks(LinksBenchmark):
    """Open MPI with 1, 2 and 4 TCP connections of a pair: whether the best is in force (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["ethernet", "full"]
