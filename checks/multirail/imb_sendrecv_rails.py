"""Each rail alone and all together, both ways at once (IMB-MPI1 Sendrecv)."""

import reframe as rfm

from fabricproof.rfm.checks.multirail import RailsBenchmark


@rfm.simple_test
class ImbMultiRailSendrecv(RailsBenchmark):
    """Each rail alone and all together, both ways at once (IMB-MPI1 Sendrecv)."""

    suite = "imb"
    program = "Sendrecv"
    family_tags = ["multirail", "full"]
