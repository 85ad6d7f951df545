"""A leg's outcome after the baseline, in the job and after it, from real output."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.measure import Verdict, texts_of
from fabricproof.job.leg import read_plan, write_plan
from fabricproof.job.outcome import judge_leg
from fabricproof.job.second_look import doubtful_legs
from fabricproof.nodes.inventory.read import read_machine
from fabricproof.verdict.baseline.apply import LegBaseline, that_matter
from fabricproof.verdict.baseline.model import BaselineNode, LegPlace, Limit
from fabricproof.verdict.baseline.stage import STAGE_FILE, write_stage
from leg_folders import PUT_BW, leave, make_leg, slower, speeds

DATA = Path(__file__).parents[1] / "data"
LEG = make_leg(baseline="spring")
LOOK = (DATA / "inventory" / "mlx5-healthy.txt").read_text()


def lay(folder: Path, *, low: float = 115.0, median: float = 117.0, look: str = LOOK) -> None:
    """Lay a baseline of the leg's last size beside the plan, and looks at both nodes."""
    (table,) = parse_text(PUT_BW, "recorded")
    place = LegPlace(
        **dict.fromkeys(("partition", "fabric", "stack", "check"), ""), build="b1", suite="osu",
        program="osu_put_bw", tool_version=table.version or "", leg="rail0", rails="rail0",
        nodes="n1,n2", settings=f"num_pairs={table.attributes.get('num_pairs', 1)}",
    )  # fmt: skip
    row = Limit(
        quantity="bandwidth_4MiB", unit="MB/s", better=1, median=median, low=low, high=125.0, runs=6
    )
    facts = that_matter(read_machine(LOOK, "n1").facts)
    nodes = {name: BaselineNode(digests=(), facts=facts) for name in ("n1", "n2")}
    known = LegBaseline(
        name="spring",
        date="2026-11-06",
        place=replace(place, nodes="", tool_version="", settings=""),
        rows=((place, row),),
        nodes=nodes,
        settings=("num_pairs",),
    )
    write_stage(folder, {"rail0": known})
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
    assert "of the baseline's median" in texts_of(report.findings)[0]


def test_a_node_that_is_another_is_judged_by_physics_alone(tmp_path: Path) -> None:
    new_cable = (DATA / "inventory" / "mlx5-new-cable.txt").read_text()
    lay(tmp_path, look=new_cable)
    leave(tmp_path, LEG, slower(PUT_BW, 1.06))
    report = judge_leg(tmp_path, LEG).report
    assert report.verdict is Verdict.PASS
    assert any("no longer holds: n1: cable_serial" in each for each in texts_of(report.findings))


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
