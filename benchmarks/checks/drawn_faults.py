"""A bandwidth over one rail, or two, that goes wrong as ``benchmarks/faults_live.py`` drew it."""

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import reframe as rfm
from reframe.core.builtins import run_after, run_before, variable

from fabricproof.job.leg import write_plan
from fabricproof.rfm.checks.base import PairBenchmark
from fabricproof.rfm.checks.multirail import RailsBenchmark
from fabricproof.stacks.launch import plan_launch

_MPI_TAKES = "OMPI_MCA_btl_tcp_if_include"


def _shell(leg, line):
    """Return the leg with a line of shell in its program's place; ``"$@"`` is the program."""
    (program,) = leg.commands
    named = _with(leg, FABRICPROOF_PROGRAM=program[0])  # whose MPI library is due
    return replace(named, commands=(("sh", "-c", line, "sh", *program),))


def _with(leg, **variables):
    return replace(leg, environment={**leg.environment, **variables})


def _rows(leg):
    """Return a whole table, made up, of what this rail may carry."""
    sizes = leg.expected_sizes
    return "".join(f"{size:<10d}{24.1 * size / (size + 4096):12.2f}\n" for size in sizes)


_HEAD = "# OSU MPI Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)\n"


def _printed(leg, text):
    # The other rank has to stay until the first has printed, as a benchmark's does.
    return _shell(leg, f"sleep 1; [ $SLURM_PROCID = 1 ] || printf %s {shlex.quote(text)}")


def _interleaved(leg, amount):
    script = (
        f'NR == {amount} {{ $0 = substr($0, 1, 6) "[vc1:4711] pml ucx: progress" }} {{ print }}'
    )
    return _shell(leg, f'"$@" | awk {shlex.quote(script)}')


def _times(leg, factor):
    script = f'/^ *[0-9]/ {{ $0 = sprintf("%10d%20.2f", $1, {factor} * $2) }} {{ print }}'
    return _shell(leg, f'"$@" | awk {shlex.quote(script)}')


def _stale(leg, _):
    """An older run's output, whole and true when it was printed, in the benchmark's place."""
    return _printed(leg, Path(os.environ["FABRICPROOF_DRAWN_OLD"]).read_text())


def _hung(leg, rank):
    stop = '"$@" & sleep 1; kill -STOP $!; wait $!'
    return _shell(leg, f'if [ $SLURM_PROCID = {rank} ]; then {stop}; else exec "$@"; fi')


def _failed(leg, rank):
    """The launcher says 0 although a rank ended with 1."""
    hidden = ("sh", "-c", '"$@"; exit 0', "sh", *leg.launch)
    return replace(
        _shell(leg, f'"$@"; status=$?; [ $SLURM_PROCID = {rank} ] && exit 1; exit $status'),
        launch=hidden,
    )


_WAITS = "sleep 40"

#: title in the fault library -> what it makes of a leg and a drawn number
SPOILED = {
    "traffic over management": lambda leg, _: _with(leg, **{_MPI_TAKES: "mgmt0"}),
    "wrong rail used": lambda leg, _: _with(
        leg, **{_MPI_TAKES: {"rail0": "rail1", "rail1": "rail0"}[leg.rails[0]]}
    ),
    "shared memory instead of the fabric": lambda leg, _: replace(
        _with(leg, OMPI_MCA_btl="self,sm,vader,tcp"),
        launch=("srun", *plan_launch("openmpi").options, "-N", "1", "-n", "2"),
    ),
    "other MPI library loaded than named": lambda leg, _: _with(
        leg, LD_PRELOAD=os.environ["FABRICPROOF_DRAWN_LIBRARY"]
    ),
    "benchmark that prints without sending": lambda leg, _: _printed(leg, _HEAD + _rows(leg)),
    "stale output of an older run": _stale,
    "truncated output": lambda leg, rows: _shell(leg, f'"$@" | head -n -{rows}'),
    "interleaved output": _interleaved,
    "wrong unit": lambda leg, _: _times(leg, 8),
    "wrong unit, GB/s under MB/s": lambda leg, _: _times(leg, 0.125),
    "hung rank": _hung,
    "job killed": lambda leg, _: _shell(leg, _WAITS),
    "dead node": lambda leg, _: _shell(leg, _WAITS),
    "controller away": lambda leg, _: _shell(leg, _WAITS),
    "full disk": lambda leg, _: _shell(leg, 'sleep 3; exec "$@"'),
    "launcher that hides a rank's failure": _failed,
    "one rail of two used": lambda leg, rail: _with(leg, **{_MPI_TAKES: f"rail{rail}"}),
}


class _Drawn(rfm.RegressionTestPlugin):
    """What both checks below do with their legs once they are planned."""

    fault = variable(str, value="")
    amount = variable(int, value=0)

    @run_after("setup")
    def spoil(self):
        """Keep the leg that was drawn and make the fault."""
        leg = next(each for each in self.legs if "+".join(each.rails) == self.rails)
        if self.fault == "shared memory instead of the fabric":
            self.num_tasks_per_node = 2
        self.legs = (SPOILED[self.fault](leg, self.amount),) if self.fault else (leg,)
        self.relations = ()
        write_plan(Path(self.stagedir), self.legs)

    @run_before("run")
    def shorten(self):
        """End what hangs after seconds, not after the leg's real limit."""
        if self.fault == "hung rank":
            script = Path(self.stagedir) / "legs.sh"
            script.write_text(script.read_text().replace("timeout -k 5 30", "timeout -k 2 8"))


@rfm.simple_test
class DrawnOfOneRail(_Drawn, PairBenchmark):
    """One rail."""

    suite = "osu"
    program = "osu_bw"
    family_tags: ClassVar = ["fault"]
    rails = variable(str, value="rail0")


@rfm.simple_test
class DrawnOfBothRails(_Drawn, RailsBenchmark):
    """Both rails at once."""

    suite = "osu"
    program = "osu_bw"
    family_tags: ClassVar = ["fault"]
    rails = variable(str, value="rail0+rail1")
