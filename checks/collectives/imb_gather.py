"""Every rank's block to one, on every layout (IMB-MPI1 Gather)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbGather(CollectiveBenchmark):
    """Every rank's block to one, on every layout (IMB-MPI1 Gather)."""

    suite = "imb"
    program = "Gather"
    family_tags = ["collectives", "full"]
