"""Reports of ReFrame without us: their numbers are shown and compared, and never PASS."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.errors import InputMissingError, ParseError
from fabricproof.history.imported import read_reframe_report

Command = Callable[..., Any]


def report(folder: Path, day: int, value: float | None, **case: object) -> Path:
    """Write a report as ReFrame 4.10.4 writes it, of one test case with two numbers."""
    test = {
        "name": "osu_bw_check %x=1",
        "unique_name": "osu_bw_check_0",
        "partition": "compute",
        "environ": "gnu",
        "result": "pass",
        "jobid": "42",
        "job_nodelist": ["n2", "n1"],
        "job_completion_time_unix": 1.79e9 + 86400 * day,
        "perfvalues": {
            "lab:compute:bw": [value, 12.0, -0.1, None, "GB/s", "pass"],
            "lab:compute:gflops": [3.5, 0, None, None, "Gflop/s", "pass"],
        },
        **case,
    }
    path = folder / f"run-report-{day}.json"
    session = {"time_start": f"2026-10-{day:02}T02:00:00+0200", "uuid": f"u{day}"}
    path.write_text(json.dumps({"session_info": session, "runs": [{"testcases": [test]}]}))
    return path


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_SITE", "vcluster")
    return tmp_path


def test_numbers_come_in_our_units_unjudged_with_where_they_are_from(tmp_path: Path) -> None:
    run_id, records = read_reframe_report(report(tmp_path, 3, 11.5))
    assert run_id.startswith("20261003T000000Z-")
    bandwidth, flops, leg = records
    assert (bandwidth["quantity_value"], bandwidth["quantity_unit"]) == (11500.0, "MB/s")
    assert (flops["quantity_value"], flops["quantity_unit"]) == (3.5, "Gflop/s")
    assert {each.get("quantity_verdict", each.get("verdict")) for each in records} == {"UNJUDGED"}
    assert bandwidth["nodes"] == ["n1", "n2"]
    assert "no path was proven" in leg["reasons"][0]


def test_imported_runs_are_listed_and_compared_and_are_no_green(
    lab: Path, fabricproof: Command
) -> None:
    before = [report(lab, day, 11.5 + day / 1000) for day in range(1, 9)]
    after = [report(lab, day, 9.2 + day / 1000) for day in range(11, 19)]
    ended = fabricproof("runs", "import", *before, *after)
    assert (ended.status, ended.out.count("2 numbers")) == (0, 16)
    assert fabricproof("runs", "import", before[0]).out.endswith("is there already\n")
    assert {each["worst"] for each in fabricproof("runs", "--json").record["runs"]} == {"UNJUDGED"}
    compared = fabricproof("compare", "2026-10-01..2026-10-08", "2026-10-11..2026-10-18", "--json")
    assert compared.record["overall"] == "WORSE"
    assert fabricproof("report").status == 4  # what the site requires was not measured


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_a_number_that_is_none_is_missing_and_damages_no_history(
    lab: Path, fabricproof: Command, value: float | None
) -> None:
    """ReFrame writes NaN, and null for a number that it could not read."""
    assert fabricproof("runs", "import", report(lab, 1, value)).status == 0
    (run,) = fabricproof("runs", "--json").record["runs"]
    assert run["worst"] == "MISSING"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "no report of ReFrame"),
        ("{", "no report of ReFrame"),
        ('{"session_info": {"time_start": "now"}, "runs": []}', "no report of ReFrame"),
        (
            '{"session_info": {"time_start": "2026-10-01T00:00:00+0000"}, "runs": []}',
            "a report without a number",
        ),
    ],
)
def test_what_is_no_report_is_one_message(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(ParseError, match=problem):
        read_reframe_report(path)


def test_a_report_that_cannot_be_read_is_no_damaged_one(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(InputMissingError, match="cannot read"):
            read_reframe_report(path)


def test_a_partition_that_is_a_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="partition"):
        read_reframe_report(report(tmp_path, 3, 1.0, partition="../x"))
