"""What a run will cost, and how far an estimate was off from what a run took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabricproof.history.cost.case import Case, Key
from fabricproof.history.cost.estimate import (
    LEVELS,
    Cost,
    Estimate,
    LeftOut,
    add_up,
    estimate,
    left_out,
    serialised_by,
)
from fabricproof.history.cost.history import PastRun
from fabricproof.history.cost.learn import Lessons
from fabricproof.site import Site
from fabricproof.site.roll import due_entries


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One check of a run: what was expected of its jobs, and what they took."""

    check: str
    jobs: int
    expected_seconds: float
    measured_seconds: float
    expected_node_seconds: float
    measured_node_seconds: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A whole run.

    Attributes:
        checks: by check, in their order.
        expected_seconds: of the whole run, ReFrame's own share included.
        measured_seconds: what ReFrame says it ran.
        unplanned: jobs of the run that no plan of today holds, by check, stack and fabric.
        building_seconds: what the longest build of the run took; no part of the estimate.
        unfinished: jobs that did not end well: what they took says little.
    """

    checks: tuple[Compared, ...]
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


def compare(run: PastRun, estimates: Iterable[Estimate], *, session_seconds: float) -> Comparison:
    """Return the comparison of ``run`` with what was expected of its jobs."""
    by_key: Mapping[Key, Estimate] = {each.case.key: each for each in estimates}
    rows: dict[str, Compared] = {}
    unplanned = []
    for job in run.jobs:
        planned = by_key.get(job.key)
        if planned is None:
            check, fabric, _, stack = job.key
            unplanned.append(f"{check} on {stack} over {fabric}")
            continue
        row = rows.get(job.key[0])
        rows[job.key[0]] = Compared(
            check=job.key[0],
            jobs=(row.jobs if row else 0) + 1,
            expected_seconds=(row.expected_seconds if row else 0) + planned.seconds,
            measured_seconds=(row.measured_seconds if row else 0) + job.seconds,
            expected_node_seconds=(row.expected_node_seconds if row else 0) + planned.node_seconds,
            measured_node_seconds=(row.measured_node_seconds if row else 0)
            + job.seconds * job.nodes,
        )
    return Comparison(
        checks=tuple(rows[name] for name in sorted(rows)),
        expected_seconds=session_seconds + sum(each.expected_seconds for each in rows.values()),
        measured_seconds=run.seconds,
        unplanned=tuple(unplanned),
        building_seconds=max(run.builds.values(), default=0.0),
        unfinished=sum(not job.attempts for job in run.jobs),
    )


#: what fits into one night
NIGHT_SECONDS = 8 * 3600.0


@dataclass(frozen=True, kw_only=True)
class Level:
    """What one level costs and leaves out of everything that could be run."""

    name: str
    cost: Cost
    leaves_out: LeftOut


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """A plan.

    Attributes:
        estimates: one for each job of the selection.
        cost: of the selection.
        levels: of the same selection with another level.
        technologies: cost by technology, within the selection.
        skipped, lost: cases of the selection that would be SKIPPED, or MISSING although due.
        one_at_a_time: by partition, what lets only one job run at a time.
        lessons: what the estimates were learnt from.
    """

    estimates: tuple[Estimate, ...]
    cost: Cost
    levels: tuple[Level, ...]
    technologies: Mapping[str, Cost]
    skipped: tuple[Case, ...]
    lost: tuple[Case, ...]
    one_at_a_time: Mapping[str, str]
    lessons: Lessons

    @property
    def second_look_seconds(self) -> float:
        """Expected seconds of legs that run again before they are called red."""
        return sum(each.second_look_seconds for each in self.estimates)

    def tonight(self) -> Level | None:
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
    """Return the plan of the cases that ``tags`` select.

    Args:
        site: whose partitions say what can run at once.
        cases: all that ReFrame knows of.
        tags: as in ``fabricproof run -t``.
        lessons: of the site's past runs.
    """
    partitions = {partition.name: partition for partition in site.partitions}

    def cost(chosen: Sequence[Case]) -> Cost:
        expected = [estimate(case, lessons) for case in chosen]
        return add_up(expected, partitions, lessons.session_seconds)

    others = [tag for tag in tags if tag not in LEVELS]
    everything = [case for case in select(cases, others) if case.is_due]
    levels = []
    for name in LEVELS:
        chosen = select(everything, [name])
        levels.append(Level(name=name, cost=cost(chosen), leaves_out=left_out(chosen, everything)))
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
