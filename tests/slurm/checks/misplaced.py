"""Checks whose ranks do not run where they were sent, for the tests on a real Slurm."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import reframe as rfm
from reframe.core.builtins import run_after

from fabricproof.job.leg import write_plan
from fabricproof.rfm.families.places import PlacementBenchmark


@rfm.simple_test
class RankOnTheWrongNode(PlacementBenchmark):
    """The far pair's ranks are started on the nodes of the near one."""

    suite = "osu"
    program = "osu_latency"
    family_tags: ClassVar = ["fault"]

    @run_after("setup")
    def misplace(self):
        """Start the far leg with the launcher's line of the near one."""
        near, far = self.legs[:2]
        self.legs = (replace(far, launch=near.launch),)
        self.relations = ()
        write_plan(Path(self.stagedir), self.legs)
