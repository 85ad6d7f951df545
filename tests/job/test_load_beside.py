"""A load beside a leg: started before it, looked at while it runs, stopped after it."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

import fabricproof.job
from fabricproof.job import script
from fabricproof.job.evidence.leg_folder import gather, read_ranks
from fabricproof.job.leg import Leg, Plan, read_plan, write_plan
from fabricproof.job.outcome import judge_leg
from leg_folders import PUT_BW, make_leg

RANK_SH = Path(fabricproof.job.__file__).parent / script.RANK_FILE

#: moves 10 MB more over rail0 each twentieth of a second, and says that it is there
MOVES = """\
echo $$ >"{folder}/pid"
for ((moved = 0; ; moved += 10000000)); do
    echo $moved >"{folder}/next"
    # In one step: a reader of sysfs never sees a counter that is half written.
    mv "{folder}/next" "{folder}/sys/class/net/rail0/statistics/tx_bytes"
    sleep 0.05
done
"""


def _program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return str(path)


def _prepare(folder: Path, load: str) -> Leg:
    (folder / "sys/class/net/rail0/statistics").mkdir(parents=True)
    (folder / "sys/class/net/rail0/statistics/tx_bytes").write_text("0\n")
    (folder / "good").write_text(PUT_BW)
    sees = 'cat "$FABRICPROOF_LEG/beside/state" >"$FABRICPROOF_LEG/seen"; sleep 1; cat {}/good'
    victim = _program(folder / "victim", sees.format(folder))
    command = _program(folder / "load", load.format(folder=folder))
    settings = {"FABRICPROOF_SYS": str(folder / "sys")}
    beside = make_leg(
        commands=((command,),), num_nodes=1, nodes=("n1",), launch=("env",), environment=settings
    )
    leg = make_leg(commands=((victim,),), environment=settings, same_node=True, load=beside)
    write_plan(folder, [leg])
    (folder / script.RANK_FILE).write_bytes(RANK_SH.read_bytes())
    (folder / script.RANK_FILE).chmod(0o755)
    text = script.render_script([leg], launch="env", second_look="true", leg_seconds_limit=20)
    (folder / script.SCRIPT_FILE).write_text(text)
    return leg


def _run(folder: Path) -> Path:
    environment = {name: value for name, value in os.environ.items() if "FABRICPROOF" not in name}
    command = ["bash", script.SCRIPT_FILE]
    subprocess.run(command, cwd=folder, env=environment, timeout=60, check=True)
    return folder / "legs" / "rail0.1"


def test_what_runs_beside_a_leg_is_counted_while_both_run(tmp_path: Path) -> None:
    leg = _prepare(tmp_path, MOVES)
    attempt = _run(tmp_path)
    assert (attempt / "seen").read_text() == "go\n"
    (rank,), trouble = read_ranks(attempt / "beside")
    assert (trouble, rank.status) == (None, 0)
    (sample,) = (each for each in gather([rank]).samples if each.interface == "rail0")
    assert 50_000_000 < sample.moved("tx_bytes") < 10 * tmp_path.stat().st_size * 10**9
    assert rank.after["node/cores"]["own_ticks"] >= rank.before["node/cores"]["own_ticks"]
    assert judge_leg(tmp_path, leg).attempts[0].table is not None


def test_nothing_of_it_is_left_when_the_leg_has_ended(tmp_path: Path) -> None:
    _prepare(tmp_path, MOVES)
    _run(tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_load_that_moves_nothing_costs_the_leg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "BESIDE_SECONDS", 1)
    leg = _prepare(tmp_path, "sleep 50")
    began = time.monotonic()
    attempt = _run(tmp_path)
    assert time.monotonic() - began < 40
    assert not (attempt / "seen").exists()
    (judgement,) = judge_leg(tmp_path, leg).report.quantities
    assert judgement.value is None
    assert "what was to run beside it moved nothing within 1 s" in judgement.reason


def test_a_load_that_ends_before_the_leg_says_so(tmp_path: Path) -> None:
    _prepare(
        tmp_path, 'echo 9000000 >"{folder}/sys/class/net/rail0/statistics/tx_bytes"; sleep 0.6'
    )
    (rank,), _ = read_ranks(_run(tmp_path) / "beside")
    assert rank.status == 75


def test_a_plan_keeps_the_load_and_asks_for_its_nodes(tmp_path: Path) -> None:
    load = make_leg(nodes=("vc3", "vc4"))
    leg = make_leg(nodes=("vc1", "vc2"), load=load)
    write_plan(tmp_path, [leg])
    assert read_plan(tmp_path).legs == (leg,)
    assert Plan(legs=(leg,)).nodes == ("vc1", "vc2", "vc3", "vc4")
    assert replace(leg, load=None) != leg
