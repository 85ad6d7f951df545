"""The check of a collective's algorithms: own choice and all others in turns, in one job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reframe.core.builtins import parameter, run_after

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.core.units import parse_size
from fabricproof.job.collective_commands import SMALLEST_BYTES
from fabricproof.job.leg import Leg, Plan
from fabricproof.job.relation import OwnChoice, Relation
from fabricproof.rfm.checks.base import FabricBenchmark
from fabricproof.rfm.families.collectives import channel_planner, collective_leg
from fabricproof.rfm.legs.leg import LegPlanner, choose_suite
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

    def why_not(self, planner: LegPlanner) -> str:
        """Take the first suite that has the collective; tell where there is nothing to sweep."""
        stack = planner.stack
        knobs, reason = find_knobs(stack.family, stack.version, self.collective)
        imb = ("imb", self.collective.capitalize())
        for suite, program in (("osu", f"osu_{self.collective}"), imb) if knobs else ():
            found, reason = choose_suite(stack, suite, program)
            if found is not None:
                reason = why_no_comparison(found, program)
            if not reason:
                self.suite, self.program = suite, program
                break
        return reason

    def plan(self, planner: LegPlanner) -> Plan:
        """Return the turns of all series, and the relation that owns them."""
        partition, collective = planner.partition, self.collective
        knobs, reason = find_knobs(planner.stack.family, planner.stack.version, collective)
        pair, no_pair = channel_planner(planner)
        if knobs is None or pair is None:
            return Plan(reason=reason or no_pair)
        smallest = parse_size(partition.sweep_smallest)
        too_small = collective == "barrier" and smallest > SMALLEST_BYTES
        reason = planner.why_not_between_nodes()
        if not reason and partition.no_sweep:
            reason = f"left out by the site: {partition.no_sweep}"
        if not reason and (too_small or smallest > parse_size(partition.collective_max_size)):
            reason = f"{partition.name} judges sweeps from {partition.sweep_smallest} up"
        return Plan(reason=reason) if reason else _sweep(planner, pair, knobs, smallest)


def why_no_comparison(suite: str, program: str) -> str:
    """Return why a program's times cannot compare algorithms; empty where they can."""
    known = collective_of(suite, program)
    if known is None:
        return f"{program} of {suite} is no collective that is known"
    if known.times_root_alone:
        return f"{program} of {suite} times its root alone, which need not wait for the others"
    return ""


def _sweep(planner: LegPlanner, pair: LegPlanner, knobs: Knobs, smallest: int) -> Plan:
    """Return the legs in the order in which they run, and the relation that owns them."""
    partition, stated = planner.partition, planner.stack.spec.environment
    # As full as the site says, but never several spinning on a core.
    choose = min if partition.oversubscribed else max
    layout = Layout(num_nodes=partition.num_nodes, ranks_per_node=choose(partition.ranks_per_node))
    usable, left_out = knobs.usable(layout.num_ranks)
    touched = knobs.touched(stated)
    others: dict[str, Mapping[str, str]] = {AUTO: knobs.neutral} if touched else {}
    others |= {each.id: knobs.forcing(each) for each in usable}
    turns = TURNS_OF_FEW if len(others) <= FEW else TURNS
    # As much time for a leg as the job has for so many.
    count = turns * len(others) + turns + 1
    seconds = partition.job_minutes * 60 * FIRST_LOOK_SHARE / count - START_SECONDS
    wanted = max(LEAST_SECONDS, min(partition.leg_seconds, seconds))
    timed = replace(planner, partition=partition.model_copy(update={"leg_seconds": wanted}))
    files = [stated[name] for name in knobs.files if stated.get(name)]
    own = {FILES_VARIABLE: ":".join(files)} if files else {}
    series: dict[str, list[Leg]] = {OWN: [], **{name: [] for name in others}}
    legs: list[Leg] = []
    for turn in range(1, turns + 2):
        for name, environment in {OWN: own, **(others if turn <= turns else {})}.items():
            variant = f"{name if name in {OWN, AUTO} else f'alg-{name}'}.{turn}"
            leg = collective_leg(
                timed, pair, timed.rails[:1], layout, variant=variant, environment=environment
            )
            # Judged by its neighbours alone: no model and no reference has a say.
            legs.append(replace(leg, channel_leg="", references={}))
            series[name].append(legs[-1])
    sizes = tuple(size for size in legs[0].expected_sizes if size >= smallest)
    names = tuple(leg.name for leg in legs)
    choice = OwnChoice(
        series={name: tuple(leg.name for leg in of_one) for name, of_one in series.items()},
        labels={
            AUTO: "the library's own choice",
            **{each.id: each.label for each in usable},
        },
        mended_by={
            AUTO: f"take {' and '.join(touched)} out of the stack's environment",
            **{
                each.id: f"set {knobs.choosing(each)} in the stack's environment" for each in usable
            },
        },
        sizes=(None,) if knobs.collective == "barrier" else sizes,
        left_out=tuple(f"left out: {each.algorithm.label}: {each.reason}" for each in left_out),
        bar=Bar(),
    )
    relation = Relation(
        name=f"{legs[0].name.removesuffix('.own.1')}.{knobs.collective}.algorithms",
        what=choice,
        legs=names,
        suite=legs[0].suite,
        program=legs[0].program,
        rails=legs[0].rails,
        owns=names,
    )
    return Plan(legs=tuple(legs), relations=(relation,))
