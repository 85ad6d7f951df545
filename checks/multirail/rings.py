"""Rings through all nodes, over one rail and over all: HPC Challenge."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import RingBenchmark, RingPlacement


@rfm.simple_test
class HpccRings(RingBenchmark):
    """Natural and random rings through all nodes, over one rail and over all (hpcc)."""

    family_tags = ["multirail", "full"]


@rfm.simple_test
class HpccRingsPacked(RingBenchmark):
    """The rings with as many ranks on each node as the partition tries (hpcc)."""

    packed = True
    family_tags = ["multirail", "full"]


@rfm.simple_test
class HpccRingsPlacement(RingPlacement):
    """The rings on nodes close together and on as many that are spread (hpcc)."""

    family_tags = ["multirail", "placement", "full"]
