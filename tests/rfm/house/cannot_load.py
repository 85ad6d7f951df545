"""A check file that cannot be imported."""

import no_such_module_anywhere
import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark


@rfm.simple_test
class CannotLoad(PairBenchmark):
    suite = no_such_module_anywhere.SUITE
    program = "osu_bw"
