"""The interfaces that an MPI takes when nobody tells it its road (osu_bw)."""

import reframe as rfm

from fabricproof.rfm.checks.ethernet import FreeRoadBenchmark


@rfm.simple_test
class DefaultInterfaces(FreeRoadBenchmark):
    """The interfaces that an MPI takes when nobody tells it its road (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["ethernet", "full"]
