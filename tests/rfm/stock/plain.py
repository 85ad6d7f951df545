"""Checks that ReFrame passes although they measured nothing, or something else."""

# ruff: noqa: RUF012 - ReFrame reads class attributes as its variables

import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (
    performance_function,
    run_after,
    run_before,
    sanity_function,
    variable,
)


class _Plain(rfm.RunOnlyRegressionTest):
    valid_systems = ["stock:node"]
    valid_prog_environs = ["*"]
    executable = "echo"
    executable_opts = ["8 24000"]

    @sanity_function
    def printed(self):
        return sn.assert_found(r"^8", self.stdout)


@rfm.simple_test
class PerformanceRaises(_Plain):
    require_reference = True
    reference = {"*": {"broken": (1, -0.1, None, "MB/s")}}

    @performance_function("MB/s")
    def broken(self):
        raise ValueError("no such column")


@rfm.simple_test
class WithoutReference(_Plain):
    @performance_function("MB/s")
    def bandwidth(self):
        return 0.001


@rfm.simple_test
class MisspeltReference(_Plain):
    reference = {"*": {"band_width": (24000, -0.1, None, "MB/s")}}

    @performance_function("MB/s")
    def bandwidth(self):
        return 0.001


@rfm.simple_test
class OtherUnit(_Plain):
    reference = {"*": {"bandwidth": (24, -0.1, None, "GB/s")}}

    @performance_function("MB/s")
    def bandwidth(self):
        return 2400.0


@rfm.simple_test
class Infinite(_Plain):
    reference = {"*": {"bandwidth": (24000, -0.1, None, "MB/s")}}

    @performance_function("MB/s")
    def bandwidth(self):
        return float("inf")


@rfm.simple_test
class CrashesAfterItsText(_Plain):
    executable = "bash"
    executable_opts = ["-c", "'echo 8 24000; exit 3'"]


@rfm.simple_test
class CrashesInAQueueWithoutAccounting(_Plain):
    valid_systems = ["stock:queue"]
    executable = "bash"
    executable_opts = ["-c", "'echo 8 24000; exit 3'"]
    seen_exit_code = variable(str, value="", loggable=True)

    @run_before("sanity")
    def look(self):
        self.seen_exit_code = repr(self.job.exitcode)


@rfm.simple_test
class OneSizeOfACutTable(_Plain):
    executable = "bash"
    executable_opts = ["-c", "'echo 1 3; echo 8 24; kill -9 $$'"]

    @sanity_function
    def found(self):
        return sn.extractsingle(r"^8\s+(\S+)", self.stdout, 1, float) == 24


@rfm.simple_test
class PrefixOfAnotherSize(_Plain):
    """The size asked for is 8; the table has only 8192."""

    executable_opts = ["8192 Pass"]

    @sanity_function
    def found(self):
        return sn.assert_found(r"^8.*Pass", self.stdout)


@rfm.simple_test
class FailsAtFirst(_Plain):
    """Passes when it runs again: what a first node could not do stays unsaid."""

    executable = "bash"

    @run_after("init")
    def once(self):
        mark = os.environ["TRAPS_MARK"]
        self.executable_opts = ["-c", f"'[ -e {mark} ] && echo 8; touch {mark}'"]


@rfm.simple_test
class Elsewhere(_Plain):
    valid_systems = ["another-site"]


@rfm.simple_test
class Columns(_Plain):
    """Its performance variables change from run to run."""

    @run_before("performance")
    def choose(self):
        for name in os.environ.get("TRAPS_COLUMNS", "one").split(","):
            self.perf_variables[name] = sn.make_performance_function(sn.defer(1.0), "MB/s")
