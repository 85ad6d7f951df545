"""A block from one rank to every other, on every layout (IMB-MPI1 Scatter)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbScatter(CollectiveBenchmark):
    """A block from one rank to every other, on every layout (IMB-MPI1 Scatter)."""

    suite = "imb"
    program = "Scatter"
    family_tags = ["collectives", "full"]
