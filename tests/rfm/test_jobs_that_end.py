"""A job that did not end well is never green, whatever the scheduler knows of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from reframe_sessions import HouseRun

from fabricproof.core.records import read_records
from fabricproof.job.job_end import SchedulerSays
from fabricproof.rfm import ending
from fabricproof.rfm.slurm_nodes import ask_job

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("check", ["QueuedWell", "QueuedAndForgotten"])
def test_without_accounting_what_went_well_is_green(queue: HouseRun, check: str) -> None:
    leg = queue.leg(check)
    assert (leg["verdict"], leg["reason"]) == ("PASS", "")
    assert queue.case(check)["result"] == "pass"
    (line,) = [
        each
        for path in queue.project.glob("perflogs/traps/node/*.jsonl")
        for each in read_records(path)
        if each["check"] == check and each["kind"] == "leg"
    ]
    assert line["job_end"]["status"] == 0
    assert line["job_end"]["job_id"] == line["job_id"]
    assert len(line["job_end"]["nodes"]) == 1


@pytest.mark.parametrize(
    ("check", "verdict", "said"),
    [
        ("QueuedAndKilledAtItsEnd", "MISSING", "it left no job_end; the scheduler says FAILED"),
        ("QueuedAndEndedBySignal", "MISSING", "the job ended before its last command"),
        ("QueuedAndFailsAtItsEnd", "MISSING", "with exit status 3"),
        ("QueuedAndNeverStarted", "MISSING", "with exit status 1; the scheduler says FAILED"),
    ],
)
def test_what_did_not_end_well_is_never_green(
    queue: HouseRun, check: str, verdict: str, said: str
) -> None:
    leg = queue.leg(check)
    assert leg["verdict"] == verdict
    assert said in leg["reason"]
    assert queue.case(check)["result"] == "fail"


def test_a_job_that_loads_nothing_says_its_last_words(queue: HouseRun) -> None:
    assert "never started" in queue.leg("QueuedAndNeverStarted")["reason"]
    assert queue.leg("QueuedAndNeverStarted")["reason"].endswith("no such module")


class _Job:
    """What ReFrame's job shows to :func:`ending.settle`."""

    def __init__(self) -> None:
        self.jobid, self.stderr, self.state = "7", "rfm_job.err", "COMPLETED"
        self.exitcode: int | None = None
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


def test_a_job_that_still_runs_is_no_end_and_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ReFrame takes a job for ended where squeue failed once."""
    monkeypatch.setattr(ending, "FILE_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(ending, "ask_job", lambda _: SchedulerSays(state="RUNNING"))
    job = _Job()
    end, doubt, says = ending.settle(job, tmp_path, "squeue")  # type: ignore[arg-type]
    assert end is None
    assert doubt is not None
    assert "has not ended: the scheduler says RUNNING" in doubt.reason
    assert job.cancelled
    assert job.exitcode is None
    assert says.state == "RUNNING"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("completed", SchedulerSays(state="COMPLETED", exit_status=0, nodes=("vc1", "vc2"))),
        ("failed", SchedulerSays(state="FAILED", exit_status=3, nodes=("vc1",))),
        ("killed", SchedulerSays(state="FAILED", exit_status=9, nodes=("vc1",))),
        ("cancelled", SchedulerSays(state="CANCELLED", exit_status=15, nodes=("vc1",))),
        ("running", SchedulerSays(state="RUNNING", exit_status=0, nodes=("vc1",))),
    ],
)
def test_what_a_real_controller_says_of_a_job(
    name: str, says: SchedulerSays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = DATA / "slurm" / "job_ends" / f"{name}.txt"
    _scontrol(tmp_path, f"cat {answer}", monkeypatch)
    assert ask_job("7") == says


@pytest.mark.parametrize(
    "body", ["exit 1", "true", "echo Invalid job id specified >&2; exit 1", "echo JobState="]
)
def test_a_job_that_the_controller_forgot_is_unknown(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _scontrol(tmp_path, body, monkeypatch)
    assert ask_job("7") == SchedulerSays()


def _scontrol(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "scontrol"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
