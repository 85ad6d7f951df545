"""Plan the sweep over the algorithms of a collective: own choice and all others in turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.core.units import parse_size
from fabricproof.job.collective_commands import SMALLEST_BYTES
from fabricproof.job.leg import Leg, Plan, Relation
from fabricproof.rfm.legs.collective import channel_planner, collective_leg
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import PartitionSpec
from fabricproof.stacks.launch import Layout
from fabricproof.tuning import AUTO, OWN, Bar, Knobs, find_knobs

#: what rank.sh takes the names of files from
FILES_VARIABLE = "FABRICPROOF_FILES"

#: how often each algorithm runs, and how often where there are few; the own choice runs before,
#: between and after
TURNS, TURNS_OF_FEW, FEW = 2, 3, 8

#: what starting the ranks of a leg takes, and the share of a job's time for its first look
START_SECONDS = 2.0
FIRST_LOOK_SHARE = 0.5

#: no leg is shorter: what is left is all start
LEAST_SECONDS = 0.5


def programs_of(collective: str) -> tuple[tuple[str, str], ...]:
    """Return what measures a collective, suite and program, best first."""
    return ("osu", f"osu_{collective}"), ("imb", collective.capitalize())


def why_no_comparison(suite: str, program: str) -> str:
    """Return why a program's times cannot compare algorithms; empty where they can."""
    known = collective_of(suite, program)
    if known is None:
        return f"{program} of {suite} is no collective that is known"
    if known.times_root_alone:
        return f"{program} of {suite} times its root alone, which need not wait for the others"
    return ""


def sweep_layout(partition: PartitionSpec) -> Layout:
    """Return where the ranks go: as full as the site says, but never several spinning on a core."""
    ranks = partition.ranks_per_node
    return Layout(
        num_nodes=partition.num_nodes,
        ranks_per_node=min(ranks) if partition.oversubscribed else max(ranks),
    )


def plan_sweep(planner: LegPlanner, collective: str) -> Plan:
    """Return the legs of one sweep and what is to hold between them, or the reason for none."""
    partition = planner.partition
    knobs, reason = find_knobs(planner.stack.family, planner.stack.version, collective)
    pair, no_pair = channel_planner(planner)
    if knobs is None or pair is None:
        return Plan(reason=reason or no_pair)
    if reason := _no_sweep_there(partition, collective):
        return Plan(reason=reason)
    sweep = _Sweep(planner, pair, knobs, sweep_layout(partition))
    return Plan(legs=tuple(sweep.legs()), relations=(sweep.relation(),))


def _no_sweep_there(partition: PartitionSpec, collective: str) -> str:
    """Return why a partition has no sweep of ``collective``; empty where it has one."""
    if partition.same_node or partition.num_nodes < 2:
        return f"partition {partition.name} has one node for it: no fabric between"
    if partition.no_sweep:
        return f"left out by the site: {partition.no_sweep}"
    smallest = parse_size(partition.sweep_smallest)
    too_small = collective == "barrier" and smallest > SMALLEST_BYTES
    if too_small or smallest > parse_size(partition.collective_max_size):
        return f"{partition.name} judges sweeps from {partition.sweep_smallest} up"
    return ""


class _Sweep:
    """The series of one sweep and their turns."""

    def __init__(
        self,
        planner: LegPlanner,
        pair: LegPlanner,
        knobs: Knobs,
        layout: Layout,
    ) -> None:
        self.pair, self.knobs, self.layout = pair, knobs, layout
        self.usable, self.left_out = knobs.usable(layout.num_ranks)
        self.touched = knobs.touched(planner.stack.spec.environment)
        self.rails = planner.rails[:1]
        self.environments = self._environments()
        self.turns = TURNS_OF_FEW if len(self.environments) <= FEW else TURNS
        self.planner = replace(planner, partition=self._partition(planner.partition))
        self.made: dict[str, list[Leg]] = {}

    def _environments(self) -> dict[str, Mapping[str, str]]:
        """Return the series in the order of a turn, each with its variables."""
        series: dict[str, Mapping[str, str]] = {
            each.id: self.knobs.forcing(each) for each in self.usable
        }
        if self.touched:
            series = {AUTO: self.knobs.neutral, **series}
        return series

    def _partition(self, partition: PartitionSpec) -> PartitionSpec:
        """Return the partition with as much time for a leg as the job has for so many."""
        count = self.turns * len(self.environments) + self.turns + 1
        seconds = partition.job_minutes * 60 * FIRST_LOOK_SHARE / count - START_SECONDS
        wanted = max(LEAST_SECONDS, min(partition.leg_seconds, seconds))
        return partition.model_copy(update={"leg_seconds": wanted})

    def legs(self) -> Iterator[Leg]:
        """Yield the legs in the order in which they run."""
        stack = self.planner.stack.spec.environment
        files = [stack[name] for name in self.knobs.files if stack.get(name)]
        own = {FILES_VARIABLE: ":".join(files)} if files else {}
        for turn in range(1, self.turns + 1):
            yield self._leg(OWN, own, turn)
            for name, environment in self.environments.items():
                yield self._leg(name, environment, turn)
        yield self._leg(OWN, own, self.turns + 1)

    def _leg(self, series: str, environment: Mapping[str, str], turn: int) -> Leg:
        named = series if series in {OWN, AUTO} else f"alg-{series}"
        leg = collective_leg(
            self.planner,
            self.pair,
            self.rails,
            self.layout,
            variant=f"{named}.{turn}",
            environment=environment,
        )
        # Judged by its neighbours alone: no model and no reference has a say.
        leg = replace(leg, channel_leg="", references={})
        self.made.setdefault(series, []).append(leg)
        return leg

    def relation(self) -> Relation:
        """Return what owns the legs; to be asked for after them."""
        first = self.made[OWN][0]
        smallest = parse_size(self.planner.partition.sweep_smallest)
        sizes = [size for size in first.expected_sizes if size >= smallest]
        all_legs = [leg for legs in self.made.values() for leg in legs]
        return first.relation(
            f"{first.name.removesuffix('.own.1')}.{self.knobs.collective}.algorithms",
            "own_choice",
            all_legs,
            {
                "series": {name: [leg.name for leg in legs] for name, legs in self.made.items()},
                "labels": {
                    AUTO: "the library's own choice",
                    **{each.id: each.label for each in self.usable},
                },
                "mended_by": {
                    AUTO: f"take {' and '.join(self.touched)} out of the stack's environment",
                    **{
                        each.id: f"set {self.knobs.choosing(each)} in the stack's environment"
                        for each in self.usable
                    },
                },
                "sizes": [None] if self.knobs.collective == "barrier" else sizes,
                "left_out": [
                    f"left out: {each.algorithm.label}: {each.reason}" for each in self.left_out
                ],
                "bar": asdict(Bar()),
            },
            owns=all_legs,
        )
