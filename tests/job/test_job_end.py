"""The file of a job's end: whole or nothing; without it no leg of the job is green."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.measure import Verdict, worst
from fabricproof.job.evidence.leg_folder import parse_rank
from fabricproof.job.job_end import (
    REACHED_END,
    RECORD_END,
    JobEnd,
    SchedulerSays,
    find_doubt,
    find_strangers,
    read_end,
)
from fabricproof.job.judge import of_doubt
from fabricproof.job.outcome import Attempt, Outcome
from fabricproof.job.script import JOB_END_FILE
from fabricproof.verdict.objections import Objection, ObjectionKind
from fabricproof.verdict.value import Judgement, Report
from leg_folders import make_leg, rank_text

_WELL = JobEnd(job_id="7", nodes=("vc1", "vc2"), reached=True, status=0)


def _run(folder: Path, *body: str, **variables: str) -> JobEnd | None:
    script = folder / "job.sh"
    script.write_text("\n".join(["#!/bin/bash", RECORD_END, *body]))
    subprocess.run(
        ["bash", script.name],
        cwd=folder,
        check=False,
        timeout=20,
        env={"PATH": "/usr/bin:/bin", **variables},
        stderr=subprocess.DEVNULL,
    )
    return read_end(folder)


def test_a_job_that_came_to_its_end_says_all_of_it(tmp_path: Path) -> None:
    end = _run(tmp_path, "cd /", REACHED_END, SLURM_JOB_ID="7", SLURM_JOB_NODELIST="vc[1-2]")
    assert end is not None
    assert (end.job_id, end.nodes, end.reached, end.status) == ("7", ("vc1", "vc2"), True, 0)
    assert find_doubt(end, "7", SchedulerSays()) is None


def test_a_job_that_was_submitted_with_nothing_exported_starts_its_ranks_with_all(
    tmp_path: Path,
) -> None:
    """Of ``--export=NONE`` sbatch makes SLURM_EXPORT_ENV=NONE, which each srun of the job obeys."""
    _run(tmp_path, "env >seen", REACHED_END, SLURM_EXPORT_ENV="NONE")
    assert "SLURM_EXPORT_ENV=ALL" in (tmp_path / "seen").read_text().splitlines()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (["exit 3", REACHED_END], 3),
        (["set -e", "false", REACHED_END], 1),
        (["trap 'exit 5' ERR", "false", REACHED_END], 5),
        (["true", "kill -TERM $$", REACHED_END], None),
        (["true", "kill -INT $$", "kill -HUP $$", REACHED_END], None),
    ],
)
def test_what_ends_a_job_before_its_last_command_is_no_end(
    tmp_path: Path, body: list[str], status: int | None
) -> None:
    """Bash's status of a job that a signal ended may be 0: it decides nothing."""
    end = _run(tmp_path, *body)
    assert end is not None
    assert not end.reached
    assert status in {None, end.status}
    doubt = find_doubt(end, "7", SchedulerSays())
    assert doubt is not None
    assert doubt.kind is ObjectionKind.JOB_CUT_OFF


def test_a_killed_job_leaves_nothing_not_even_what_lay_there_before(tmp_path: Path) -> None:
    (tmp_path / JOB_END_FILE).write_text("job 7\nnodes x\nreached yes\nstatus 0\n")
    assert read_end(tmp_path) is not None
    assert _run(tmp_path, "kill -9 $$", REACHED_END) is None


