"""The check of a collective's algorithms: own choice and all others in turns, in one job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reframe.core.builtins import parameter, run_after

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.core.units import parse_size
from fabricproof.job.collective_commands import SMALLEST_BYTES
from fabricproof.job.leg import Leg, Plan
from fabricproof.job.relation import OwnChoice, Relation
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.families.collectives import channel_planner, collective_leg
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.rfm.legs.programs import choose_suite
from fabricproof.site import PartitionSpec
from fabricproof.stacks.launch import Layout
from fabricproof.tuning import AUTO, COLLECTIVES, OWN, Bar, Knobs, find_knobs

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


class AlgorithmSweepBenchmark(FabricBenchmark):
    """One collective under the stack's own choice and under each algorithm that can be forced."""

    suite = "osu"
    program = ""

    #: what is swept: ``bcast``, ``allreduce`` ...
    collective = parameter(COLLECTIVES, loggable=True)

    @run_after("init")
    def name_the_program(self) -> None:
        """Say what is measured before anything is planned; another suite may have to do it."""
        self.program = f"osu_{self.collective}"

    def why_not(self) -> str:
        """Take the first suite that has the collective; tell where there is nothing to sweep."""
        stack = self.resolved()
        knobs, reason = find_knobs(stack.family, stack.version, self.collective)
        if knobs is None:
            return reason
        for suite, program in (
            ("osu", f"osu_{self.collective}"),
            ("imb", self.collective.capitalize()),
        ):
            found, reason = choose_suite(stack, suite, program)
            if found is not None:
                reason = why_no_comparison(found, program)
            if not reason:
                self.suite, self.program = suite, program
                return ""
        return reason

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the turns of all series, and the relation that owns them."""
        return plan_sweep(planner, self.collective)


def why_no_comparison(suite: str, program: str) -> str:
    """Return why a program's times cannot compare algorithms; empty where they can."""
    known = collective_of(suite, program)
    if known is None:
        return f"{program} of {suite} is no collective that is known"
    if known.times_root_alone:
        return f"{program} of {suite} times its root alone, which need not wait for the others"
    return ""


def plan_sweep(planner: LegPlanner, collective: str) -> Plan:
    """Return the legs of one sweep and what is to hold between them, or the reason for none."""
    knobs, reason = find_knobs(planner.stack.family, planner.stack.version, collective)
    pair, no_pair = channel_planner(planner)
    if knobs is None or pair is None:
        return Plan(reason=reason or no_pair)
    if reason := _no_sweep_there(planner.partition, collective):
        return Plan(reason=reason)
    sweep = _Sweep(planner, pair, knobs)
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

    def __init__(self, planner: LegPlanner, pair: LegPlanner, knobs: Knobs) -> None:
        partition = planner.partition
        # As full as the site says, but never several spinning on a core.
        choose = min if partition.oversubscribed else max
        self.layout = Layout(
            num_nodes=partition.num_nodes, ranks_per_node=choose(partition.ranks_per_node)
        )
        self.pair, self.knobs, self.rails = pair, knobs, planner.rails[:1]
        self.usable, self.left_out = knobs.usable(self.layout.num_ranks)
        self.touched = knobs.touched(planner.stack.spec.environment)
        auto = {AUTO: knobs.neutral} if self.touched else {}
        #: the series in the order of a turn, each with its variables
        self.environments: Mapping[str, Mapping[str, str]] = {
            **auto,
            **{each.id: knobs.forcing(each) for each in self.usable},
        }
        self.turns = TURNS_OF_FEW if len(self.environments) <= FEW else TURNS
        # As much time for a leg as the job has for so many.
        count = self.turns * len(self.environments) + self.turns + 1
        seconds = partition.job_minutes * 60 * FIRST_LOOK_SHARE / count - START_SECONDS
        wanted = max(LEAST_SECONDS, min(partition.leg_seconds, seconds))
        changed = partition.model_copy(update={"leg_seconds": wanted})
        self.planner = replace(planner, partition=changed)
        self.made: dict[str, list[Leg]] = {}

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
        sizes = tuple(size for size in first.expected_sizes if size >= smallest)
        series = {name: tuple(leg.name for leg in legs) for name, legs in self.made.items()}
        mended = {
            each.id: f"set {self.knobs.choosing(each)} in the stack's environment"
            for each in self.usable
        }
        legs = tuple(name for each in series.values() for name in each)
        collective = self.knobs.collective
        return Relation(
            name=f"{first.name.removesuffix('.own.1')}.{collective}.algorithms",
            what=OwnChoice(
                series=series,
                labels={
                    AUTO: "the library's own choice",
                    **{each.id: each.label for each in self.usable},
                },
                mended_by={
                    AUTO: f"take {' and '.join(self.touched)} out of the stack's environment",
                    **mended,
                },
                sizes=(None,) if collective == "barrier" else sizes,
                left_out=tuple(
                    f"left out: {each.algorithm.label}: {each.reason}" for each in self.left_out
                ),
                bar=Bar(),
            ),
            legs=legs,
            suite=first.suite,
            program=first.program,
            rails=first.rails,
            owns=legs,
        )
