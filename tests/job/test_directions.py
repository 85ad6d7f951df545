"""Both directions of a rail: the slow one is named with its two ends, and never measured twice."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg, Traffic
from fabricproof.job.outcome import Outcome
from fabricproof.job.outcomes import against_directions, backward, judge_legs
from fabricproof.job.script import render_script
from fabricproof.rfm.staging import JOB_FILES
from fabricproof.stacks.launch import TURN_FILE, turned_command
from fabricproof.verdict.value import ERROR_UNIT, Judgement
from leg_folders import PUT_BW, PUT_BW_SENT, leave, make_leg, rank_text, slower

FORTH = make_leg(name="rail0")
BACK = backward(make_leg(name="rail0.back"))

#: rank 0, which sends, on the second node
TURNED = (
    rank_text(0, sent=PUT_BW_SENT, received=0, node="n2"),
    rank_text(1, sent=0, received=PUT_BW_SENT, node="n1"),
)


def with_directions(outcomes: Sequence[Outcome]) -> list[Outcome]:
    beside = against_directions(outcomes)
    return [each.objected(beside[each.leg.name]) for each in outcomes]


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


def test_a_size_within_the_curve_alone_blames_no_end(tmp_path: Path) -> None:
    """The largest message is as fast as it should be, both ways: neither end sends too little."""
    lines = PUT_BW.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("262144 "))
    for row in range(at - 3, at + 1):
        size, value = lines[row].split()
        lines[row] = f"{size:<10}{float(value) / 3:18.2f}"
    leave(tmp_path, FORTH, "\n".join(lines) + "\n")
    leave(tmp_path, BACK, ranks=TURNED)
    report = _judged(tmp_path, FORTH, BACK)["rail0"].report
    red = [each for each in report.quantities if each.verdict is Verdict.FAIL]
    assert [each.name for each in red][-1] == "bandwidth_256KiB"
    assert all(each.reason.startswith("n1 -> n2 of rail0: ") for each in red)
    assert not any("too little" in each.reason for each in red)


def test_the_same_direction_twice_is_invalid(tmp_path: Path) -> None:
    leave(tmp_path, FORTH)
    leave(tmp_path, BACK)
    outcomes = _judged(tmp_path, FORTH, BACK)
    assert outcomes["rail0"].report.verdict is Verdict.PASS
    report = outcomes["rail0.back"].report
    assert report.verdict is Verdict.INVALID
    assert "the other way was not measured" in report.quantities[-1].reason


def _disturbed(judgement: Judgement) -> Judgement:
    if judgement.verdict is not Verdict.FAIL:
        return judgement
    return replace(judgement, verdict=Verdict.UNJUDGED, disturbance="starved_cores")


def _in_doubt(folder: Path, change: Callable[[Judgement], Judgement]) -> list[Judgement]:
    """Return what is said of a slow way back whose judgements were changed."""
    leave(folder, FORTH)
    leave(folder, BACK, slower(PUT_BW, 2.0), ranks=TURNED)
    forth, back = judge_legs(folder, [FORTH, BACK])
    report = back.report.with_quantities(map(change, back.report.quantities))
    return list(with_directions([forth, replace(back, report=report)])[1].report.quantities)


def test_a_slow_direction_that_others_disturbed_says_both_and_blames_no_end(tmp_path: Path) -> None:
    found = _in_doubt(tmp_path, _disturbed)
    (red,) = [each for each in found if each.name == "bandwidth_4MiB"]
    assert red.verdict is Verdict.UNJUDGED
    assert red.reason.startswith("n2 -> n1 of rail0: ")
    assert "too little" not in red.reason


def test_errors_name_their_own_ends(tmp_path: Path) -> None:
    said = {"unit": ERROR_UNIT, "reason": "12 of 381796 packets"}
    found = _in_doubt(tmp_path, lambda each: replace(each, **said))
    assert {each.reason for each in found} == {"12 of 381796 packets"}


@pytest.mark.parametrize(("factor", "verdict"), [(2.0, Verdict.FAIL), (1.0, Verdict.PASS)])
def test_two_like_directions_blame_no_end(tmp_path: Path, factor: float, verdict: Verdict) -> None:
    leave(tmp_path, FORTH, slower(PUT_BW, factor))
    leave(tmp_path, BACK, slower(PUT_BW, factor), ranks=TURNED)
    for outcome in _judged(tmp_path, FORTH, BACK).values():
        assert outcome.report.verdict is verdict
        assert not any("too little" in each.reason for each in outcome.report.quantities)


def test_a_program_without_mpi_changes_roles_and_not_ranks() -> None:
    leg = replace(FORTH, suite="iperf3", program="iperf3", traffic=Traffic())
    turned = backward(leg)
    assert turned.environment["FABRICPROOF_BACKWARD"] == "1"
    assert backward(replace(leg, traffic=Traffic(exact=(7, 1)))).traffic.exact == (1, 7)


def test_who_ran_where_is_known_or_the_other_way_is_no_pass(tmp_path: Path) -> None:
    leave(tmp_path, BACK, ranks=TURNED)  # the leg beside it left nothing: no ends to compare
    report = _judged(tmp_path, FORTH, BACK)["rail0.back"].report
    assert report.verdict is Verdict.UNJUDGED
    assert "nobody knows which way it sent" in report.quantities[-1].reason


@pytest.mark.parametrize(
    ("family", "launcher", "line"),
    [
        ("mpich", "srun",
            'env SLURM_HOSTFILE="$here/backwards.hosts" LAUNCH --distribution=arbitrary'),
        (
            "openmpi",
            "srun --mpi=pmix",
            (
                'env SLURM_HOSTFILE="$here/backwards.hosts" env SLURM_JOB_NODELIST="$(SORTED)" '
                "LAUNCH --mpi=pmix --distribution=arbitrary"
            ),
        ),
        ("openmpi", "mpirun", 'LAUNCH --hostfile "$here/backwards.hosts" --map-by seq'),
        ("intelmpi", "mpirun",
            'env SLURM_JOB_NODELIST=NODES SLURM_NODELIST=NODES SLURM_TASK_PROLOG="TURN" LAUNCH'),
    ],
)  # fmt: skip
def test_every_launcher_is_told_the_nodes_backwards(family: str, launcher: str, line: str) -> None:
    launcher, *options = launcher.split()
    back = replace(BACK, launch=turned_command(family, launcher, ("LAUNCH", *options)))
    script = render_script([FORTH, back], launch="LAUNCH", judge="true", leg_seconds_limit=9)
    forth, turned = script.split("leg_rail0_back()")
    assert "backwards.hosts" not in forth
    assert 'scontrol show hostnames "$SLURM_JOB_NODELIST" | tac >backwards.hosts' in turned
    line = line.replace("NODES", '"$(paste -sd, "$here/backwards.hosts")"')
    line = line.replace("TURN", "$here/turn.sh")
    chosen = 'grep -xF -f "$here/backwards.hosts"'
    line = line.replace(
        "SORTED", f'scontrol show hostnames "$SLURM_JOB_NODELIST" | {chosen} | paste -sd,'
    )
    assert f'    {line} "$here/rank.sh"' in turned


def test_hydras_proxies_take_their_places_from_the_last_node() -> None:
    told = [
        subprocess.run(
            [JOB_FILES / TURN_FILE],
            env={"PATH": os.environ["PATH"], "SLURM_NNODES": "2", "SLURM_NODEID": each},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for each in "01"
    ]
    assert told == ["export SLURM_NODEID=1\n", "export SLURM_NODEID=0\n"]
