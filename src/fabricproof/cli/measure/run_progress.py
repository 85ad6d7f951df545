"""How far a run is: what runs now, how many jobs are over, what is red so far, how long still."""

from __future__ import annotations

import contextlib
import os
import re
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
from fabricproof.core.units import counted, duration
from fabricproof.job.run import LISTENS_VARIABLE, JobEvent, heard
from fabricproof.nodes import slurm
from fabricproof.report.red import held
from fabricproof.report.text.terminal import STYLES
from fabricproof.site import Site

#: how often the scheduler is asked where the jobs are, and how long it may take, in seconds
ASK_EVERY_SECONDS = 5.0
ASK_PATIENCE_SECONDS = 3.0

#: jobs that are shown at once
JOBS_SHOWN = 4

#: how ReFrame says that a test case is over: ``[       OK ] ( 1/9) Name /hash @site:part+stack``
_OVER = re.compile(
    r"\[ +[A-Z]+ \] \( *(?P<nth>\d+)/(?P<total>\d+)\) .* /(?P<hash>\w+) @(?P<where>\S+)"
)

_GREEN = frozenset({Verdict.PASS, Verdict.SKIPPED})


@dataclass(kw_only=True)
class _Job:
    name: str
    limit_seconds: float
    folder: str  # where the job is submitted
    job_id: str = ""
    submitted: float | None = None
    waits: str = ""
    nodes: tuple[str, ...] = ()
    verdicts: list[tuple[Verdict, str]] = field(default_factory=list)
    over: bool = False

    def __str__(self) -> str:
        return f"{self.name} on {fold(self.nodes)}" if self.nodes else self.name


