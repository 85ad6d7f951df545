"""Checks whose jobs end otherwise than their legs, on a Slurm that keeps no accounts."""

# ruff: noqa: RUF012 - ReFrame reads class attributes as its variables

import reframe as rfm
from reframe.core.builtins import run_before

from fabricproof.rfm.checks.base import PairBenchmark


class _Queued(PairBenchmark):
    suite = "osu"
    program = "osu_bw"
    family_tags = ["trap"]
    #: the last command of the job script, in place of the house's
    last = ""
    comment = ""

    @run_before("run")
    def behave(self):
        self.env_vars["FAKE_OSU"] = "well"
        if self.last:
            self.postrun_cmds = [self.last]
        if self.comment:
            self.job.options.append(f"--comment={self.comment}")


@rfm.simple_test
class QueuedWell(_Queued):
    pass


@rfm.simple_test
class QueuedAndForgotten(_Queued):
    """The controller knows nothing of the job any more."""

    comment = "forgotten"


@rfm.simple_test
class QueuedAndKilledAtItsEnd(_Queued):
    last = "kill -9 $$"


@rfm.simple_test
class QueuedAndEndedBySignal(_Queued):
    """Bash runs a trap on EXIT then, after commands that all went well."""

    last = "kill -TERM $$; true"
    comment = "forgotten"


@rfm.simple_test
class QueuedAndFailsAtItsEnd(_Queued):
    last = "(exit 3)"


@rfm.simple_test
class QueuedAndNeverStarted(_Queued):
    """What the job loads first does not load."""

    @run_before("run")
    def break_module(self):
        self.prerun_cmds = ["echo no such module >&2; false"]
