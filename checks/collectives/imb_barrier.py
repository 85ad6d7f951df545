"""Nobody goes on before everybody came, on every layout (IMB-MPI1 Barrier)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbBarrier(CollectiveBenchmark):
    """Nobody goes on before everybody came, on every layout (IMB-MPI1 Barrier)."""

    suite = "imb"
    program = "Barrier"
    family_tags = ["collectives", "full"]
