"""The rings with as many ranks on each node as the partition tries (hpcc)."""

import reframe as rfm

from fabricproof.rfm.checks.rings import RingBenchmark


@rfm.simple_test
class HpccRingsPacked(RingBenchmark):
    """The rings with as many ranks on each node as the partition tries (hpcc)."""

    packed = True
    family_tags = ["multirail", "full"]
