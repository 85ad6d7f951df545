"""What a pair of nodes loses beside others that send as much as they can."""

import reframe as rfm

from fabricproof.rfm.checks.congestion import CongestionBenchmark


@rfm.simple_test
class CongestionImpact(CongestionBenchmark):
    """A pair and a group alone, and beside loads on others (osu_bw, ping-pongs, allreduce)."""

    family_tags = ["collectives", "congestion", "full"]
