"""A program that printed everything and did not end says nothing of the fabric, and passes nothing.

In trials ``srun --mpi=pmix`` with Open MPI's pml/ucx hung so at its end in 5 to 15 % of starts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict, texts_of
from fabricproof.job.outcome import Outcome, judge_leg, needs_second_look
from leg_folders import PUT_BW, PUT_BW_SENT, leave, make_leg, rank_text, slower

LEG = make_leg()


def _ranks(*statuses: int | None) -> tuple[str, ...]:
    return tuple(
        rank_text(
            rank,
            sent=PUT_BW_SENT if rank == 0 else 0,
            received=0 if rank == 0 else PUT_BW_SENT,
            status=status,
        )
        for rank, status in enumerate(statuses)
    )


def _reason(outcome: Outcome) -> str:
    return outcome.report.quantities[0].reason


@pytest.mark.parametrize("status", ["124", "137"])
@pytest.mark.parametrize("ended", [(None, None), (0, None), (143, 143)])
def test_a_hang_after_the_whole_table_is_missing_and_looked_at_again(
    tmp_path: Path, status: str, ended: tuple[int | None, ...]
) -> None:
    leave(tmp_path, LEG, status=f"{status}\n", ranks=_ranks(*ended))
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.MISSING
    assert needs_second_look(outcome)
    assert "MPI_Finalize had not returned, which says nothing of the fabric" in _reason(outcome)
    assert 'launcher = "mpirun"' in _reason(outcome)


def test_a_launcher_that_outlives_its_ranks_is_told_from_a_rank_that_hangs(tmp_path: Path) -> None:
    leave(tmp_path, LEG, status="124\n", ranks=_ranks(0, 0))
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.MISSING
    assert "every rank ended, the launcher did not" in _reason(outcome)


def test_a_hang_at_every_look_stays_missing_and_is_no_fail(tmp_path: Path) -> None:
    for attempt in (1, 2):
        leave(tmp_path, LEG, attempt=attempt, status="124\n", ranks=_ranks(None, None))
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING


def test_a_hang_that_the_second_look_does_not_find_is_gone_and_said(tmp_path: Path) -> None:
    leave(tmp_path, LEG, status="124\n", ranks=_ranks(None, None))
    leave(tmp_path, LEG, attempt=2)
    report = judge_leg(tmp_path, LEG).report
    assert report.verdict is Verdict.PASS
    assert "the first said MISSING" in texts_of(report.findings)[0]
    assert "MPI_Finalize" in texts_of(report.findings)[0]


def test_a_hang_in_the_middle_is_no_hang_at_the_end(tmp_path: Path) -> None:
    half = "\n".join(PUT_BW.splitlines()[:12]) + "\n"
    leave(tmp_path, LEG, half, status="124\n", ranks=_ranks(None, None))
    reason = _reason(judge_leg(tmp_path, LEG))
    assert "ended at its time limit; message sizes 1B to 4MiB (23) were asked for, got" in reason
    assert "MPI_Finalize" not in reason


def test_a_slow_table_does_not_become_red_by_a_hang(tmp_path: Path) -> None:
    leave(tmp_path, LEG, slower(PUT_BW, 2), status="137\n", ranks=_ranks(None, None))
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING


def test_what_is_no_mpi_has_no_finalize(tmp_path: Path) -> None:
    leg = make_leg(suite="perftest")
    leave(tmp_path, leg, status="124\n", ranks=_ranks(None, None))
    assert "MPI_Finalize" not in _reason(judge_leg(tmp_path, leg))
