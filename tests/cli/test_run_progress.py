"""What ``fabricproof run`` shows while ReFrame runs, from what the checks tell of their jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.cli.measure import run_progress
from fabricproof.cli.measure.run_progress import Progress
from fabricproof.job.run import LISTENS_VARIABLE, JobEvent, heard, tell
from fabricproof.site import load_site

SITE = Path(__file__).parents[2] / "site-configs" / "vcluster"
OVER = "[       OK ] ({nth:2}/{total}) OsuBandwidth %fabric=eth0 /{mark} @vcluster:compute+{stack}"


class Clock:
    """Seconds that a test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Run:
    """A run of some jobs whose checks tell what a test says."""

    def __init__(self, folder: Path, *, verbose: bool = False) -> None:
        self.clock = Clock()
        self.progress = Progress(quiet=False, verbose=verbose, clock=self.clock)
        self.site = load_site(str(SITE))
        self.environment = {"FABRICPROOF_REFRAME_LOG": "logs/id.log", "PATH": ""}
        self.folder = folder
        self.planned = self.ended = self.more = 0

    def tell(self, event: JobEvent, number: int, **facts: object) -> None:
        identity = {"unique_name": f"job{number}", "partition": "compute", "environ": "openmpi5"}
        self.progress.line(json.dumps({"fabricproof_job": event, **identity, **facts}))

    def plan(self, number: int) -> None:
        case = {
            "name": "OsuBandwidth",
            "hashcode": f"{number:08x}",
            "program": "osu_bw",
            "time_limit": 600,
            "stagedir": str(self.folder / str(number)),
        }
        self.planned += 1
        self.tell(JobEvent.PLANNED, number, **case)

    def finish(self, number: int, *verdicts: str) -> None:
        legs = [[f"rail{at}", verdict, "too slow"] for at, verdict in enumerate(verdicts)]
        if legs:
            self.tell(JobEvent.JUDGED, number, legs=legs, nodes=["vc1", "vc2"])
        self.end(number)

    def end(self, number: int, stack: str = "openmpi5") -> None:
        self.ended += 1
        total = self.planned + self.more
        facts = {"nth": self.ended, "total": total, "stack": stack}
        self.progress.line(OVER.format(mark=f"{number:08x}", **facts))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_without_a_terminal_there_is_one_line_a_job_which_names_what_is_red(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with run.progress.following(run.site, run.environment):
        for number in range(3):
            run.plan(number)
        run.more = 1
        run.end(99)  # one that was skipped
        for number, verdicts in enumerate([("PASS", "PASS"), ("PASS", "FAIL"), ()]):
            run.tell(JobEvent.SUBMITTED, number)
            run.clock.now += 10
            run.finish(number, *verdicts)
    begun, *over = capsys.readouterr().out.splitlines()
    assert begun == "3 jobs; the lines of ReFrame: logs/id.log"
    name = "OsuBandwidth (osu_bw) openmpi5, compute"
    assert [line.partition(", about ")[0] for line in over] == [
        f"1 of 3 jobs: {name} on vc[1-2]: 2 PASS",
        f"2 of 3 jobs: {name} on vc[1-2]: 1 PASS; FAIL rail1",
        f"3 of 3 jobs: {name}: left no record",
    ]
    assert over[-1].endswith("about 0 s left")


def test_what_jobs_took_says_how_long_it_still_takes(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with run.progress.following(run.site, run.environment):
        for number in range(400):
            run.plan(number)
        for number in range(200):
            run.tell(JobEvent.SUBMITTED, number)
            run.clock.now += 5
            run.finish(number, "PASS")
    lines = capsys.readouterr().out.splitlines()
    assert "left" not in lines[0]
    assert "200 of 400 jobs" in lines[-1]
    assert "about 17 min left" in lines[-1], "200 jobs of 5 s each"


def test_reframes_own_lines_are_kept_and_shown_with_v_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["[ RUN      ] OsuBandwidth", "[     SKIP ] ( 1/9) x", "WARNING: beware"]
    for verbose, shown in ((False, words[2:]), (True, words)):
        run = Run(tmp_path, verbose=verbose)
        for each in words:
            run.progress.line(each)
        assert capsys.readouterr().out.splitlines() == shown
        assert run.progress.lines == words


def test_a_quiet_run_asks_the_checks_to_tell_nothing(run: Run) -> None:
    run.progress.quiet = True
    with run.progress.following(run.site, run.environment):
        assert LISTENS_VARIABLE not in run.environment


def test_the_terminal_shows_what_runs_where_and_what_is_red(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def squeue(command: list[str], *_: Any, **__: Any) -> str:
        asked.append(command)
        rows = [f"41|RUNNING|vc[3-4]|None|{run.folder}/1", f"42|PENDING||Resources|{run.folder}/2"]
        return "\n".join([*rows, "7|RUNNING|vc9|None|/of/another", "what is this"])

    monkeypatch.setattr(run_progress.slurm, "ask", squeue)
    with run.progress.following(run.site, run.environment):
        run.progress._live = True
        assert "loads the checks" in run.progress._screen().plain
        run.clock.now = 10
        for number in range(3):
            run.plan(number)
            run.tell(JobEvent.SUBMITTED, number)
        run.finish(0, "INVALID", "PASS")
        first, second, told = run.progress._screen().plain.splitlines()
        run.progress._screen()
    assert len(asked) == 1, "not more often than every few seconds"
    assert first.startswith("now  OsuBandwidth (osu_bw) openmpi5, compute on vc[3-4]: job 41, 0 s")
    assert second == "     1 more submitted: PENDING (Resources)"
    assert told.startswith("1 of 3 jobs over, about 0 s left; legs: 1 PASS 1 INVALID")
    out = capsys.readouterr().out
    assert "INVALID  OsuBandwidth (osu_bw) openmpi5, compute on vc[1-2], rail0: too slow" in out


def test_how_long_it_still_takes_does_not_grow_while_a_job_runs(run: Run) -> None:
    with run.progress.following(run.site, run.environment):
        for number in range(100):
            run.plan(number)
        run.tell(JobEvent.SUBMITTED, 0)
        run.clock.now += 100
        run.finish(0, "PASS")
        run.tell(JobEvent.SUBMITTED, 1)
        said = run.progress._left()
        run.clock.now += 1000
    assert said == ", about 2 h 45 min left", "99 jobs of 100 s"
    assert run.progress._left() == said, "a stalled job says nothing of the others"


@pytest.mark.parametrize(
    "line",
    [
        '{"fabricproof_job": "judged"}',
        '{"fabricproof_job": "planned", "unique_name": 1, "partition": [], "environ": null}',
        '{"fabricproof_job": "submitted", "unique_name": "?", "partition": "", "environ": ""}',
        '{"fabricproof_job": "later than this version"}',
        '{"fabricproof_job": ',
    ],
)
def test_an_event_that_is_damaged_ends_no_run(run: Run, line: str) -> None:
    with run.progress.following(run.site, run.environment):
        run.progress.line(line)
    assert run.progress._jobs == {}


def test_events_are_told_only_where_somebody_listens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LISTENS_VARIABLE, raising=False)
    tell(JobEvent.JUDGED, {"legs": []})
    assert capsys.readouterr().out == ""
    monkeypatch.setenv(LISTENS_VARIABLE, "1")
    tell(JobEvent.JUDGED, {"legs": []})
    assert heard(capsys.readouterr().out) == (JobEvent.JUDGED, {"legs": []})


def test_that_nobody_reads_any_more_fails_no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def write(self, _: str) -> Callable[..., None]:
            raise BrokenPipeError

    monkeypatch.setenv(LISTENS_VARIABLE, "1")
    monkeypatch.setattr("sys.stdout", Gone())
    tell(JobEvent.JUDGED, {})


def test_the_end_of_one_stacks_job_is_not_that_of_another_whose_name_begins_so(run: Run) -> None:
    with run.progress.following(run.site, run.environment):
        run.plan(1)
        run.tell(JobEvent.SUBMITTED, 1)
        run.end(1, stack="openmpi52")
        assert run.progress._num_over == 0
        run.end(1)
    assert run.progress._num_over == 1


def test_jobs_that_are_planned_later_are_counted_from_the_first_end_on(run: Run) -> None:
    """Jobs of a stack that is still to be built: 19 became 39, and four minutes eight."""
    with run.progress.following(run.site, run.environment):
        for number in range(2):
            run.plan(number)
        run.more = 8
        run.tell(JobEvent.SUBMITTED, 0)
        run.clock.now += 10
        run.finish(0, "PASS")
    assert run.progress._count() == "1 of 10 jobs"
    assert run.progress._left() == ", about 90 s left"
