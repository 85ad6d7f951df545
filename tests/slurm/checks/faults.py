"""Checks that go wrong on purpose, for the tests of the verdicts on a real Slurm."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import reframe as rfm
from reframe.core.builtins import run_after, run_before

from fabricproof.job.leg import write_plan
from fabricproof.rfm.checks.base import PairBenchmark


class FaultyBenchmark(PairBenchmark):
    """A check whose first leg is changed behind the planner's back."""

    suite = "osu"
    program = "osu_bw"
    family_tags: ClassVar = ["fault"]

    @run_after("setup")
    def spoil(self):
        """Keep one leg and let the subclass change it."""
        self.legs = (self.spoiled(self.legs[0]),)
        self.relations = ()
        write_plan(Path(self.stagedir), self.legs)

    def spoiled(self, leg):
        return leg


@rfm.simple_test
class OpenMpiOverManagement(FaultyBenchmark):
    """Open MPI, told to use the management network while rail0 is judged."""

    def spoiled(self, leg):
        detour = {"OMPI_MCA_btl_tcp_if_include": "mgmt0"}
        return replace(leg, environment={**leg.environment, **detour})


@rfm.simple_test
class MpichIgnoresItsInterface(FaultyBenchmark):
    """MPICH's wheel as first tried: FI_ variables for a build that uses UCX (replays.md)."""

    suite = "imb"
    program = "PingPong"

    def spoiled(self, leg):
        alone = {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "rail0"}
        # Left to itself UCX 1.20 splits large messages among mgmt0 and rail0 ("rendezvous zero-copy
        # fenced write", UCX_PROTO_INFO=y).  In one CI run it hung three times, perhaps there.
        return replace(leg, environment={**alone, "UCX_MAX_RNDV_RAILS": "1"}, limit_seconds=30)


@rfm.simple_test
class BothRanksOnOneNode(FaultyBenchmark):
    """Two ranks on one node, with shared memory: a fast number of the wrong thing."""

    def spoiled(self, leg):
        self.num_tasks_per_node = 2
        memory = {"OMPI_MCA_btl": "self,sm,vader,tcp"}
        return replace(leg, environment={**leg.environment, **memory})


@rfm.simple_test
class HangsHalfway(FaultyBenchmark):
    """A benchmark that prints half its table and never comes back."""

    def spoiled(self, leg):
        text = (
            "# OSU MPI Bandwidth Test v7.2\\n# Size      Bandwidth (MB/s)\\n1    0.42\\n2    0.84"
        )
        return replace(leg, commands=(("sh", "-c", f"printf '{text}\\n'; sleep 600"),))

    @run_before("run")
    def shorten(self):
        """End the hang after seconds, not after the leg's real limit."""
        script = Path(self.stagedir) / "legs.sh"
        script.write_text(script.read_text().replace("timeout -k 5 30", "timeout -k 2 4"))


@rfm.simple_test
class PrintsGigabytes(FaultyBenchmark):
    """A whole, well-formed table whose numbers are in another unit: a thousandth of the truth."""

    def spoiled(self, leg):
        rows = "".join(f"{size:<10d}{0.02:12.2f}\\n" for size in leg.expected_sizes)
        text = f"# OSU MPI Bandwidth Test v7.2\\n# Size      Bandwidth (MB/s)\\n{rows}"
        program = f'[ "$SLURM_PROCID" = 1 ] || printf "{text}"'
        return replace(leg, commands=(("sh", "-c", program),))


@rfm.simple_test
class Crashes(FaultyBenchmark):
    """The program dies although its text looks right."""

    def spoiled(self, leg):
        return replace(
            leg, commands=(("sh", "-c", "echo '# OSU MPI Bandwidth Test v7.2'; exit 3"),)
        )


@rfm.simple_test
class RunsForLong(FaultyBenchmark):
    """Long enough for a test to kill a node meanwhile."""

    def spoiled(self, leg):
        return replace(leg, commands=(("sleep", "40"),))


@rfm.simple_test
class NeverStarts(FaultyBenchmark):
    """Its job asks for something that is taken; the test holds the licence."""

    @run_before("run")
    def lose_patience(self):
        """Wait seconds in the queue, not the partition's minutes."""
        self.max_pending_time = "6s"
