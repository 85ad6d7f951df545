"""A leg's outcome after the baseline, in the job and after it, from real output."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.core.provenance import LegPlace
from fabricproof.history.baseline.file import write_baseline
from fabricproof.job.leg import read_plan, write_plan
from fabricproof.job.outcome import judge_leg
from fabricproof.job.second_look import doubtful_legs
from fabricproof.nodes.inventory.changed import lasting
from fabricproof.nodes.inventory.read import read_machine
from fabricproof.verdict.references import STAGE_FILE, BaselineLeg, for_legs
from leg_folders import PUT_BW, leave, make_leg, slower, speeds
from made_baselines import make_baseline, make_row

DATA = Path(__file__).parents[1] / "data"
LEG = make_leg(baseline="spring")
LOOK = (DATA / "inventory" / "mlx5-healthy.json").read_text()


def lay(
    folder: Path,
    *,
    low: float = 115.0,
    median: float = 117.0,
    look: str = LOOK,
    nodes: tuple[str, ...] = ("n1", "n2"),
) -> None:
    """Lay a baseline of the leg's last size beside the plan, and looks at both nodes."""
    (table,) = parse_text(PUT_BW, "recorded")
    place = LegPlace(
        **dict.fromkeys(("partition", "fabric", "stack", "check"), ""), build="b1", suite="osu",
        program="osu_put_bw", tool_version=table.version or "", leg="rail0", rails="rail0",
        nodes="n1,n2", settings=f"num_pairs={table.attributes.get('num_pairs', 1)}",
    )  # fmt: skip
    row = make_row(median=median, low=low, high=125.0)
    baseline = make_baseline(
        groups=(BaselineLeg(place=place, rows=(row,)),),
        settings=("num_pairs",),
        common=lasting(read_machine(LOOK, "n1").facts),
        nodes={name: {} for name in nodes},
    )
    planned = replace(place, nodes="", tool_version="", settings="")
    write_baseline(folder / STAGE_FILE, for_legs(baseline, {"rail0": planned}))
    (folder / "inventory").mkdir()
    for name in ("n1", "n2"):
        (folder / "inventory" / f"{name}.txt").write_text(look)


def test_the_recorded_output_passes_its_baseline(tmp_path: Path) -> None:
    lay(tmp_path, low=100.0, median=112.0)
    leave(tmp_path, LEG)
    report = judge_leg(tmp_path, LEG).report
    assert report.verdict is Verdict.PASS
    assert "baseline spring" not in " ".join(texts_of(report.findings))


def test_a_loss_that_physics_allows_is_red_and_gets_a_second_look(tmp_path: Path) -> None:
    """The job's own second look judges by the same rules as the judgement after it."""
    lay(tmp_path)
    leave(tmp_path, LEG, slower(PUT_BW, 1.06))
    write_plan(tmp_path, [LEG])
    assert judge_leg(tmp_path, replace(LEG, baseline="")).report.verdict is Verdict.PASS
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.FAIL
    assert doubtful_legs(tmp_path) == ["rail0"]


def test_a_second_look_that_is_well_clears_it(tmp_path: Path) -> None:
    lay(tmp_path)
    leave(tmp_path, LEG, slower(PUT_BW, 1.06))
    leave(tmp_path, LEG, attempt=2)
    report = judge_leg(tmp_path, LEG).report
    assert report.verdict is Verdict.PASS
    assert "(baseline spring, 5 runs)" in texts_of(report.findings)[0]


def test_a_node_that_is_another_is_judged_by_physics_alone(tmp_path: Path) -> None:
    new_cable = (DATA / "inventory" / "mlx5-new-cable.json").read_text()
    lay(tmp_path, look=new_cable)
    leave(tmp_path, LEG, slower(PUT_BW, 1.06))
    report = judge_leg(tmp_path, LEG).report
    assert report.verdict is Verdict.PASS
    assert any(": n1: cable_serial" in each for each in texts_of(report.findings))


def test_a_node_that_nobody_learnt_or_saw_is_judged_by_physics_alone(tmp_path: Path) -> None:
    lay(tmp_path, nodes=("n1",))
    (tmp_path / "inventory" / "n1.txt").unlink()
    leave(tmp_path, LEG, slower(PUT_BW, 1.06))
    report = judge_leg(tmp_path, LEG).report
    assert report.verdict is Verdict.PASS
    said = (
        "does not judge  osu_put_bw rail0 n1 - n2: nobody saw what n1 is made of; n2 was not in it"
    )
    assert any(said in each for each in texts_of(report.findings))


@pytest.mark.parametrize("damage", [None, "", "{"])
def test_a_baseline_that_was_to_judge_and_cannot_be_read_leaves_no_pass(
    tmp_path: Path, damage: str | None
) -> None:
    lay(tmp_path)
    (tmp_path / STAGE_FILE).unlink()
    if damage is not None:
        (tmp_path / STAGE_FILE).write_text(damage)
    leave(tmp_path, LEG)
    report = judge_leg(tmp_path, LEG).report
    assert report.verdict is Verdict.UNJUDGED
    assert Verdict.PASS not in {each.verdict for each in speeds(report)}
    assert "baseline spring was to judge and did not" in speeds(report)[-1].reason


def test_a_baseline_that_cannot_be_read_makes_nothing_red_milder(tmp_path: Path) -> None:
    lay(tmp_path)
    (tmp_path / STAGE_FILE).unlink()
    leave(tmp_path, LEG, slower(PUT_BW, 2.0))
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.FAIL


def test_a_plan_from_before_there_were_baselines_is_read(tmp_path: Path) -> None:
    write_plan(tmp_path, [LEG])
    path = tmp_path / "plan.json"
    record = json.loads(path.read_text())
    assert [leg.pop("baseline") for leg in record["legs"]] == ["spring"]
    path.write_text(json.dumps(record))
    assert read_plan(tmp_path).legs[0].baseline == ""
