"""Rings through all nodes, over one rail and over all: HPC Challenge."""

import reframe as rfm

from fabricproof.rfm.checks.family import family
from fabricproof.rfm.families.collectives import RingBenchmark, RingPlacement

PROGRAM = "LatencyBandwidth"

rings = family(rfm.simple_test, __name__, RingBenchmark, "multirail", suite="hpcc")
rings("HpccRings", PROGRAM, "full", "Natural and random rings through all nodes")
rings("HpccRingsPacked", PROGRAM, "full", "With as many ranks on a node as may be", packed=True)

placed = family(rfm.simple_test, __name__, RingPlacement, "multirail", "placement", suite="hpcc")
placed("HpccRingsPlacement", PROGRAM, "full", "On nodes close together and on as many spread")
