"""The job's shell script: its text, and what it does when it is run on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import fabricproof.job
from fabricproof.core.findings import FindingKind, texts_of
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg, write_plan
from fabricproof.job.outcome import judge_leg
from fabricproof.job.script import RANK_FILE, SCRIPT_FILE, render_script
from leg_folders import PUT_BW, make_leg, slower

RANK_SH = Path(fabricproof.job.__file__).parent / RANK_FILE
SECOND_LOOK = f'{sys.executable} -E -m fabricproof.job.second_look "$here"'

GOLDEN = """\
leg_rail0() { # osu_put_bw over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \\
    OMPI_MCA_btl_tcp_if_include=rail0 \\
    timeout -k 5 60 \\
    srun -n 2 "$here/rank.sh" osu_put_bw -m 1:4194304
}
"""

GOLDEN_TWO_PARTS = """\
leg_rail0_rail1() { # osu_put_bw over rail0+rail1
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS='rail0 rail1' \\
    A='two words' \\
    UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 \\
    timeout -k 5 60 \\
    srun -n 2 "$here/rank.sh" osu_put_bw -m 1:8192 &&
    env FABRICPROOF_PART=1 FABRICPROOF_RAILS='rail0 rail1' \\
    A='two words' \\
    UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 \\
    timeout -k 5 60 \\
    srun -n 2 "$here/rank.sh" osu_put_bw -m $'16384:\\x24HOME'
}
"""


def _render(*legs: Leg, launch: str = "env", limit: int = 60, look: str = SECOND_LOOK) -> str:
    return render_script(legs, launch=launch, judge=look, leg_seconds_limit=limit)


def test_a_leg_is_a_function_that_a_person_can_read() -> None:
    assert GOLDEN in _render(make_leg(), launch="srun -n 2")


def test_a_leg_in_two_parts_starts_twice_and_quotes_what_needs_it() -> None:
    leg = make_leg(
        name="rail0+rail1",
        rails=("rail0", "rail1"),
        environment={"UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1", "A": "two words"},
        commands=(("osu_put_bw", "-m", "1:8192"), ("osu_put_bw", "-m", "16384:$HOME")),
    )
    assert GOLDEN_TWO_PARTS in _render(leg, launch="srun -n 2")


def test_the_second_look_comes_after_all_legs() -> None:
    text = _render(make_leg(), make_leg(name="rail1"), look="look twice")
    assert text.index("for leg in rail0 rail1; do attempt") < text.index("    ask_judge ")


def test_the_shell_can_read_it() -> None:
    text = _render(make_leg(), make_leg(name="mlx5_0:1+mlx5_1:1", environment={"X": "a'b\"$(c)"}))
    checked = subprocess.run(
        ["bash", "-n"], input=text, text=True, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


# For real, on this machine: `env` launches, a shell script is the benchmark.


def _prepare(folder: Path, benchmark: str, *legs: Leg, limit: int = 60) -> tuple[Leg, ...]:
    program = folder / "benchmark"
    program.write_text(f"#!/bin/bash\n{benchmark}\n")
    program.chmod(0o755)
    ready = tuple(
        replace(leg, same_node=True, commands=tuple((str(program),) for _ in leg.commands))
        for leg in legs or (make_leg(),)
    )
    write_plan(folder, ready)
    (folder / RANK_FILE).write_bytes(RANK_SH.read_bytes())
    (folder / RANK_FILE).chmod(0o755)
    (folder / SCRIPT_FILE).write_text(_render(*ready, limit=limit))
    (folder / "good").write_text(PUT_BW)
    (folder / "slow").write_text(slower(PUT_BW, 2))
    return ready


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if "FABRICPROOF" not in name}
    return subprocess.run(
        ["bash", SCRIPT_FILE, *arguments], cwd=folder, env=environment, text=True,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_good_leg_runs_once_and_passes(tmp_path: Path) -> None:
    (leg,) = _prepare(tmp_path, 'cat "$FABRICPROOF_LEG"/../../good')
    ended = _run(tmp_path)
    assert ended.returncode == 0
    assert ended.stdout.count("attempt") == 1
    assert sorted(path.name for path in (tmp_path / "legs").iterdir()) == ["rail0.1"]
    assert sorted(path.name for path in (tmp_path / "legs" / "rail0.1").iterdir()) == [
        "rank.0.0",
        "status",
        "stderr",
        "stdout",
    ]
    assert (tmp_path / "legs" / "rail0.1" / "status").read_text() == "0\n"
    assert judge_leg(tmp_path, leg).report.verdict is Verdict.PASS


def test_only_the_doubtful_leg_runs_again(tmp_path: Path) -> None:
    legs = _prepare(
        tmp_path,
        'case $FABRICPROOF_LEG in */slow.1) cat "$FABRICPROOF_LEG"/../../slow ;;\n'
        '*) cat "$FABRICPROOF_LEG"/../../good ;; esac',
        make_leg(),
        make_leg(name="slow"),
    )
    assert _run(tmp_path).returncode == 0
    there = sorted(path.name for path in (tmp_path / "legs").iterdir())
    assert there == ["rail0.1", "slow.1", "slow.2"]
    outcomes = [judge_leg(tmp_path, leg) for leg in legs]
    assert [each.report.verdict for each in outcomes] == [Verdict.PASS, Verdict.PASS]
    assert outcomes[1].attempts[0].report.verdict is Verdict.FAIL


def test_what_is_asked_next_knows_how_many_legs_still_fit(tmp_path: Path) -> None:
    """Of 100 s, 30 s are kept for the end; a leg took 2 s, counted up to the next whole one."""
    legs = _prepare(tmp_path, 'sleep 2; cat "$FABRICPROOF_LEG"/../../good')
    (tmp_path / "asked.sh").write_text('echo ready; read -r fits; echo "$fits" >fit; echo')
    text = render_script(
        legs, launch="env", judge="sh asked.sh", leg_seconds_limit=60, job_seconds=100
    )
    (tmp_path / SCRIPT_FILE).write_text(text)
    assert _run(tmp_path).returncode == 0
    assert 12 <= int((tmp_path / "fit").read_text()) <= 34


def test_a_leg_that_hangs_is_ended_and_the_next_one_runs(tmp_path: Path) -> None:
    hangs, good = _prepare(
        tmp_path,
        'case $FABRICPROOF_LEG in */hangs.*) head -5 "$FABRICPROOF_LEG"/../../good; sleep 60 ;;\n'
        '*) cat "$FABRICPROOF_LEG"/../../good ;; esac',
        make_leg(name="hangs"),
        make_leg(),
        limit=1,
    )
    assert _run(tmp_path).returncode == 0
    assert (tmp_path / "legs" / "hangs.1" / "status").read_text() == "124\n"
    report = judge_leg(tmp_path, hangs).report
    assert report.verdict is Verdict.MISSING
    assert "time limit" in report.quantities[0].reason
    assert judge_leg(tmp_path, good).report.verdict is Verdict.PASS


def test_a_part_that_fails_stops_the_leg(tmp_path: Path) -> None:
    leg = make_leg(commands=(("a",), ("b",)))
    _prepare(tmp_path, '[ "$FABRICPROOF_PART" = 1 ] || exit 4', leg)
    _run(tmp_path)
    folder = tmp_path / "legs" / "rail0.1"
    assert (folder / "status").read_text() == "4\n"
    assert not (folder / "rank.0.1").exists()


def test_a_program_that_is_not_there_is_missing(tmp_path: Path) -> None:
    (leg,) = _prepare(tmp_path, "true")
    (tmp_path / "benchmark").unlink()
    _run(tmp_path)
    assert (tmp_path / "legs" / "rail0.1" / "status").read_text() == "127\n"
    report = judge_leg(tmp_path, leg).report
    assert report.verdict is Verdict.MISSING
    assert "No such file or directory" in report.quantities[0].reason


def test_a_job_started_again_does_not_keep_what_its_first_start_left(tmp_path: Path) -> None:
    (leg,) = _prepare(tmp_path, 'cat "$FABRICPROOF_LEG"/../../slow')
    old = tmp_path / "legs" / "rail0.2"
    old.mkdir(parents=True)
    (old / "stdout").write_text(PUT_BW)
    (old / "status").write_text("0\n")
    (tmp_path / SCRIPT_FILE).write_text(
        _render(leg, look="false").replace("srun", "env")  # this time nobody looks twice
    )
    _run(tmp_path)
    assert not old.exists()
    assert judge_leg(tmp_path, leg).report.verdict is Verdict.FAIL


def test_a_second_look_that_breaks_is_kept_and_said(tmp_path: Path) -> None:
    (leg,) = _prepare(tmp_path, 'cat "$FABRICPROOF_LEG"/../../slow')
    (tmp_path / "plan.json").write_text("{")
    assert _run(tmp_path).returncode == 0
    assert "damaged plan" in (tmp_path / "second_look.err").read_text()
    report = judge_leg(tmp_path, leg).report
    assert report.verdict is Verdict.FAIL
    assert "no second look was made" in texts_of(report.findings)[0]
    assert "damaged plan" in texts_of(report.findings)[0]


@pytest.mark.parametrize("judge", ["false", "sh dies.sh", "no-such-command"])
def test_a_judge_that_dies_in_the_job_costs_no_leg_and_clears_nothing(
    judge: str, tmp_path: Path
) -> None:
    slow, good = _prepare(
        tmp_path,
        'case $FABRICPROOF_LEG in */slow.*) cat "$FABRICPROOF_LEG"/../../slow ;;\n'
        '*) cat "$FABRICPROOF_LEG"/../../good ;; esac',
        make_leg(name="slow"),
        make_leg(),
    )
    (tmp_path / "dies.sh").write_text("echo ready; exec <&-; kill -9 $$")
    (tmp_path / SCRIPT_FILE).write_text(_render(slow, good, look=judge))
    assert _run(tmp_path).returncode == 0
    assert judge_leg(tmp_path, good).report.verdict is Verdict.PASS
    report = judge_leg(tmp_path, slow).report
    assert report.verdict is Verdict.FAIL
    assert report.findings[0].kind is FindingKind.NO_SECOND_LOOK
    assert ":" in texts_of(report.findings)[0], "it says why"


def test_the_judge_starts_once_a_job_and_takes_nothing_from_the_legs(tmp_path: Path) -> None:
    (leg,) = _prepare(tmp_path, 'cat; cat "$FABRICPROOF_LEG"/../../slow')
    counted = f"sh -c 'echo x >>starts; exec {SECOND_LOOK}'".replace("$here", "$PWD")
    (tmp_path / SCRIPT_FILE).write_text(_render(leg, look=counted))
    assert _run(tmp_path).returncode == 0
    assert (tmp_path / "starts").read_text() == "x\n"
    assert len(judge_leg(tmp_path, leg).attempts) == 2


def test_a_leg_repeated_by_hand_changes_no_verdict(tmp_path: Path) -> None:
    (leg,) = _prepare(tmp_path, 'cat "$FABRICPROOF_LEG"/../../good')
    _run(tmp_path)
    (tmp_path / "good").write_text("")
    assert _run(tmp_path, "rail0").returncode == 0
    by_hand = [path.name for path in (tmp_path / "legs").iterdir() if "hand" in path.name]
    assert len(by_hand) == 1
    assert judge_leg(tmp_path, leg).report.verdict is Verdict.PASS


# What each node is made of.

GOLDEN_INVENTORY = """\
    rm -rf inventory && mkdir inventory || return
    env \\
    A='two words' \\
    timeout -k 1 12 \\
    srun -n 2 "$here/inventory.sh" "$here/inventory" 5 >{out} 2>{err} </dev/null
}}
"""


def test_the_look_at_the_nodes_is_started_as_the_first_leg_is() -> None:
    text = _render(make_leg(environment={"A": "two words"}), make_leg(name="b"), launch="srun -n 2")
    files = {"out": "inventory/stdout", "err": "inventory/stderr"}
    assert GOLDEN_INVENTORY.format(**files) in text
    assert text.index("\ninventory\n") < text.index('do attempt "$leg" 1')


def test_a_site_says_how_long_a_look_may_take_and_whether_there_is_one() -> None:
    options = {"launch": "srun", "judge": "true", "leg_seconds_limit": 30}
    patient = render_script([make_leg()], look_seconds=40, **options)
    assert "timeout -k 1 47" in patient
    assert '"$here/inventory" 40 >' in patient
    blind = render_script([make_leg()], look_seconds=None, **options)
    assert "inventory()" not in blind
    assert "\ninventory\n" not in blind
    assert 'do attempt "$leg" 1' in blind


def _inventory_script(folder: Path, body: str) -> None:
    (folder / "inventory.sh").write_text(f"#!/bin/bash\n{body}\n")
    (folder / "inventory.sh").chmod(0o755)


def test_the_nodes_are_looked_at_once_and_not_by_hand(tmp_path: Path) -> None:
    _prepare(tmp_path, 'cat "$FABRICPROOF_LEG"/../../slow', make_leg(), make_leg(name="b"))
    _inventory_script(tmp_path, 'echo look >>"$1/../looks"; echo seen >"$1/n1.txt"; read -r none')
    _run(tmp_path)
    assert (tmp_path / "looks").read_text() == "look\n"
    assert (tmp_path / "inventory" / "n1.txt").read_text() == "seen\n"
    _run(tmp_path, "rail0")
    assert (tmp_path / "looks").read_text() == "look\n"


@pytest.mark.parametrize("body", ["exit 9", "kill -9 $$", 'rm -rf "$1"', None])
def test_a_look_that_fails_costs_no_leg(body: str | None, tmp_path: Path) -> None:
    (leg,) = _prepare(tmp_path, 'cat "$FABRICPROOF_LEG"/../../good')
    if body is not None:
        _inventory_script(tmp_path, body)
    ended = _run(tmp_path)
    assert ended.returncode == 0
    assert judge_leg(tmp_path, leg).report.verdict is Verdict.PASS


def test_a_launcher_that_hangs_is_given_up_and_the_legs_run(tmp_path: Path) -> None:
    (leg,) = _prepare(tmp_path, 'cat "$FABRICPROOF_LEG"/../../good')
    _inventory_script(tmp_path, "sleep 60")
    script = tmp_path / SCRIPT_FILE
    script.write_text(script.read_text().replace("timeout -k 1 12", "timeout -k 1 0.2"))
    assert _run(tmp_path).returncode == 0
    assert judge_leg(tmp_path, leg).report.verdict is Verdict.PASS
