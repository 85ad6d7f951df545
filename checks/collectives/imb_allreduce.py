"""A sum over all ranks that all get, on every layout (IMB-MPI1 Allreduce)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbAllreduce(CollectiveBenchmark):
    """A sum over all ranks that all get, on every layout (IMB-MPI1 Allreduce)."""

    suite = "imb"
    program = "Allreduce"
    family_tags = ["collectives", "nightly", "full"]
