"""Other jobs on the nodes of a leg are named; what is red beside them is nobody's fault yet."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict, worst
from fabricproof.job.evidence.disturbance import (
    JOBS_FILE,
    OtherJob,
    explain_by_other_jobs,
    read_other_jobs,
)
from fabricproof.job.script import render_script
from fabricproof.verdict.value import Judgement, Report
from leg_folders import make_leg

#: two jobs before ours and ours, as squeue of Slurm 22.05 lists them (virtual cluster)
_ROWS = ("3|root|1795400403|1795400439|vc[1-2]", "4|ann|1795400439|1795400471|vc[1-2]")
_NODES = {"vc1", "vc2"}


def _jobs(folder: Path, *rows: str, begin: int, end: int, last: str = "answered") -> Path:
    (folder / JOBS_FILE).write_text("\n".join([f"4 {begin} {end}", *rows, last]) + "\n")
    return folder


def test_a_job_that_overlaps_is_a_neighbour_and_our_own_is_none(tmp_path: Path) -> None:
    folder = _jobs(tmp_path, *_ROWS, begin=1795400430, end=1795400445)
    assert read_other_jobs(folder, _NODES) == (
        OtherJob(job_id="3", user="root", nodes=("vc1", "vc2")),
    )
    assert read_other_jobs(folder, {"vc2"}) == (OtherJob(job_id="3", user="root", nodes=("vc2",)),)
    assert read_other_jobs(folder, {"vc3"}) == ()


@pytest.mark.parametrize(("begin", "end"), [(1795400439, 1795400445), (1795400390, 1795400403)])
def test_one_that_ended_or_began_at_that_second_is_none(
    tmp_path: Path, begin: int, end: int
) -> None:
    assert read_other_jobs(_jobs(tmp_path, *_ROWS, begin=begin, end=end), _NODES) == ()


def test_a_job_without_an_end_runs_on(tmp_path: Path) -> None:
    row = "9|bob|1795400403|NONE|vc2"
    (found,) = read_other_jobs(_jobs(tmp_path, row, begin=1795400500, end=1795400510), _NODES) or ()
    assert str(found) == "job 9 of bob was on vc2 during this leg"


@pytest.mark.parametrize(
    "text", ["", "4 1", "4 1 2\n", "4 1 2\n3|root|1|2\nanswered", "x\nanswered"]
)
def test_what_squeue_did_not_say_is_unknown(tmp_path: Path, text: str) -> None:
    (tmp_path / JOBS_FILE).write_text(text)
    assert read_other_jobs(tmp_path, _NODES) is None
    assert read_other_jobs(tmp_path / "gone", _NODES) is None


def _report(*verdicts: Verdict, unit: str = "MB/s") -> Report:
    quantities = tuple(
        Judgement(
            name=f"q{number}",
            value=1.0,
            unit=unit,
            message_size=None,
            verdict=verdict,
            reason="60.0 % of 17.65",
        )
        for number, verdict in enumerate(verdicts)
    )
    return Report(verdict=worst(verdicts), quantities=quantities)


_OTHER = OtherJob(job_id="9", user="bob", nodes=("vc2",))


def beside(report: Report, found: tuple[OtherJob, ...] | None) -> Report:
    objections, notes = explain_by_other_jobs(report, found)
    return report.objected(objections, *notes)


@given(st.lists(st.sampled_from(Verdict), min_size=1, max_size=4), st.integers(1, 3))
def test_beside_a_job_nothing_is_red_and_nothing_becomes_green(
    verdicts: list[Verdict], jobs: int
) -> None:
    before = _report(*verdicts)
    after = beside(before, (_OTHER,) * jobs)
    for old, new in zip(before.quantities, after.quantities, strict=True):
        expected = Verdict.UNJUDGED if old.verdict is Verdict.FAIL else old.verdict
        assert new.disturbance == ("other_job" if new.verdict is not old.verdict else None)
        assert new.verdict is expected
        if old.verdict in {Verdict.FAIL, Verdict.MISSING, Verdict.UNJUDGED}:
            assert new.reason.startswith("disturbed: job 9 of bob was on vc2")
            assert new.reason.endswith(old.reason)
    assert "disturbed: job 9 of bob was on vc2 during this leg" in texts_of(after.findings)
    assert explain_by_other_jobs(before, ()) == ((), ())


def test_damage_is_nobodys_load() -> None:
    assert beside(_report(Verdict.FAIL, unit="1/GB"), (_OTHER,)).verdict is Verdict.FAIL


def test_where_nobody_knows_red_stays_red_and_says_so() -> None:
    after = beside(_report(Verdict.FAIL), None)
    assert after.verdict is Verdict.FAIL
    assert "not known: whether other jobs" in texts_of(after.findings)[0]
    assert texts_of(beside(_report(Verdict.PASS), None).findings) == []


@pytest.mark.parametrize(
    ("squeue", "found"),
    [
        ("echo '9|bob|1|NONE|vc[1-2]'", (OtherJob(job_id="9", user="bob", nodes=("vc2",)),)),
        ("true", ()),
        ("exit 1", None),
        ("echo '9|bob|1|NONE|vc2'; exit 1", None),
    ],
)
def test_the_script_asks_after_each_leg(
    tmp_path: Path, squeue: str, found: tuple[OtherJob, ...] | None
) -> None:
    (tmp_path / "bin").mkdir()
    for name, text in (("squeue", squeue), ("rank.sh", 'exec "$@"')):
        folder = tmp_path / "bin" if name == "squeue" else tmp_path
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    leg = make_leg(commands=(("true",),))
    script = render_script([leg], launch="", judge="true", leg_seconds_limit=5, look_seconds=None)
    (tmp_path / "legs.sh").write_text(script)
    environment = {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}/usr/bin:/bin",
        "SLURM_JOB_ID": "4",
        "SLURM_JOB_NODELIST": "vc[1-2]",
    }
    subprocess.run(["bash", "legs.sh"], cwd=tmp_path, env=environment, check=True, timeout=30)
    folder = tmp_path / "legs" / "rail0.1"
    assert (folder / "status").read_text() == "0\n"
    assert read_other_jobs(folder, {"vc2"}) == found
