"""A check that no partition fits."""

# ruff: noqa: RUF012 - ReFrame reads class attributes as its variables

import reframe as rfm
from reframe.core.builtins import run_after

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class Elsewhere(PairBenchmark):
    suite = "osu"
    program = "osu_bw"
    family_tags = ["trap"]

    @run_after("init")
    def nowhere(self):
        self.valid_systems = ["another-site"]
