"""A chain that sends and receives at once, both directions counted (IMB-MPI1 Sendrecv)."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class ImbSendrecv(PairBenchmark):
    """A chain that sends and receives at once, both directions counted (IMB-MPI1 Sendrecv)."""

    suite = "imb"
    program = "Sendrecv"
    family_tags = ["pt2pt", "nightly", "full"]
    roads = "each"
