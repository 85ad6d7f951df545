"""A sum over all ranks that one gets, on every layout (IMB-MPI1 Reduce)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbReduce(CollectiveBenchmark):
    """A sum over all ranks that one gets, on every layout (IMB-MPI1 Reduce)."""

    suite = "imb"
    program = "Reduce"
    family_tags = ["collectives", "full"]
