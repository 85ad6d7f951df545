"""From one rank to all, on every layout (IMB-MPI1 Bcast)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbBcast(CollectiveBenchmark):
    """From one rank to all, on every layout (IMB-MPI1 Bcast)."""

    suite = "imb"
    program = "Bcast"
    family_tags = ["collectives", "full"]
