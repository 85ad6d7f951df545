"""Small measurements over Soft-RoCE, and the same with something wrong on purpose.

An emulated core takes some 8 s to start two ranks, so that few legs are measured, each with sizes
that end soon.  What is wrong is wrong in the environment of a leg alone: path, judge and report are
those of every check.
"""

from dataclasses import replace
from typing import ClassVar

import reframe as rfm

from fabricproof.job.leg import Plan
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.families.sockets import PeerBenchmark, peer_leg

#: one leg moves some 10 MB at 80 Mb/s
BUDGET = {"leg_seconds": 1.0, "max_message_size": "64KiB"}


class Small(FabricBenchmark):
    """A bandwidth between two nodes that is measured in seconds."""

    suite = "osu"
    program = "osu_bw"
    family_tags: ClassVar = ["live"]

    #: the stacks for which the check means something; all of them where empty
    stacks: ClassVar = []

    def why_not(self, planner):
        """Tell where the stack is not the check's."""
        named = self.current_environ.name
        return "" if named in self.stacks or not self.stacks else f"not for {named}"

    def plan(self, planner):
        """Return the legs of a planner whose budget is small."""
        partition = planner.partition.model_copy(update=BUDGET)
        return Plan(legs=tuple(self.small_legs(replace(planner, partition=partition))))

    def small_legs(self, planner):
        raise NotImplementedError


@rfm.simple_test
class SmallBandwidth(Small):
    """Each rail by itself, by every way to the verbs that the tests look at; over UCX both too."""

    stacks: ClassVar = ["openmpi4", "openmpi4-ud", "openmpi4-ofi", "intelmpi"]

    def small_legs(self, planner):
        alone = [planner.leg((rail,)) for rail in planner.rails]
        return [*alone, planner.leg(planner.rails)] if planner.stack.name == "openmpi4" else alone


@rfm.simple_test
class SecondRail(Small):
    """The second rail by itself."""

    stacks: ClassVar = ["openmpi4"]

    def small_legs(self, planner):
        return [planner.leg(planner.rails[1:])]


@rfm.simple_test
class DetoursOfUcx(Small):
    """UCX, told something else than the leg is judged by."""

    stacks: ClassVar = ["openmpi4"]

    def small_legs(self, planner):
        first, second = planner.rails
        tcp = {"UCX_TLS": "tcp,self"}
        alone = {"UCX_MAX_RNDV_RAILS": "1", "UCX_MAX_EAGER_RAILS": "1"}
        return [
            planner.leg(
                (first,), variant="tcp_rail0", environment={**tcp, "UCX_NET_DEVICES": "rail0"}
            ),
            planner.leg(
                (first,), variant="tcp_mgmt0", environment={**tcp, "UCX_NET_DEVICES": "mgmt0"}
            ),
            planner.leg((first,), variant="other_rail", environment={"UCX_NET_DEVICES": second}),
            planner.leg((first, second), variant="one_rail", environment=alone),
        ]


@rfm.simple_test
class DetourOfLibfabric(Small):
    """Intel MPI's libfabric, told TCP where verbs are judged."""

    stacks: ClassVar = ["intelmpi"]

    def small_legs(self, planner):
        tcp = {"FI_PROVIDER": "tcp", "I_MPI_OFI_PROVIDER": "tcp", "FI_TCP_IFACE": "rail0"}
        return [planner.leg(planner.rails[:1], variant="tcp_rail0", environment=tcp)]


@rfm.simple_test
class ShortWrite(PeerBenchmark):
    """perftest over the first rail, short whatever rate the site declares for it."""

    suite = "perftest"
    program = "ib_write_bw"
    family_tags: ClassVar = ["live"]

    def plan(self, planner):
        """Return one leg of the fewest repetitions that perftest is asked for."""
        partition = planner.partition.model_copy(update={"leg_seconds": 0.001})
        return Plan(legs=(peer_leg(replace(planner, partition=partition), planner.rails[0]),))


@rfm.simple_test
class RunsForLong(Small):
    """Long enough for a test to kill a guest meanwhile."""

    stacks: ClassVar = ["openmpi4"]

    def small_legs(self, planner):
        return [replace(planner.leg(planner.rails[:1]), commands=(("sleep", "60"),))]
