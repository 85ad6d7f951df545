"""Blocks from all to all in the background, and their overlap (IMB-NBC Ialltoall)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbIalltoall(CollectiveBenchmark):
    """Blocks from all to all in the background, and their overlap (IMB-NBC Ialltoall)."""

    suite = "imb"
    program = "Ialltoall"
    family_tags = ["collectives", "full"]
