"""What a run will cost, by case, level and technology, and how far that was off afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabricproof.core.units import by_key
from fabricproof.history.cost.case import Case, Key
from fabricproof.history.cost.history import (
    DEFAULT_START_SECONDS,
    Lesson,
    Lessons,
    PastJob,
    PastRun,
)
from fabricproof.site import PartitionSpec, Site
from fabricproof.site.roll import due_entries
from fabricproof.site.scheduling import access_options

#: the levels, from the smallest to the one that leaves nothing out: what is run how often; each is
#: run with all that follow it
LEVELS = ("quick", "nightly", "full")

#: no job is over sooner: what a scheduler takes to start and end an empty one
LEAST_JOB_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one job is expected to cost.

    Attributes:
        leg_seconds: of each leg, in their order, its start included.
        second_look_seconds: expected on top, from how often legs were run again before.
        lesson: what it was learnt from; None where the stated default was taken.
    """

    case: Case
    leg_seconds: tuple[float, ...]
    second_look_seconds: float
    lesson: Lesson | None

    @property
    def seconds(self) -> float:
        """Expected seconds of the job, which its time limit ends."""
        expected = max(LEAST_JOB_SECONDS, sum(self.leg_seconds) + self.second_look_seconds)
        return min(expected, self.case.limit_seconds or expected)

    @property
    def node_seconds(self) -> float:
        """Expected seconds times nodes."""
        return self.seconds * self.case.nodes


def estimate(case: Case, lessons: Lessons) -> Estimate:
    """Return what ``case`` is expected to cost."""
    lesson = lessons.of(case)
    legs = tuple(
        max(
            0.0,
            net_path.seconds
            + (lesson.overhead_seconds if lesson else DEFAULT_START_SECONDS * net_path.starts),
        )
        for net_path in case.net_paths
    )
    again = lesson.second_looks if lesson else 0.0
    return Estimate(
        case=case, leg_seconds=legs, second_look_seconds=again * sum(legs), lesson=lesson
    )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What several jobs cost together.

    Attributes:
        node_seconds: expected.
        wall_seconds: from, to: as many at once as may be, and one after the other; the same
            number twice where something lets only one run at a time.
        limit_seconds: one after the other, each to its time limit.
        limit_node_seconds: the same for the nodes.
    """

    jobs: int
    legs: int
    node_seconds: float
    wall_seconds: tuple[float, float]
    limit_seconds: float
    limit_node_seconds: float


def add_up(
    estimates: Sequence[Estimate], partitions: Mapping[str, PartitionSpec], session_seconds: float
) -> Cost:
    """Return what ``estimates`` cost together, ``session_seconds`` of ReFrame's own included."""
    least, most = 0.0, 0.0
    for name, partition in partitions.items():
        seconds = [each.seconds for each in estimates if each.case.partition == name]
        if not seconds:
            continue
        total = sum(seconds)
        at_once = 1 if serialised_by(partition) else partition.max_jobs
        # Partitions do not wait for each other, as far as is known.
        least, most = max(least, total / at_once, *seconds), most + total
    around = session_seconds if estimates else 0.0
    return Cost(
        jobs=len(estimates),
        legs=sum(len(each.leg_seconds) for each in estimates),
        node_seconds=sum(each.node_seconds for each in estimates),
        wall_seconds=(least + around, most + around),
        limit_seconds=sum(each.case.limit_seconds for each in estimates),
        limit_node_seconds=sum(each.case.limit_seconds * each.case.nodes for each in estimates),
    )


def serialised_by(partition: PartitionSpec) -> str:
    """Return what lets only one job of a partition run at a time; empty where nothing does.

    How many of a licence the cluster has is not known without asking it: one is assumed.
    """
    if partition.max_jobs == 1:
        return "max_jobs = 1"
    licence = licence_of(partition)
    return f"licence {licence}" if licence else ""


