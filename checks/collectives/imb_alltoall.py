"""A block from every rank to every other, on every layout (IMB-MPI1 Alltoall)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbAlltoall(CollectiveBenchmark):
    """A block from every rank to every other, on every layout (IMB-MPI1 Alltoall)."""

    suite = "imb"
    program = "Alltoall"
    family_tags = ["collectives", "full"]
