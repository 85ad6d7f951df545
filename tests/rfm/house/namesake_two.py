"""One of two files with the same check name."""

# ruff: noqa: RUF012 - ReFrame reads class attributes as its variables

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class Namesake(PairBenchmark):
    suite = "osu"
    program = "osu_bw"
    family_tags = ["trap"]
