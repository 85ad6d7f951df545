"""From cases and lessons to seconds: for each case, each level and each technology."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabricproof.history.cost.case import Case
from fabricproof.history.cost.learn import DEFAULT_START_SECONDS, Lesson, Lessons
from fabricproof.site.schema import PartitionSpec

#: the levels, from the smallest to the one that leaves nothing out
LEVELS = ("quick", "nightly", "full")

#: no job is over sooner: what a scheduler takes to start and end an empty one
LEAST_JOB_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one job is expected to cost.

    Attributes:
        case: the job.
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
        jobs, legs: how many.
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
    for option in partition.access if partition.max_jobs != 1 else ():
        name, _, value = option.replace("-L ", "--licenses=").partition("=")
        if name == "--licenses":
            return value
    return ""


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
    found: dict[str, list[Case]] = {}
    for case in cases:
        if word(case):
            found.setdefault(word(case), []).append(case)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))
