"""The checks that need no MPI: iperf3, iperf, perftest between two nodes."""

from __future__ import annotations

from reframe.core.builtins import variable

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.job.leg import Plan
from fabricproof.job.outcomes import BACK, backward
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.current import current_site
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.peer import peer_leg
from fabricproof.site.roll import stack_of_looks

#: what a path that is verbs speaks
VERBS = frozenset({"ib", "rocev2"})


def only_first_stack(check: FabricBenchmark, what: str) -> str:
    """Return why ``check``, which needs no MPI, does not run here: it runs on one stack.

    On the first that need not be built for it, so that no failed build takes it along.  It runs
    once a partition and is a required check of every stack, with a verdict or a reason.
    """
    site = current_site()
    first = stack_of_looks(site, site.partition(check.current_partition.name))
    if check.current_environ.name == first:
        return ""
    return f"{what} needs no MPI: it runs once on this partition, with {first}"


class PeerBenchmark(FabricBenchmark):
    """Two nodes, one program without MPI, one leg for each rail by itself."""

    #: TCP connections at once
    streams = variable(int, value=1)

    tells_the_path = False

    def why_not(self) -> str:
        """Tell where the check does not belong: another stack, one machine, no verbs."""
        site = current_site()
        spec = site.fabric_spec(self.fabric)
        if site.partition(self.current_partition.name).same_node or spec.link is None:
            return f"{self.program} measures between two nodes, and this partition has one"
        verbs = site.fabric(self.fabric).framing.name in VERBS
        if self.suite == "perftest" and not verbs:
            return f"it measures verbs, which fabric {self.fabric} does not speak"
        if self.suite != "perftest" and spec.rails[0].interface.partition(":")[1]:
            return f"fabric {self.fabric} is declared by HCA ports, over which TCP has no address"
        return only_first_stack(self, self.program)

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg for each rail, and one the other way where its program sends one way."""
        forth = [peer_leg(planner, rail, streams=self.streams) for rail in planner.rails]
        if meaning(self.suite, self.program).kind is not ProgramKind.BANDWIDTH:
            return Plan(legs=tuple(forth))
        back = [
            backward(peer_leg(planner, rail, variant=BACK, streams=self.streams))
            for rail in planner.rails
        ]
        return Plan(legs=(*forth, *back))
