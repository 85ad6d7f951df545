"""A broadcast in the background, and its overlap (IMB-NBC Ibcast)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class ImbIbcast(CollectiveBenchmark):
    """A broadcast in the background, and its overlap (IMB-NBC Ibcast)."""

    suite = "imb"
    program = "Ibcast"
    family_tags = ["collectives", "full"]
