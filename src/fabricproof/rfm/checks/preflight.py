"""The check that only looks: are the nodes and their links what the site declares?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fabricproof.job.leg import Leg, Plan
from fabricproof.job.outcome import Outcome
from fabricproof.job.script import INVENTORY_FOLDER
from fabricproof.job.whole_job import PROGRAM, SUITE, judge_looks, links_of, read_looks
from fabricproof.rfm.checks.once import OnceBenchmark
from fabricproof.rfm.current import current_site
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import PartitionSpec
from fabricproof.stacks.launch import plan_launch


class PreflightBenchmark(OnceBenchmark):
    """All nodes of a job, looked at once per partition and fabric, with whatever stack starts it.

    Nothing is measured, so no stack is: the first one of the partition only starts the look.
    """

    suite = SUITE

    tells_the_path = False
    program = PROGRAM

    def choose_suite(self) -> str:
        """Need no program of the stack's."""
        return SUITE

    def plan(self, planner: LegPlanner) -> Plan:
        """Return one leg that does nothing on every node, so that each says that it took part."""
        return Plan(legs=(_nothing(planner),))

    def looks(self, partition: PartitionSpec) -> bool:  # noqa: ARG002
        """Tell that the nodes are asked, whatever other jobs do: that is what is judged."""
        return True

    def judged(self, of_legs: Sequence[Outcome]) -> tuple[Outcome, ...]:
        """Judge what the nodes left of themselves; one outcome for each rail."""
        due = [str(node) for node in self.job.nodelist or ()]
        looks = read_looks(Path(self.stagedir) / INVENTORY_FOLDER, of_legs, due)
        spec = current_site().fabric_spec(self.fabric)
        rails = [rail.interface for rail in spec.rails]
        return links_of(rails, judge_looks(spec, looks), looks, self.legs[0].num_nodes)


def _nothing(planner: LegPlanner) -> Leg:
    launch = plan_launch(planner.stack.family, planner.launcher)
    return Leg(
        name="look",
        rails=planner.rails,
        suite=SUITE,
        program=PROGRAM,
        environment=dict(launch.environment),
        commands=(("true",),),
        expected_sizes=(),
        sent_bytes=None,
        sent_per_message=None,
        sent_messages=None,
        spread=False,
        num_nodes=planner.partition.num_nodes,
        required=(),
        fabric=None,
        tolerance=0.0,
    )
