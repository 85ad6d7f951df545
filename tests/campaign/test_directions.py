"""Both directions of a rail: the slow one is named with its two ends, and never measured twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from leg_folders import PUT_BW, PUT_BW_SENT, leave, make_leg, rank_text, slower

from fabricproof.campaign.all_legs import judge_legs
from fabricproof.campaign.directions import backward, with_directions
from fabricproof.campaign.leg import Leg
from fabricproof.campaign.outcome import Outcome
from fabricproof.campaign.script import render_script
from fabricproof.measure import Verdict

FORTH = make_leg(name="rail0")
BACK = backward(make_leg(name="rail0.back"))

#: rank 0, which sends, on the second node
TURNED = (
    rank_text(0, sent=PUT_BW_SENT, received=0, node="n2"),
    rank_text(1, sent=0, received=PUT_BW_SENT, node="n1"),
)


def _judged(folder: Path, *legs: Leg) -> dict[str, Outcome]:
    return {each.leg.name: each for each in with_directions(judge_legs(folder, legs))}


def test_a_slow_direction_is_named_with_its_ends(tmp_path: Path) -> None:
    leave(tmp_path, FORTH)
    leave(tmp_path, BACK, slower(PUT_BW, 2.0), ranks=TURNED)
    outcomes = _judged(tmp_path, FORTH, BACK)
    assert outcomes["rail0"].report.verdict is Verdict.PASS
    report = outcomes["rail0.back"].report
    assert report.verdict is Verdict.FAIL
    (red,) = [each for each in report.quantities if each.name == "bandwidth_4MiB"]
    assert red.reason.startswith("n2 -> n1 of rail0: ")
    assert ", n1 -> n2: " in red.reason
    assert "n1 receives or n2 sends too little" in red.reason


def test_two_slow_directions_blame_no_end(tmp_path: Path) -> None:
    leave(tmp_path, FORTH, slower(PUT_BW, 2.0))
    leave(tmp_path, BACK, slower(PUT_BW, 2.0), ranks=TURNED)
    for outcome in _judged(tmp_path, FORTH, BACK).values():
        assert outcome.report.verdict is Verdict.FAIL
        assert not any("too little" in each.reason for each in outcome.report.quantities)


def test_the_same_direction_twice_is_invalid(tmp_path: Path) -> None:
    leave(tmp_path, FORTH)
    leave(tmp_path, BACK)
    outcomes = _judged(tmp_path, FORTH, BACK)
    assert outcomes["rail0"].report.verdict is Verdict.PASS
    report = outcomes["rail0.back"].report
    assert report.verdict is Verdict.INVALID
    assert "the other way was not measured" in report.quantities[-1].reason


def test_two_good_directions_are_left_as_they_are(tmp_path: Path) -> None:
    leave(tmp_path, FORTH)
    leave(tmp_path, BACK, ranks=TURNED)
    assert {each.report.verdict for each in _judged(tmp_path, FORTH, BACK).values()} == {
        Verdict.PASS
    }


def test_a_program_without_mpi_changes_roles_and_not_ranks() -> None:
    leg = replace(FORTH, suite="iperf3", program="iperf3", sent_bytes=None)
    turned = backward(leg)
    assert turned.environment["FABRICPROOF_BACKWARD"] == "1"
    assert backward(replace(leg, sent_bytes=(7, 1))).sent_bytes == (1, 7)


def test_ranks_change_places_by_a_host_file_written_backwards() -> None:
    script = render_script(
        [FORTH, BACK], launch="srun -n 2", second_look="true", leg_seconds_limit=9
    )
    forth, back = script.split("leg_rail0_back()")
    assert "backwards.hosts" not in forth
    assert 'scontrol show hostnames "$SLURM_JOB_NODELIST" | tac >backwards.hosts' in back
    assert 'SLURM_HOSTFILE="$here/backwards.hosts"' in back
