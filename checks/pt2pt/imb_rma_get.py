"""One-sided gets in one direction (IMB-RMA Unidir_Get)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class ImbRmaUnidirGet(PairBenchmark):
    """One-sided gets in one direction (IMB-RMA Unidir_Get)."""

    suite = "imb"
    program = "Unidir_get"
    family_tags = ["pt2pt", "full"]
    roads = "each"