@given(st.integers(min_value=0, max_value=70))
def test_a_torn_file_is_none(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    folder = tmp_path_factory.mktemp("torn")
    whole = "job 7\nnodes vc[1-2]\nreached yes\nstatus 0\n"
    (folder / JOB_END_FILE).write_text(whole[:length])
    assert read_end(folder) == (_WELL if length >= len(whole) else None)


def test_the_file_of_another_job_is_none() -> None:
    doubt = find_doubt(_WELL, "8", SchedulerSays(state="COMPLETED", exit_status=0))
    assert doubt is not None
    assert doubt.kind is ObjectionKind.JOB_CUT_OFF


@given(reached=st.booleans(), status=st.sampled_from([0, 1, 143]))
def test_only_who_came_to_the_last_command_ended_well(*, reached: bool, status: int) -> None:
    doubt = find_doubt(replace(_WELL, reached=reached, status=status), "7", SchedulerSays())
    assert (doubt is None) == (reached and status == 0)


def _outcome(*verdicts: Verdict) -> Outcome:
    quantities = tuple(
        Judgement(
            name=f"bandwidth_{number}", value=1.0, unit="MB/s", message_size=1, verdict=verdict,
            reason="",
        )
        for number, verdict in enumerate(verdicts)
    )  # fmt: skip
    report = Report(verdict=worst(verdicts), quantities=quantities)
    attempt = Attempt(number=1, folder=Path(), status=0, table=None, ranks=(), report=report)
    return Outcome(leg=make_leg(), attempts=(attempt,), report=report)


def test_a_folder_that_the_nodes_do_not_see_is_asked_about() -> None:
    """Slurm 22.05 ended seven jobs whose folder lay below /tmp of the login node so: 0:53."""
    says = SchedulerSays(state="FAILED", exit_status=53)
    doubt = find_doubt(None, job_id="7", says=says, last_words="")
    assert doubt is not None
    assert "do all nodes see this folder" in doubt.reason
    other = find_doubt(None, job_id="7", says=replace(says, exit_status=1), last_words="")
    assert other is not None
    assert "do all nodes see" not in other.reason


_NOT_ENDED = Objection(kind=ObjectionKind.JOB_CUT_OFF, reason="the job did not come to its end")
_ELSEWHERE = Objection(kind=ObjectionKind.STRANGE_NODES, reason="its ranks ran elsewhere")


def with_doubt(outcomes: Sequence[Outcome], doubt: Objection) -> list[Outcome]:
    """Return the rows of a job after what is wrong with its end."""
    told = any(each.report.verdict is Verdict.MISSING for each in outcomes)
    return [each.objected(of_doubt(each, doubt, told=told)) for each in outcomes]


@given(
    st.lists(st.lists(st.sampled_from(Verdict), min_size=1, max_size=3), min_size=1, max_size=4),
    st.sampled_from([_NOT_ENDED, _ELSEWHERE]),
)
def test_a_job_in_doubt_is_never_green_and_nothing_red_is_milder(
    legs: list[list[Verdict]], doubt: Objection
) -> None:
    before = [_outcome(*verdicts) for verdicts in legs]
    after = with_doubt(before, doubt)
    verdicts = [each.report.verdict for each in after]
    if any(Verdict.PASS in verdicts for verdicts in legs):
        assert worst(verdicts) is not Verdict.PASS
    for old, new in zip(before, after, strict=True):
        assert worst([old.report.verdict, new.report.verdict]) is new.report.verdict
        assert new.counted is not None  # its judgements are still those of its attempt


def test_a_leg_that_ended_stands_where_another_tells_that_the_job_was_cut() -> None:
    after = with_doubt([_outcome(Verdict.PASS), _outcome(Verdict.MISSING)], _NOT_ENDED)
    assert [each.report.verdict for each in after] == [Verdict.PASS, Verdict.MISSING]
    after = with_doubt([_outcome(Verdict.PASS), _outcome(Verdict.FAIL)], _NOT_ENDED)
    assert [each.report.verdict for each in after] == [Verdict.MISSING, Verdict.FAIL]
    assert after[0].report.quantities[0].value is None


@pytest.mark.parametrize(
    ("nodes", "strange"),
    [
        (("vc1", "vc2"), ""),
        (("vc1.example", "vc2"), ""),
        (("vc2", "vc2"), ""),
        (("vc1", "vc9"), "vc9"),
    ],
)
def test_ranks_on_nodes_that_the_job_did_not_have_are_no_pass(
    nodes: tuple[str, str], strange: str
) -> None:
    ranks = tuple(
        parse_rank(rank_text(number, sent=1, received=1, node=node), f"rank.{number}")
        for number, node in enumerate(nodes)
    )
    before = _outcome(Verdict.PASS, Verdict.FAIL)
    (attempt,) = before.attempts
    before = replace(before, attempts=(replace(attempt, ranks=ranks),))
    doubt = find_strangers(_WELL, [before])
    assert find_strangers(None, [before]) is None
    assert find_strangers(replace(_WELL, nodes=()), [before]) is None
    assert (doubt is None) == (not strange)
    if doubt is not None:
        assert doubt.reason == f"the job had vc1, vc2, and its ranks say that they ran on {strange}"
        (after,) = with_doubt([before], doubt)
        assert [each.verdict for each in after.report.quantities] == [
            Verdict.UNJUDGED,
            Verdict.FAIL,
        ]
