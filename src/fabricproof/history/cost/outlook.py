"""Everything a plan says, in one record: what is due, what it costs, what each level leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabricproof.history.cost.case import Case
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
from fabricproof.history.cost.learn import Lessons
from fabricproof.site import Site
from fabricproof.site.roll import due_entries

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
