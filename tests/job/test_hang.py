"""A program that printed everything and did not end says nothing of the fabric, and passes nothing.

In trials ``srun --mpi=pmix`` with Open MPI's pml/ucx hung so at its end in 5 to 15 % of starts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg
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


HALF = "\n".join(PUT_BW.splitlines()[:12]) + "\n"


@pytest.mark.parametrize(
    ("leg", "text", "ended", "said", "is_finalize"),
    [
        # a launcher that outlives its ranks is told from a rank that hangs
        (LEG, PUT_BW, (0, 0), "every rank ended, the launcher did not", False),
        (LEG, HALF, (None, None),
            "ended at its time limit; message sizes 1B to 4MiB (23) were asked for, got", False),
        (LEG, slower(PUT_BW, 2), (None, None), "", True),  # does not become red
        (make_leg(suite="perftest"), PUT_BW, (None, None), "", False),  # is no MPI
    ],
)  # fmt: skip
def test_what_is_another_hang_is_told_apart(
    tmp_path: Path, leg: Leg, text: str, ended: tuple[int | None, ...], said: str,
    is_finalize: bool,
) -> None:  # fmt: skip
    leave(tmp_path, leg, text, status="124\n", ranks=_ranks(*ended))
    outcome = judge_leg(tmp_path, leg)
    assert outcome.report.verdict is Verdict.MISSING
    assert said in _reason(outcome)
    assert ("MPI_Finalize" in _reason(outcome)) is is_finalize
