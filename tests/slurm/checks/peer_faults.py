"""Checks without MPI that go wrong on purpose, for the tests of their words on a real Slurm."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import reframe as rfm
from reframe.core.builtins import run_after

from fabricproof.job.leg import write_plan
from fabricproof.rfm.families.sockets import PeerBenchmark


class SpoiledPeer(PeerBenchmark):
    """One leg of iperf3, whose second rank does something else."""

    suite = "iperf3"
    program = "iperf3"
    family_tags: ClassVar = ["ethernet", "fault"]

    #: what rank 1 runs instead
    instead = ""

    @run_after("setup")
    def spoil(self):
        """Keep one leg and let its second rank do what it should not."""
        leg = self.legs[0]
        (argv,) = leg.commands
        program = f'[ "$SLURM_PROCID" = 0 ] || {{ {self.instead}; }}; exec {" ".join(argv)}'
        self.legs = (replace(leg, commands=(("sh", "-c", program),)),)
        self.relations = ()
        write_plan(Path(self.stagedir), self.legs)


@rfm.simple_test
class ServerNeverComes(SpoiledPeer):
    """The node that should serve does nothing."""

    instead = "exit 0"


@rfm.simple_test
class ToolIsMissingThere(SpoiledPeer):
    """The node that should serve has no such program."""

    instead = "exec bash peer.sh 8 rail0 iperf3-of-another-node"


@rfm.simple_test
class InterfaceHasAnotherName(SpoiledPeer):
    """The node that should serve calls the same card otherwise."""

    instead = "exec bash peer.sh 8 enp182s0 iperf3"
