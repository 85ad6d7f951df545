"""Checks of a site's own software that take its references: judged by them, and in its records."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from reframe_sessions import HERE, ROOT, HouseRun
from test_foreign_settings import _extended

from fabricproof.core.records import read_records
from fabricproof.history.store import open_store
from fabricproof.verdict.references import open_reference


@pytest.mark.parametrize(
    ("check", "verdict", "result", "reason"),
    [
        ("KeptSlow", "FAIL", "fail", "50.0% of 200 GB/s (site (test))"),
        ("KeptByItself", "PASS", "pass", ""),
        ("KeptUnjudged", "UNJUDGED", "pass", "no path is proven"),
        ("KeptInOtherUnit", "UNJUDGED", "pass", "reference in s, value in GB/s"),
        ("KeptEndless", "INVALID", "fail", "not a measurement"),
        ("KeptUnread", "MISSING", "fail", "triad"),
        ("KeptMisspelt", "MISSING", "fail", "triade"),
        ("KeptDays", "PASS", "pass", ""),
        ("KeptHello", "SKIPPED", "pass", "no number judged"),
    ],
)
def test_a_check_is_judged_by_the_site_s_reference_once(
    house: HouseRun, check: str, verdict: str, result: str, reason: str
) -> None:
    leg = house.leg(check)
    assert (leg["verdict"], leg["suite"]) == (verdict, "ReFrame")
    assert reason in leg["reason"]
    assert leg["net_path"] is None
    cases = [
        case for report in house.reports for run in report["runs"] for case in run["testcases"]
    ]
    assert [case["result"] for case in cases if case["name"] == check] == [result]


def test_parameters_tell_the_legs_of_a_check_apart(house: HouseRun) -> None:
    legs = house.legs("KeptWell")
    assert {leg["leg"]: leg["verdict"] for leg in legs} == {
        "threads=1": "PASS",
        "threads=2": "PASS",
    }
    (triad,) = legs[0]["quantities"]
    assert [triad[key] for key in ("value", "unit", "reference", "source")] == [
        *(100.0, "GB/s", pytest.approx(110.0), "site"),
    ]


def test_one_whose_sanity_fails_stands_by_reframe_s_result(house: HouseRun) -> None:
    assert house.leg("KeptInsane")["verdict"] == "FAIL"


def test_the_history_has_the_numbers_and_which_side_is_better(house: HouseRun) -> None:
    perflogs = house.project / "perflogs"
    path = perflogs / "traps" / "node" / f"{house.record['run_id']}.jsonl"
    kept = [each for each in read_records(path) if each["check"] == "KeptDays"]
    assert [each["kind"] for each in kept] == ["quantity", "leg"]
    assert all(each["stack_identity"] for each in kept)
    store = open_store(perflogs, "traps")
    rows = store.samples(each.run_id for each in store.runs)
    better = {row["check"]: row["better"] for row in rows.iter_rows(named=True)}
    assert (better["KeptDays"], better["KeptUnjudged"]) == (1, 1)


def test_a_reference_of_which_less_is_better_is_an_upper_bound() -> None:
    reference = open_reference("30 min", more_is_better=False, tolerance=0.1, origin="test")
    assert (reference.lower, reference.upper, reference.unit) == (None, pytest.approx(33), "min")


def _blocks(kind: str) -> list[str]:
    page = (ROOT / "docs" / "how-to-add-a-check.md").read_text("utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)


def _records(folder: Path) -> list[dict[str, Any]]:
    (path,) = (folder / "ours").glob("*/node/*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("triad", "status", "verdict"), [(161000.0, 0, "PASS"), (80000.0, 1, "FAIL"), (None, 1, "FAIL")]
)
def test_the_page_s_check_under_a_site_s_own_reframe(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    triad: float | None,
    status: int,
    verdict: str,
) -> None:
    stream = tmp_path / "programs" / "stream_c.exe"
    stream.parent.mkdir()
    lines = [f"echo 'Triad: {triad} 0.02'", "echo Solution Validates: avg error"]
    stream.write_text("\n".join(["#!/bin/sh", *(lines if triad else [])]))
    stream.chmod(0o755)
    monkeypatch.setenv("STREAM", str(stream.parent))
    site = shutil.copytree(HERE / "site", tmp_path / "traps")
    (own,) = (each for each in _blocks("toml") if "Stream" in each)
    (site / "references.toml").write_text(own)
    (check,) = (each for each in _blocks("python") if "Referenced" in each)
    path = tmp_path / "stream.py"
    path.write_text(check)
    options = ("-p", "fake", "-S", "Stream.num_tasks=2")
    ended = _extended(tmp_path, *options, checks=str(path), site=site)
    assert ended.status == status, ended.out
    table = ended.out.partition("Log file(s)")[2]
    assert f"\n  1 {verdict}\n" in table, table
    assert table.count(": Stream (fake)") == (verdict == "FAIL")
    if triad:
        quantity, leg = _records(tmp_path)
        assert [each["check"] for each in (quantity, leg)] == ["Stream", "Stream"]
        assert (quantity["quantity_value"], leg["verdict"]) == (triad, verdict)