def licence_of(partition: PartitionSpec) -> str:
    """Return the licence that lets one job run at a time; empty where ``max_jobs`` or none does."""
    return "" if partition.max_jobs == 1 else str(access_options(partition.access).licenses)


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """What a smaller selection does not measure and a larger one does, by name."""

    checks: tuple[str, ...]
    stacks: tuple[str, ...]
    net_paths: tuple[str, ...]
    sizes: tuple[int, ...]
    jobs: int

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is left out."""
        return not self.jobs


def left_out(chosen: Sequence[Case], everything: Sequence[Case]) -> LeftOut:
    """Return what ``chosen`` leaves out of ``everything``."""

    def lost(names: Callable[[Case], Iterable[str]]) -> tuple[str, ...]:
        kept = {name for case in chosen for name in names(case)}
        return tuple(sorted({name for case in everything for name in names(case)} - kept))

    sizes = [
        {size for case in part for net_path in case.net_paths for size in net_path.sizes}
        for part in (everything, chosen)
    ]
    return LeftOut(
        checks=lost(lambda case: [case.check]),
        stacks=lost(lambda case: [case.stack]),
        net_paths=lost(
            lambda case: [f"{case.fabric}:{net_path.name}" for net_path in case.net_paths]
        ),
        sizes=tuple(sorted(sizes[0] - sizes[1])),
        jobs=len(everything) - len(chosen),
    )


def refusals(cases: Iterable[Case], word: Callable[[Case], str]) -> dict[str, list[Case]]:
    """Return the cases by the reason that ``word`` gives, the most frequent first."""
    found = by_key((why, case) for case in cases if (why := word(case)))
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


@dataclass(frozen=True, kw_only=True)
class CheckCost:
    """One check of a run: what was expected of its jobs, and what they took."""

    check: str
    jobs: int
    expected_seconds: float
    measured_seconds: float
    expected_node_seconds: float
    measured_node_seconds: float


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """A whole run.

    Attributes:
        checks: by check, in their order.
        expected_seconds: of the whole run, ReFrame's own share included.
        measured_seconds: what ReFrame says it ran.
        unplanned: jobs of the run that no plan of today holds, by check, stack and fabric.
        building_seconds: what the longest build of the run took; no part of the estimate.
        unfinished: jobs that did not end well: what they took says little.
    """

    checks: tuple[CheckCost, ...]
    expected_seconds: float
    measured_seconds: float
    unplanned: tuple[str, ...]
    building_seconds: float
    unfinished: int = 0

    @property
    def off_by(self) -> float:
        """How far the estimate was off, as a fraction of what was measured."""
        return off_by(self.expected_seconds, self.measured_seconds)


def off_by(expected: float, measured: float) -> float:
    """Return expected less measured as a fraction of measured; 0 where nothing was measured."""
    return (expected - measured) / measured if measured > 0 else 0.0


def compare(run: PastRun, estimates: Iterable[Estimate], *, session_seconds: float) -> RunCost:
    """Return the comparison of ``run`` with what was expected of its jobs."""
    expected: Mapping[Key, Estimate] = {each.case.key: each for each in estimates}
    by_check: dict[str, list[tuple[PastJob, Estimate]]] = {}
    unplanned = []
    for job in run.jobs:
        check, fabric, _, stack = job.key
        if job.key in expected:
            by_check.setdefault(check, []).append((job, expected[job.key]))
        else:
            unplanned.append(f"{check} on {stack} over {fabric}")
    rows = [
        CheckCost(
            check=check,
            jobs=len(pairs),
            expected_seconds=sum(planned.seconds for _, planned in pairs),
            measured_seconds=sum(job.seconds for job, _ in pairs),
            expected_node_seconds=sum(planned.node_seconds for _, planned in pairs),
            measured_node_seconds=sum(job.seconds * job.nodes for job, _ in pairs),
        )
        for check, pairs in sorted(by_check.items())
    ]
    return RunCost(
        checks=tuple(rows),
        expected_seconds=session_seconds + sum(each.expected_seconds for each in rows),
        measured_seconds=run.seconds,
        unplanned=tuple(unplanned),
        building_seconds=max(run.builds.values(), default=0.0),
        unfinished=sum(not job.attempts for job in run.jobs),
    )


#: what fits into one night
NIGHT_SECONDS = 8 * 3600.0


@dataclass(frozen=True, kw_only=True)
class LevelCost:
    """What one level costs and leaves out of everything that could be run."""

    name: str
    cost: Cost
    leaves_out: LeftOut


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """A plan.

    Attributes:
        estimates: one for each job of the selection.
        levels: of the same selection with another level.
        technologies: cost by technology, within the selection.
        skipped, lost: cases of the selection that would be SKIPPED, or MISSING although due.
        one_at_a_time: by partition, what lets only one job run at a time.
        lessons: what the estimates were learnt from.
    """

    estimates: tuple[Estimate, ...]
    cost: Cost
    levels: tuple[LevelCost, ...]
    technologies: Mapping[str, Cost]
    skipped: tuple[Case, ...]
    lost: tuple[Case, ...]
    one_at_a_time: Mapping[str, str]
    lessons: Lessons

    @property
    def second_look_seconds(self) -> float:
        """Expected seconds of legs that run again before they are called red."""
        return sum(each.second_look_seconds for each in self.estimates)

    def tonight(self) -> LevelCost | None:
        """Return the largest level that fits into one night, else the smallest; None without."""
        there = [level for level in self.levels if level.cost.jobs]
        fitting = [each for each in there if each.cost.wall_seconds[1] <= NIGHT_SECONDS]
        # Of two levels that measure the same the smaller name is enough.
        best = max(fitting, key=lambda each: each.cost.jobs, default=None)
        return best or (there[0] if there else None)


def select(cases: Sequence[Case], tags: Sequence[str]) -> list[Case]:
    """Return the cases whose tags ReFrame would select with ``-t`` of each of ``tags``."""
    entries = [{"tags": case.tags, "at": at} for at, case in enumerate(cases)]
    arguments = [word for tag in tags for word in ("-t", tag)]
    return [cases[entry["at"]] for entry in due_entries(entries, arguments)]


def look_ahead(site: Site, cases: Sequence[Case], tags: Sequence[str], lessons: Lessons) -> Outlook:
    """Return the plan of the cases that ``tags`` select."""
    partitions = {partition.name: partition for partition in site.partitions}

    def cost(chosen: Sequence[Case]) -> Cost:
        expected = [estimate(case, lessons) for case in chosen]
        return add_up(expected, partitions, lessons.session_seconds)

    others = [tag for tag in tags if tag not in LEVELS]
    everything = [case for case in select(cases, others) if case.is_due]
    levels = []
    for name in LEVELS:
        chosen = select(everything, [name])
        levels.append(
            LevelCost(name=name, cost=cost(chosen), leaves_out=left_out(chosen, everything))
        )
    selected = select(cases, tags)
    due = [case for case in selected if case.is_due]
    technologies = sorted({case.technology for case in due})
    return Outlook(
        estimates=tuple(estimate(case, lessons) for case in due),
        cost=cost(due),
        levels=tuple(levels),
        technologies={
            name: cost([case for case in due if case.technology == name]) for name in technologies
        },
        skipped=tuple(case for case in selected if case.skipped),
        lost=tuple(case for case in selected if case.lost),
        one_at_a_time={
            name: serialised_by(each) for name, each in partitions.items() if serialised_by(each)
        },
        lessons=lessons,
    )
