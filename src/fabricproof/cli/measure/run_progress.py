"""How far a run is: what runs now, how many jobs are over, what is red so far, how long still."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import click
from rich.live import Live
from rich.text import Text

from fabricproof.cli.console import HonestConsole
from fabricproof.core.errors import FabricproofError
from fabricproof.core.hostlist import expand, fold
from fabricproof.core.measure import BADNESS, Verdict
from fabricproof.core.units import duration
from fabricproof.history.plan import Case, read_cases
from fabricproof.job.run import LISTENS_VARIABLE, JobEvent, ask, heard
from fabricproof.report.red import held
from fabricproof.report.text.terminal import STYLES
from fabricproof.site import Site

#: how often the scheduler is asked where the jobs are, and how long it may take, in seconds
ASK_EVERY_SECONDS = 5.0
ASK_PATIENCE_SECONDS = 3.0

#: how ReFrame begins what no administrator reads; it stands in its log
TRACE = "Traceback (most recent call last):"

#: jobs that are shown at once
JOBS_SHOWN = 4


@dataclass(kw_only=True)
class _Job:
    case: Case
    program: str
    mark: str  # how a line of ReFrame that ends the test case names it
    folder: str  # where the job is submitted
    job_id: str = ""
    submitted: float | None = None
    waits: str = ""
    nodes: tuple[str, ...] = ()
    verdicts: list[tuple[Verdict, str]] = field(default_factory=list)
    over: bool = False

    @property
    def name(self) -> str:
        case = self.case
        on = f" on {fold(self.nodes)}" if self.nodes else ""
        return f"{case.check} ({self.program}) {case.stack}, {case.partition}{on}"


class Progress:
    """Keeps ReFrame's lines and shows how far it is; quiet, it only keeps them.

    On a terminal some lines are live; elsewhere there is one line when the first job is submitted
    and one when a job is over.  With ``verbose`` ReFrame's own lines are shown as well.
    """

    def __init__(
        self,
        *,
        quiet: bool,
        verbose: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lines: list[str] = []
        self.quiet = quiet
        self.verbose = verbose
        self._clock = clock
        self._site: Site | None = None
        self._environment: dict[str, str] = {}
        self._jobs: dict[tuple[str, str, str], _Job] = {}
        self._begun: float | None = None
        self._asked = 0.0
        self._last_over = 0.0
        self._live = False

    @contextlib.contextmanager
    def following(self, site: Site, environment: dict[str, str]) -> Iterator[None]:
        """Have the checks of ReFrame's ``environment`` tell of their jobs, and show it."""
        self._site, self._environment = site, environment
        if self.quiet:
            yield
            return
        environment[LISTENS_VARIABLE] = "1"
        console = HonestConsole()
        self._live = console.is_terminal and not console.is_dumb_terminal
        if not self._live:
            yield
            return
        with Live(
            get_renderable=self._screen, console=console, refresh_per_second=1, transient=True
        ):
            yield

    def line(self, text: str) -> None:
        """Take one line of ReFrame's output."""
        if event := heard(text):
            self._take(*event)
            return
        self.lines.append(text)
        is_wrong = "WARNING" in text or ("ERROR" in text and not text.endswith(TRACE))
        if self.verbose or text.startswith("[    BUILD ]") or is_wrong:
            self._echo(text)
        for job in self._jobs.values():
            if not job.over and job.mark in text and "] (" in text:
                job.over = True
                self._last_over = self._clock()
                self._say_over(job)

    def _take(self, event: JobEvent, facts: Mapping[str, Any]) -> None:
        # What shows how far a run is may not end it.
        with contextlib.suppress(KeyError, TypeError, ValueError, FabricproofError):
            key = (facts["unique_name"], facts["partition"], facts["environ"])
            if event is JobEvent.PLANNED:
                self._jobs[key] = self._planned(facts)
            elif event is JobEvent.SUBMITTED:
                self._jobs[key].submitted = self._clock()
                if self._begun is None:
                    self._begun = self._clock()
                    self._say_begun()
            else:
                self._jobs[key].nodes = tuple(facts["nodes"])
                self._judged(self._jobs[key], facts["legs"])

    def _planned(self, facts: Mapping[str, Any]) -> _Job:
        assert self._site is not None, "nothing is told before it is followed"
        one_node = [each.name for each in self._site.partitions if each.same_node]
        (case,) = read_cases([facts], one_node)
        return _Job(
            case=case,
            program=str(facts["program"]),
            folder=str(facts["stagedir"]),
            mark=f"/{facts['hashcode']} @{self._site.name}:{case.partition}+{case.stack}",
        )

    def _judged(self, job: _Job, legs: list[list[str]]) -> None:
        job.verdicts = [(Verdict(verdict), name) for name, verdict, _ in legs]
        if not self._live:
            return
        for name, verdict, reason in legs:
            if Verdict(verdict) not in {Verdict.PASS, Verdict.SKIPPED}:
                self._echo(f"{verdict:<9}{job.name}, {name}: {held(reason)}")

    def _say_begun(self) -> None:
        log = self._environment.get("FABRICPROOF_REFRAME_LOG", "its log")
        count = f"{len(self._jobs)} job{'s' * (len(self._jobs) > 1)}"
        self._echo(f"{count}; the lines of ReFrame: {log}, or here with -v")

    def _say_over(self, job: _Job) -> None:
        if not self._live:
            came = ", ".join(
                f"{verdict} {', '.join(names)}" for verdict, names in _red(job.verdicts)
            )
            green = sum(verdict is Verdict.PASS for verdict, _ in job.verdicts)
            said = "; ".join(filter(None, (f"{green} PASS" if green else "", came)))
            self._echo(f"{self._count()}: {job.name}: {said or 'left no record'}{self._left()}")

    def _count(self) -> str:
        jobs = list(self._jobs.values())
        return f"{sum(job.over for job in jobs)} of {len(jobs)} job{'s' * (len(jobs) > 1)}"

    def _left(self) -> str:
        """Return how long it still takes at the pace so far; empty before a job is over."""
        over = sum(job.over for job in self._jobs.values())
        if not over or self._begun is None:
            return ""
        left = (self._last_over - self._begun) / over * (len(self._jobs) - over)
        return f", about {duration(left)} left"

    def _now(self) -> list[_Job]:
        """Return the jobs that run, those that wait last; without an answer the oldest first."""
        jobs = list(self._jobs.values())
        now = [job for job in jobs if job.submitted is not None and not job.over]
        return sorted(now, key=lambda job: (bool(job.waits), job.submitted))

    def _passed(self, job: _Job) -> float:
        """Return for how many seconds a job can have run: where one waits for another, no more."""
        return self._clock() - max(job.submitted or 0.0, self._last_over)

    def _screen(self) -> Text:
        if self._begun is None:
            return Text("ReFrame loads the checks ...", style="dim")
        now = self._now()
        self._ask_where(now)
        lines = [self._line_of(job) for job in now if not job.waits][:JOBS_SHOWN]
        if more := len(now) - len(lines):
            why = ", ".join(dict.fromkeys(job.waits for job in now if job.waits))
            lines.append(Text(f"     {more} more submitted" + (f": {why}" if why else "")))
        counts = Counter(
            verdict for job in list(self._jobs.values()) for verdict, _ in job.verdicts
        )
        told = Text(f"{self._count()} over{self._left()}; legs: ")
        for verdict in reversed(BADNESS):
            if counts[verdict]:
                told.append(f"{counts[verdict]} {verdict} ", style=STYLES[verdict])
        return Text("\n").join([*lines, told if counts else Text(f"{told.plain}none yet")])

    def _line_of(self, job: _Job) -> Text:
        took, of = duration(self._passed(job)), duration(job.case.limit_seconds)
        number = f"job {job.job_id}, " if job.job_id else ""
        return Text(f"now  {job.name}: {number}{took} of at most {of}")

    def _ask_where(self, now: list[_Job]) -> None:
        """Ask the scheduler for the nodes of jobs that have none yet, or why they wait."""
        unknown = {job.folder: job for job in now if not job.nodes}
        if not unknown or self._clock() - self._asked < ASK_EVERY_SECONDS:
            return
        command = ["squeue", "-h", "-u", str(os.getuid()), "-o", "%i|%T|%N|%r|%Z"]
        answer, _ = ask(command, self._environment, ASK_PATIENCE_SECONDS)
        self._asked = self._clock()
        for line in answer.splitlines():
            job_id, state, nodes, reason, folder = [*line.split("|", 4), "", "", "", ""][:5]
            if job := unknown.get(folder):
                job.job_id = job_id
                with contextlib.suppress(FabricproofError):
                    job.nodes = expand(nodes)
                job.waits = f"{state} ({reason})" if state == "PENDING" else ""

    def _echo(self, text: str) -> None:
        if self.quiet:
            return
        try:
            click.echo(text)
        except BrokenPipeError:
            # The jobs run on and the verdict is kept, though nobody reads (run ... | head).
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _red(verdicts: list[tuple[Verdict, str]]) -> Iterator[tuple[Verdict, list[str]]]:
    """Yield the verdicts that are not green, the worst first, each with its legs."""
    for verdict in BADNESS:
        names = [name for each, name in verdicts if each is verdict]
        if names and verdict not in {Verdict.PASS, Verdict.SKIPPED}:
            yield verdict, names
