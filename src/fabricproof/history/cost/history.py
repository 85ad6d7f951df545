"""What past runs of a site really took, and what they teach: the time that no model knows.

For every past job, what it took less what the effort model says of its legs, shared among the
launches that it made: the start of launcher and MPI, the pauses of the scheduler, and what the
model is wrong by.  The median counts, so that a stalled job teaches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from fabricproof.core.records import read_json, read_records, record_files
from fabricproof.history.cost.case import Case, Key, key_of

#: what Slurm and ReFrame's local scheduler say of a job that ended well
_ENDED_WELL = frozenset({"COMPLETED", "SUCCESS"})


@dataclass(frozen=True, kw_only=True)
class PastJob:
    """One job of a past run.

    Attributes:
        run_id: the run, whose beginning is its start in UTC.
        submitted: when it was submitted, seconds since the epoch.
        ended: when it was over.
        attempts: of each leg; empty where the records do not say, or where the job did not end
            well.
        seconds: what it took: see :func:`without_waiting`.
    """

    run_id: str
    key: Key
    suite: str
    job_id: str
    submitted: float
    ended: float
    nodes: int
    attempts: tuple[int, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PastRun:
    """One past run: how long ReFrame ran, its builds' seconds by stack, its jobs."""

    run_id: str
    seconds: float
    builds: Mapping[str, float]
    jobs: tuple[PastJob, ...]


@dataclass(frozen=True, kw_only=True)
class PastRuns:
    """The past runs of a site, oldest first, and what could not be read of them."""

    runs: tuple[PastRun, ...] = ()
    notes: tuple[str, ...] = ()

    def before(self, run_id: str) -> PastRuns:
        """Return the runs that had begun before ``run_id``."""
        return replace(self, runs=tuple(each for each in self.runs if each.run_id < run_id))


def read_history(perflogs: Path, site: str, serial: Callable[[str], bool]) -> PastRuns:
    """Return what is kept below ``perflogs`` of the runs of ``site``; damage becomes a note.

    ``serial`` tells whether the jobs of a partition run one after the other.
    """
    notes: list[str] = []
    attempts = _attempts(record_files(perflogs / site), notes)
    runs = []
    for path in sorted((perflogs / "reports").glob("*.json")):
        try:
            run = read_past_run(path, site, attempts)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            notes.append(f"{path}: no readable report, passed over")
            continue
        if run is not None:
            runs.append(run)
    return PastRuns(runs=without_waiting(runs, serial), notes=tuple(notes))


def _attempts(paths: Iterable[Path], notes: list[str]) -> Mapping[tuple[str, str], tuple[int, ...]]:
    """Return the attempts of each leg by run and job; nothing of jobs that did not end well."""
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    spoiled = set()
    for path in paths:
        try:
            for record in read_records(path, on_torn=notes.append):
                if record.get("kind") != "leg":
                    continue
                job = (str(record.get("run_id")), str(record.get("job_id")))
                attempts = int(record.get("attempts") or 0)
                if not attempts and record.get("verdict") != "MISSING":
                    continue  # what is judged across legs runs nothing of its own
                found[job] = (*found.get(job, ()), attempts)
                is_over = record.get("job_state") in _ENDED_WELL
                if record.get("verdict") == "MISSING" or not is_over:
                    spoiled.add(job)
        except (ValueError, TypeError, OverflowError, OSError) as error:
            notes.append(f"passed over: {error}")
    return {job: each for job, each in found.items() if job not in spoiled and all(each)}


def read_past_run(
    path: Path, site: str, attempts: Mapping[tuple[str, str], tuple[int, ...]]
) -> PastRun | None:
    """Return the run of a report, None where it is another site's or submitted nothing.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the report is damaged.
        OSError: it cannot be read.
    """
    report = read_json(path)
    cases = [case for run in report["runs"] for case in run["testcases"]]
    ours = [case for case in cases if case["system"] == site and _has_run(case)]
    jobs = tuple(_past_job(path.stem, case, attempts) for case in ours if "fabric" in case)
    if not jobs:
        return None
    builds = {
        str(case["environ"]): float(case["job_completion_time_unix"] - case["job_submit_time"])
        for case in ours
        if case.get("fixture")
    }
    seconds = float(report["session_info"]["time_elapsed"])
    return PastRun(run_id=path.stem, seconds=seconds, builds=builds, jobs=jobs)


def _has_run(case: Mapping[str, Any]) -> bool:
    """Tell whether a test case of a report had a job that ended."""
    return bool(case.get("job_submit_time") and case.get("job_completion_time_unix"))


def _past_job(
    run_id: str, case: Mapping[str, Any], attempts: Mapping[tuple[str, str], tuple[int, ...]]
) -> PastJob:
    job_id = str(case["jobid"])
    submitted, ended = float(case["job_submit_time"]), float(case["job_completion_time_unix"])
    return PastJob(
        run_id=run_id,
        key=key_of(case),
        suite=str(case["suite"]),
        job_id=job_id,
        submitted=submitted,
        ended=ended,
        nodes=len(case.get("job_nodelist") or []) or 1,
        attempts=attempts.get((run_id, job_id), ()),
        seconds=max(0.0, ended - submitted),
    )


def without_waiting(runs: Sequence[PastRun], serial: Callable[[str], bool]) -> tuple[PastRun, ...]:
    """Return the runs with the queue taken out of their jobs' seconds, where that is possible.

    Neither ReFrame nor our records say when a job started.  Where jobs run one after the other, a
    job cannot have started before the one ahead of it ended, over all runs of the site; what is
    left of the scheduler's own pause stays in, because the next run will have it too.
    """
    ahead: dict[str, float] = {}
    seconds: dict[tuple[str, str], float] = {}
    everything = (job for run in runs for job in run.jobs)
    for job in sorted(everything, key=lambda each: each.ended):
        partition = job.key[2]
        start = (
            max(job.submitted, ahead.get(partition, 0.0)) if serial(partition) else job.submitted
        )
        seconds[job.run_id, job.job_id] = max(0.0, job.ended - start)
        ahead[partition] = job.ended
    return tuple(
        replace(
            run,
            jobs=tuple(replace(job, seconds=seconds[run.run_id, job.job_id]) for job in run.jobs),
        )
        for run in runs
    )


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


def learn(history: PastRuns, cases: Iterable[Case], *, serial: bool) -> Lessons:
    """Return what the past jobs teach about ``cases``.

    Only jobs whose case is still planned and whose legs all ended well teach anything.

    ``serial``: the jobs ran one after the other, so that what a run took beside them is known.
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


def session_overheads(history: PastRuns) -> list[float]:
    """Return for each past run how much longer it took than its jobs, in seconds."""
    return [
        max(
            0.0,
            run.seconds
            - max(job.ended for job in run.jobs)
            + min(job.submitted for job in run.jobs),
        )
        for run in history.runs
        if not any(seconds > 60 for seconds in run.builds.values())
    ]
