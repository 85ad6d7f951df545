"""A sum over all ranks in the background, and its overlap (IMB-NBC Iallreduce)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbIallreduce(CollectiveBenchmark):
    """A sum over all ranks in the background, and its overlap (IMB-NBC Iallreduce)."""

    suite = "imb"
    program = "Iallreduce"
    family_tags = ["collectives", "full"]
