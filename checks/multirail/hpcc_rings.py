"""Natural and random rings through all nodes, over one rail and over all (hpcc)."""

import reframe as rfm

from fabricproof.rfm.checks.rings import RingBenchmark


@rfm.simple_test
class HpccRings(RingBenchmark):
    """Natural and random rings through all nodes, over one rail and over all (hpcc)."""

    family_tags = ["multirail", "full"]
