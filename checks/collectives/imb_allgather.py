"""Every rank's block to all, on every layout (IMB-MPI1 Allgather)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbAllgather(CollectiveBenchmark):
    """Every rank's block to all, on every layout (IMB-MPI1 Allgather)."""

    suite = "imb"
    program = "Allgather"
    family_tags = ["collectives", "full"]
