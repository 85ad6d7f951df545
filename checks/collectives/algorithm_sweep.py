"""Every algorithm that can be forced, beside the stack's own choice, in one job each."""

import reframe as rfm

from fabricproof.rfm.checks.sweep import AlgorithmSweepBenchmark


@rfm.simple_test
class AlgorithmSweep(AlgorithmSweepBenchmark):
    """The stack's own choice of an algorithm is as good as any."""

    family_tags = ["collectives", "full"]
