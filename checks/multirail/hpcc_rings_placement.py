"""The rings on nodes close together and on as many that are spread (hpcc)."""

import reframe as rfm

from fabricproof.rfm.checks.rings import RingPlacement


@rfm.simple_test
class HpccRingsPlacement(RingPlacement):
    """The rings on nodes close together and on as many that are spread (hpcc)."""

    family_tags = ["multirail", "placement", "full"]
