"""Checks of stacks that a pretended ``fabricproof stack build`` builds."""

# ruff: noqa: RUF012 - ReFrame reads class attributes as its variables

import os
import sys
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before
from reframe.core.exceptions import SkipTestError

from fabricproof.rfm import build
from fabricproof.rfm.checks.base import PairBenchmark

PRETENDED = Path(os.environ["FABRICPROOF_TESTS_BUILD"])


def _pretend(stack, site):
    """Return what a build script runs: a program that writes the record, or fails."""
    if stack == "passed_over":
        raise SkipTestError("somebody skipped the build")
    command = f"{sys.executable} {PRETENDED} {stack}"
    return (f"{command} >build.out 2>build.err", "echo $? >build.status; true")


build.build_commands = _pretend


@rfm.simple_test
class Well(PairBenchmark):
    suite = "osu"
    program = "osu_bw"
    family_tags = ["trap"]


@rfm.simple_test
class Other(PairBenchmark):
    """Another program of the same suite, which no build has."""

    suite = "osu"
    program = "osu_bw_persistent"
    family_tags = ["trap"]


@rfm.simple_test
class Rebuilds(PairBenchmark):
    """While it runs, somebody builds its stack again."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["moving"]

    @run_before("run")
    def build_again(self):
        if self.current_environ.name == "moving":
            self.prerun_cmds = [f"{sys.executable} {PRETENDED} moving again"]


@rfm.simple_test
class Strayed(PairBenchmark):
    """Something in the job makes the loader take another MPI library."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["moving"]
    env_vars = {"FABRICPROOF_TESTS_LIBRARY": "/usr/lib/libmpi.so.40"}

    @run_after("init")
    def on_one_stack(self):
        self.valid_prog_environs = ["good"]
