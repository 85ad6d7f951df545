"""What past runs teach about the cost of the next: the time that no model knows.

For every past job, what it took less what the effort model says of its legs, shared among the
launches that it made: the start of launcher and MPI, the pauses of the scheduler, and what the
model is wrong by.  The median counts, so that a stalled job teaches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from fabricproof.history.cost.case import Case, Key
from fabricproof.history.cost.history import History, PastJob

#: seconds of one start of a program on some nodes where no past run says it; srun, MPI_Init and
#: MPI_Finalize of four MPIs on the virtual cluster took 0.7 s (C) to 1.5 s (mpi4py), 3 s on a
#: machine that was busy otherwise
DEFAULT_START_SECONDS = 1.2

#: seconds that ReFrame takes before the first job and after the last where no past run says it
DEFAULT_SESSION_SECONDS = 5.0

#: fewer past jobs than this say nothing by themselves: a wider circle of jobs is asked
ENOUGH_JOBS = 2

#: what is older than this many jobs of one kind no longer counts
NEWEST_JOBS = 12


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What one circle of past jobs teaches.

    Attributes:
        overhead_seconds: of one leg beside what the model says; may be negative.
        second_looks: second attempts for each leg, 0 to 1.
        jobs: how many past jobs say so.
        circle: which jobs they were, in words.
    """

    overhead_seconds: float
    second_looks: float
    jobs: int
    circle: str


@dataclass(frozen=True, kw_only=True)
class Lessons:
    """All that was learnt, from the narrowest circle to the widest.

    Attributes:
        by_circle: lessons by circle.
        session_seconds: what ReFrame takes around the jobs.
        sessions: how many past runs say so; 0: it is the default.
        jobs: past jobs that taught anything.
    """

    by_circle: Mapping[tuple[str, ...], Lesson]
    session_seconds: float = DEFAULT_SESSION_SECONDS
    sessions: int = 0
    jobs: int = 0

    def of(self, case: Case) -> Lesson | None:
        """Return the lesson of the narrowest circle that holds ``case``; None where none does."""
        circles = _circles(case.check, case.suite, case.stack)
        return next((self.by_circle[each] for each in circles if each in self.by_circle), None)


def _circles(check: str, suite: str, stack: str) -> tuple[tuple[str, ...], ...]:
    return (("check", check, suite, stack), ("check", check, suite), ("suite", suite), ("site",))


_WORDS = {4: "this check on this stack", 3: "this check", 2: "this suite", 1: "this site"}


def learn(history: History, cases: Iterable[Case], *, serial: bool) -> Lessons:
    """Return what the past jobs teach about ``cases``.

    Only jobs whose case is still planned and whose legs all ended well teach anything.

    Args:
        history: the past runs.
        cases: as they are planned now; their model is taken for the past jobs too.
        serial: the jobs ran one after the other, so that what a run took beside them is known.
    """
    planned = {case.key: case for case in cases if case.is_due}
    taught: dict[tuple[str, ...], list[tuple[float, PastJob]]] = {}
    known = [job for run in history.runs for job in run.jobs if _teaches(job, planned)]
    for job in known:
        overhead = overhead_seconds(job, planned[job.key])
        for circle in _circles(job.key[0], job.suite, job.key[3]):
            taught.setdefault(circle, []).append((overhead, job))
    around = session_overheads(history) if serial else []
    return Lessons(
        by_circle={
            circle: _lesson(circle, jobs[-NEWEST_JOBS:] if len(circle) > 1 else jobs)
            for circle, jobs in taught.items()
            if len(jobs) >= ENOUGH_JOBS
        },
        session_seconds=median(around) if around else DEFAULT_SESSION_SECONDS,
        sessions=len(around),
        jobs=len(known),
    )


def _teaches(job: PastJob, planned: Mapping[Key, Case]) -> bool:
    case = planned.get(job.key)
    return case is not None and case.suite == job.suite and len(job.attempts) == len(case.net_paths)


def overhead_seconds(job: PastJob, case: Case) -> float:
    """Return what each launch of ``job`` cost beside the model, in seconds."""
    pairs = zip(job.attempts, case.net_paths, strict=True)
    measuring = sum(count * net_path.seconds for count, net_path in pairs)
    return (job.seconds - measuring) / sum(job.attempts)


def _lesson(circle: tuple[str, ...], taught: Sequence[tuple[float, PastJob]]) -> Lesson:
    legs = sum(len(job.attempts) for _, job in taught)
    again = sum(sum(job.attempts) - len(job.attempts) for _, job in taught)
    return Lesson(
        overhead_seconds=median(overhead for overhead, _ in taught),
        second_looks=again / legs,
        jobs=len(taught),
        circle=_WORDS[len(circle)],
    )


def session_overheads(history: History) -> list[float]:
    """Return for each past run how much longer it took than its jobs, in seconds."""
    return [
        max(0.0, run.seconds - _span(run.jobs))
        for run in history.runs
        if not _was_building(run.builds)
    ]


def _span(jobs: Sequence[PastJob]) -> float:
    return max(job.ended for job in jobs) - min(job.submitted for job in jobs)


def _was_building(builds: Mapping[str, float]) -> bool:
    return any(seconds > 60 for seconds in builds.values())
