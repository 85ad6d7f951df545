"""Checks of the house whose benchmark does what ReFrame alone would let pass."""

# ruff: noqa: RUF012 - ReFrame reads class attributes as its variables

import os
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_before

from fabricproof.rfm.checks.base import PairBenchmark


class _Pretended(PairBenchmark):
    suite = "osu"
    program = "osu_bw"
    family_tags = ["trap"]
    behaviour = "well"

    @run_before("run")
    def behave(self):
        self.env_vars["FAKE_OSU"] = self.behaviour


@rfm.simple_test
class Well(_Pretended):
    pass


@rfm.simple_test
class Slow(_Pretended):
    behaviour = "slow"


@rfm.simple_test
class SlowOnce(_Pretended):
    behaviour = "slow-once"


@rfm.simple_test
class Fast(_Pretended):
    behaviour = "fast"


@rfm.simple_test
class Infinite(_Pretended):
    behaviour = "infinite"


@rfm.simple_test
class Truncated(_Pretended):
    behaviour = "truncated"


@rfm.simple_test
class CrashesAfterItsTable(_Pretended):
    behaviour = "crash"


@rfm.simple_test
class PerformanceRaises(_Pretended):
    @performance_function("MB/s")
    def broken(self):
        raise ValueError("no such column")


@rfm.simple_test
class PerformanceWithoutReference(_Pretended):
    @performance_function("MB/s")
    def forgotten(self):
        return 1.0


@rfm.simple_test
class SkipsWithoutReason(_Pretended):
    @run_before("run")
    def go_away(self):
        self.skip("")


@rfm.simple_test
class FailsAtFirst(_Pretended):
    """Red twice in its first job, and well when ReFrame runs it again."""

    family_tags = ["retry"]

    @run_before("run")
    def break_once(self):
        mark = Path(os.environ["TRAPS_MARK"])
        self.env_vars["FAKE_OSU"] = "well" if mark.exists() else "slow"
        mark.touch()


@rfm.simple_test
class Columns(_Pretended):
    """Its quantities change from run to run."""

    family_tags = ["trap", "retry"]

    @run_before("performance")
    def one_more_quantity(self):
        name = os.environ["TRAPS_COLUMN"]
        self.perf_variables[name] = sn.make_performance_function(sn.defer(1.0), "MB/s")
        self.reference[f"*:{name}"] = (1.0, -0.1, 0.1, "MB/s")
