"""Several pairs between two nodes over each rail, together against the rail (Uniband)."""

import reframe as rfm

from fabricproof.rfm.checks.ethernet import PairsBenchmark


@rfm.simple_test
class ImbManyPairs(PairsBenchmark):
    """Several pairs between two nodes over each rail, together against the rail (Uniband)."""

    suite = "imb"
    program = "Uniband"
    family_tags = ["ethernet", "nightly", "full"]
