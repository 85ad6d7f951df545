"""One-sided puts in one direction (IMB-RMA Unidir_Put)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class ImbRmaUnidirPut(PairBenchmark):
    """One-sided puts in one direction (IMB-RMA Unidir_Put)."""

    suite = "imb"
    program = "Unidir_put"
    family_tags = ["pt2pt", "full"]
    roads = "each"
