"""Other jobs on the nodes of a leg are named; what is red beside them is nobody's fault yet."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict, worst
from fabricproof.job.evidence.disturbance import JOBS_FILE, other_jobs_of, read_other_jobs
from fabricproof.job.script import render_script
from fabricproof.verdict.value import Judgement, Report
from leg_folders import make_leg

#: two jobs before ours and ours, as squeue of Slurm 22.05 lists them (virtual cluster)
_ROWS = ("3|root|1795400403|1795400439|vc[1-2]", "4|ann|1795400439|1795400471|vc[1-2]")
_NODES = {"vc1", "vc2"}
_BOB = "job 9 of bob was on vc2 during this leg"


def _jobs(folder: Path, *rows: str, begin: int, end: int, last: str = "answered") -> Path:
    (folder / JOBS_FILE).write_text("\n".join([f"4 {begin} {end}", *rows, last]) + "\n")
    return folder


@pytest.mark.parametrize(
    ("rows", "begin", "end", "nodes", "found"),
    [
        (_ROWS, 1795400430, 1795400445, _NODES, "job 3 of root was on vc1, vc2 during this leg"),
        (_ROWS, 1795400430, 1795400445, {"vc2"}, "job 3 of root was on vc2 during this leg"),
        (_ROWS, 1795400430, 1795400445, {"vc3"}, ""),
        # one that ended or began at that second
        (_ROWS, 1795400439, 1795400445, _NODES, ""),
        (_ROWS, 1795400390, 1795400403, _NODES, ""),
        (("9|bob|1795400403|NONE|vc2",), 1795400500, 1795400510, _NODES, _BOB),
    ],
)
def test_a_job_that_overlaps_is_a_neighbour_and_our_own_is_none(
    tmp_path: Path, rows: tuple[str, ...], begin: int, end: int, nodes: set[str], found: str
) -> None:
    folder = _jobs(tmp_path, *rows, begin=begin, end=end)
    assert read_other_jobs(folder, nodes) == ((found,) if found else ())


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


def beside(report: Report, folder: Path) -> Report:
    objections, notes = other_jobs_of(report, folder, _NODES)
    return report.objected(objections, *notes)


def test_beside_a_job_nothing_is_red_and_nothing_becomes_green(tmp_path: Path) -> None:
    before = _report(*Verdict)
    after = beside(before, _jobs(tmp_path, "9|bob|1|NONE|vc2", begin=2, end=3))
    for old, new in zip(before.quantities, after.quantities, strict=True):
        expected = Verdict.UNJUDGED if old.verdict is Verdict.FAIL else old.verdict
        assert new.disturbance == ("other_job" if new.verdict is not old.verdict else None)
        assert new.verdict is expected
        if old.verdict in {Verdict.FAIL, Verdict.MISSING, Verdict.UNJUDGED}:
            assert _BOB in new.reason
            assert new.reason.endswith(old.reason)
    assert f"disturbed: {_BOB}" in texts_of(after.findings)
    damaged = _report(Verdict.FAIL, unit="1/GB")  # nobody's load
    assert beside(damaged, tmp_path).verdict is Verdict.FAIL


def test_where_nobody_knows_red_stays_red_and_says_so(tmp_path: Path) -> None:
    red = _report(Verdict.FAIL)
    assert other_jobs_of(red, tmp_path, _NODES) == ((), ())  # outside Slurm
    _jobs(tmp_path, begin=2, end=3, last="no answer")
    after = beside(red, tmp_path)
    assert after.verdict is Verdict.FAIL
    assert "not known: whether other jobs" in texts_of(after.findings)[0]
    assert texts_of(beside(_report(Verdict.PASS), tmp_path).findings) == []


@pytest.mark.parametrize(
    ("squeue", "found"),
    [
        ("echo '9|bob|1|NONE|vc[1-2]'", (_BOB,)),
        ("true", ()),
        ("exit 1", None),
        ("echo '9|bob|1|NONE|vc2'; exit 1", None),
    ],
)
def test_the_script_asks_after_each_leg(
    tmp_path: Path, squeue: str, found: tuple[str, ...] | None
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
