"""Boundary exchange, four messages a repetition (IMB-MPI1 Exchange)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class ImbExchange(PairBenchmark):
    """Boundary exchange, four messages a repetition (IMB-MPI1 Exchange)."""

    suite = "imb"
    program = "Exchange"
    family_tags = ["pt2pt", "full"]
    roads = "each"
