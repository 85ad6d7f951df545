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
from fabricproof.rfm.families.rails import RailsBenchmark
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
    return _hidden(
        _shell(leg, f'"$@"; status=$?; [ $SLURM_PROCID = {rank} ] && exit 1; exit $status')
    )


def _hidden(leg):
    """Return the leg with a launcher that always says 0; a job's script takes it as it stands."""
    launch = leg.launch or ("srun", *plan_launch("openmpi").options)
    return replace(leg, launch=("sh", "-c", shlex.quote('"$@"; exit 0'), "sh", *launch))


def _elsewhere(leg, _):
    """The launcher asks for nodes of its own, and gets others than the job has."""
    alone = 'for each in "${!SLURM_@}"; do unset "$each"; done; exec "$@"'
    options = ("-p", "compute", "-N", "2", "-n", "2", "--ntasks-per-node=1")
    away = ",".join(sorted(_NODES - set(os.environ["FABRICPROOF_NODES"].split(","))))
    launch = ("srun", *plan_launch("openmpi").options, *options, "-w", away)
    return replace(leg, launch=("bash", "-c", shlex.quote(alone), "bash", *launch))


_NODES = {"vc1", "vc2", "vc3", "vc4"}


def _slow_rows(leg, percent, which):
    """Print a share of the rate of one size, which a line of shell chooses: ``$slow``."""
    script = '$1 == slow { $0 = sprintf("%10d%20.2f", $1, share * $2) } { print }'
    line = f'{which}; "$@" | awk -v slow=$slow -v share={percent / 100} {shlex.quote(script)}'
    return _shell(leg, line)


def _two_looks(leg, percent):
    large, small = leg.expected_sizes[-1], leg.expected_sizes[-3]
    look = "${FABRICPROOF_LEG##*.}"
    return _slow_rows(leg, percent, f"slow={large}; [ {look} = 1 ] || slow={small}")


def _two_jobs(leg, percent):
    job = _job()
    return (
        _slow_rows(leg, percent, f"slow={leg.expected_sizes[(-1, -3)[job - 1]]}")
        if job < 3
        else leg
    )


def _wrong_once(leg, amount):
    return SPOILED["wrong rail used"](leg, amount) if _job() == 1 else leg


def _job():
    """Return which job of a night this is, from 1."""
    file = Path(os.environ["FABRICPROOF_DRAWN_JOBS"])
    with file.open("a") as jobs:
        jobs.write("job\n")
    return len(file.read_text().splitlines())


#: rank.sh, which counts when the program has ended, is the parent of what it starts
_KILLS = '"$@"; status=$?; [ $SLURM_PROCID = {rank} ] && kill -9 $PPID; exit $status'


def _blind_then_slow(leg, percent):
    script = f'/^ *[0-9]/ {{ $0 = sprintf("%10d%20.2f", $1, {percent / 100} * $2) }} {{ print }}'
    kills = _KILLS.format(rank=1)
    counted = _shell(
        leg,
        f"case ${{FABRICPROOF_LEG##*.}} in 1) {kills} ;; "
        f'2) "$@" | awk {shlex.quote(script)} ;; *) exec "$@" ;; esac',
    )
    return _hidden(counted)


def _contradiction(leg, exponent):
    row = 'sprintf("%13d%13d%13.2f%13.2f", $1, $2, $3, 1.3 * $4)'
    script = f"$1 == {2**exponent} {{ $0 = {row} }} {{ print }}"
    return _shell(leg, f'"$@" | awk {shlex.quote(script)}')


_WAITS = "sleep 40"

#: device of Soft-RoCE -> the interface that it is laid on
_BELOW = {"rxe0:1": "rail0", "rxe1:1": "rail1"}

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
    "ranks on the wrong node": _elsewhere,
    "stalls at both looks, each of another number": _two_looks,
    "stalls in both jobs, each of another number": _two_jobs,
    "stall beside a look that nobody counted": _blind_then_slow,
    "wrong path in one job": _wrong_once,
    "rank that never came back to be counted": lambda leg, rank: _hidden(
        _shell(leg, _KILLS.format(rank=rank))
    ),
    "columns that contradict each other": _contradiction,
    "job killed": lambda leg, _: _shell(leg, _WAITS),
    "dead node": lambda leg, _: _shell(leg, _WAITS),
    "controller away": lambda leg, _: _shell(leg, _WAITS),
    "full disk": lambda leg, _: _shell(leg, 'sleep 3; exec "$@"'),
    "launcher that hides a rank's failure": _failed,
    "one rail of two used": lambda leg, rail: _with(leg, **{_MPI_TAKES: f"rail{rail}"}),
    "TCP below a verbs device": lambda leg, _: _with(
        leg, UCX_TLS="tcp,self", UCX_NET_DEVICES=_BELOW[leg.rails[0]]
    ),
    "protocol switch of a healthy stack": lambda leg, kib: _with(leg, UCX_RNDV_THRESH=f"{kib}k"),
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
        spoil = SPOILED.get(self.fault, lambda leg, _: leg)
        self.legs = (spoil(leg, self.amount),)
        self.relations = ()
        write_plan(Path(self.stagedir), self.legs)

    @run_after("run")
    def raise_after_run(self):
        """Fail as a site's own hook may, although every number is right."""
        self._raise(0)

    @run_after("sanity")
    def raise_after_sanity(self):
        """Likewise."""
        self._raise(1)

    @run_after("performance")
    def raise_after_performance(self):
        """Likewise."""
        self._raise(2)

    def _raise(self, stage):
        if self.fault.startswith("check that ReFrame failed") and self.amount == stage:
            raise ValueError("a hook of the site raised")

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


@rfm.simple_test
class DrawnOfColumns(_Drawn, PairBenchmark):
    """One rail, by a program that prints a time and a rate of each size."""

    suite = "imb"
    program = "PingPong"
    family_tags: ClassVar = ["fault"]
    rails = variable(str, value="rail0")


@rfm.simple_test
class DrawnOfTimes(_Drawn, PairBenchmark):
    """One rail, by its latency."""

    suite = "osu"
    program = "osu_latency"
    family_tags: ClassVar = ["fault"]
    rails = variable(str, value="rail0")
