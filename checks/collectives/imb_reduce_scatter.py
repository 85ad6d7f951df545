"""A sum over all ranks, a share to each, on every layout (IMB-MPI1 Reduce_scatter)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbReduceScatter(CollectiveBenchmark):
    """A sum over all ranks, a share to each, on every layout (IMB-MPI1 Reduce_scatter)."""

    suite = "imb"
    program = "Reduce_scatter"
    family_tags = ["collectives", "full"]