class Progress:
    """Keeps ReFrame's lines and shows how far it is; quiet, it only keeps them.

    On a terminal some lines are live; elsewhere there is one line when the first job is submitted
    and one when a job is over.  With ``verbose`` ReFrame's own lines are shown as well.
    """

    def __init__(
        self, *, quiet: bool, verbose: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.lines: list[str] = []
        self.quiet = quiet
        self.verbose = verbose
        self._clock = clock
        self._site_name = ""
        self._environment: dict[str, str] = {}
        #: by hash of the check and ``site:partition+stack``, as ReFrame's lines name it
        self._jobs: dict[tuple[str, str], _Job] = {}
        self._by_case: dict[tuple[str, str, str], _Job] = {}
        self._ended = self._total = 0  # test cases, those that were skipped included
        self._begun: float | None = None
        self._asked = self._last_over = 0.0
        self._live = False

    @contextlib.contextmanager
    def following(self, site: Site, environment: dict[str, str]) -> Iterator[None]:
        """Have the checks of ReFrame's ``environment`` tell of their jobs, and show it."""
        self._site_name, self._environment = site.name, environment
        live: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
        if not self.quiet:
            environment[LISTENS_VARIABLE] = "1"
            console = HonestConsole()
            self._live = console.is_terminal and not console.is_dumb_terminal
            if self._live:
                live = Live(
                    get_renderable=self._screen,
                    console=console,
                    refresh_per_second=1,
                    transient=True,
                )
        with live:
            yield

    def line(self, text: str) -> None:
        """Take one line of ReFrame's output."""
        if event := heard(text):
            # What shows how far a run is may not end it.
            with contextlib.suppress(KeyError, TypeError, ValueError, FabricproofError):
                self._take(*event)
            return
        self.lines.append(text)
        is_trace = text.endswith("Traceback (most recent call last):")
        is_wrong = "WARNING" in text or ("ERROR" in text and not is_trace)
        if self.verbose or text.startswith("[    BUILD ]") or is_wrong:
            self._echo(text)
        if over := _OVER.match(text):
            self._ended, self._total = int(over["nth"]), int(over["total"])
            job = self._jobs.get((over["hash"], over["where"].removesuffix(":")))
            if job is not None and not job.over:
                job.over, self._last_over = True, self._clock()
                self._say_over(job)

    def _take(self, event: JobEvent, facts: Mapping[str, Any]) -> None:
        partition, stack = str(facts["partition"]), str(facts["environ"])
        case = (str(facts["unique_name"]), partition, stack)
        if event is JobEvent.PLANNED:
            job = _Job(
                name=f"{facts['name']} ({facts['program']}) {stack}, {partition}",
                limit_seconds=float(facts["time_limit"]),
                folder=str(facts["stagedir"]),
            )
            self._by_case[case] = job
            self._jobs[facts["hashcode"], f"{self._site_name}:{partition}+{stack}"] = job
        elif event is JobEvent.SUBMITTED:
            self._by_case[case].submitted = self._clock()
            if self._begun is None:
                self._begun = self._clock()
                log = self._environment.get("FABRICPROOF_REFRAME_LOG", "its log")
                jobs = counted(self._num_jobs, "job")
                self._echo(f"{jobs}; the lines of ReFrame: {log}")
        else:
            job = self._by_case[case]
            job.nodes = tuple(facts["nodes"])
            job.verdicts = [(Verdict(verdict), name) for name, verdict, _ in facts["legs"]]
            for name, verdict, reason in facts["legs"] if self._live else ():
                if Verdict(verdict) not in _GREEN:
                    self._echo(f"{verdict:<9}{job}, {name}: {held(reason)}")

    @property
    def _num_over(self) -> int:
        return sum(job.over for job in self._jobs.values())

    @property
    def _num_jobs(self) -> int:
        """Jobs at most: of what is not over yet, some may still be skipped."""
        return max(len(self._jobs), self._num_over + self._total - self._ended)

    def _say_over(self, job: _Job) -> None:
        if self._live:
            return
        green = sum(verdict is Verdict.PASS for verdict, _ in job.verdicts)
        red = [
            f"{verdict} {', '.join(names)}"
            for verdict in BADNESS
            if verdict not in _GREEN
            and (names := [name for each, name in job.verdicts if each is verdict])
        ]
        said = "; ".join(filter(None, (f"{green} PASS" if green else "", ", ".join(red))))
        self._echo(f"{self._count()}: {job}: {said or 'left no record'}{self._left()}")

    def _count(self) -> str:
        return f"{self._num_over} of {counted(self._num_jobs, 'job')}"

    def _left(self) -> str:
        """Return how long it still takes at the pace so far; empty before a job is over."""
        over = self._num_over
        if not over or self._begun is None:
            return ""
        left = (self._last_over - self._begun) / over * (self._num_jobs - over)
        return f", about {duration(left)} left"

    def _screen(self) -> Text:
        if self._begun is None:
            return Text("ReFrame loads the checks ...", style="dim")
        # Those that wait last; without an answer of the scheduler the oldest first.
        now = [job for job in self._jobs.values() if job.submitted is not None and not job.over]
        now.sort(key=lambda job: (bool(job.waits), job.submitted))
        self._ask_where(now)
        lines = []
        for job in [each for each in now if not each.waits][:JOBS_SHOWN]:
            # A job that waits for another has run no longer than since that was over.
            took = self._clock() - max(job.submitted or 0.0, self._last_over)
            number = f"job {job.job_id}, " if job.job_id else ""
            most = duration(job.limit_seconds)
            lines.append(Text(f"now  {job}: {number}{duration(took)} of at most {most}"))
        if more := len(now) - len(lines):
            why = ", ".join(dict.fromkeys(job.waits for job in now if job.waits))
            lines.append(Text(f"     {more} more submitted" + (f": {why}" if why else "")))
        counts = Counter(verdict for job in self._jobs.values() for verdict, _ in job.verdicts)
        told = Text(f"{self._count()} over{self._left()}; legs: ")
        for verdict in reversed(BADNESS):
            if counts[verdict]:
                told.append(f"{counts[verdict]} {verdict} ", style=STYLES[verdict])
        return Text("\n").join([*lines, told if counts else Text(f"{told.plain}none yet")])

    def _ask_where(self, now: list[_Job]) -> None:
        """Ask the scheduler for the nodes of jobs that have none yet, or why they wait."""
        unknown = {job.folder: job for job in now if not job.nodes}
        if not unknown or self._clock() - self._asked < ASK_EVERY_SECONDS:
            return
        command = ["squeue", "-h", "-u", str(os.getuid()), "-o", "%i|%T|%N|%r|%Z"]
        answer = ""
        with contextlib.suppress(FabricproofError):
            answer = slurm.ask(command, self._environment, seconds=ASK_PATIENCE_SECONDS)
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
