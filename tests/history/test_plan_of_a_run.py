"""What a dry run says is due, how ReFrame is asked for it, and what jobs took last time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.history import plan
from fabricproof.history.plan import Case, ask_reframe, last_seconds, refusals
from fabricproof.site import load_site
from reported_cases import reported_case, write_report

ROOT = Path(__file__).resolve().parents[2]
TRAPS = ROOT / "tests" / "rfm" / "site"
CASE = Case(check="OsuBandwidth", fabric="eth0", partition="compute", stack="openmpi5")


def planned(**changes: Any) -> str:
    """Return the line of a check that tells its plan."""
    facts = {
        "unique_name": "OsuBandwidth_0", "partition": "compute", "environ": "openmpi5",
        "name": "OsuBandwidth", "fabric": "eth0", "tags": ["quick"], "num_nodes": 2,
        "time_limit": 300, "legs": ["rail0"], **changes,
    }  # fmt: skip
    return json.dumps({"fabricproof_job": "planned", **facts})


class Reframe:
    """Stands for ReFrame: leaves a report, or only words."""

    def __init__(self, cases: list[dict[str, Any]] | None = None, *lines: str) -> None:
        self.cases, self.lines = cases, lines
        self.arguments: list[str] = []
        self.report = Path()

    def __call__(self, arguments: list[str], environment: dict[str, str], on_line: Any) -> int:
        self.arguments = list(arguments)
        self.report = Path(environment["RFM_REPORT_FILE"])
        for line in self.lines:
            on_line(line)
        if self.cases is not None:
            write_report(self.report.parents[1], self.report.stem, self.cases)
        return 0 if self.cases is not None else 1


def asked(monkeypatch: pytest.MonkeyPatch, reframe: Reframe, *given: Any) -> Any:
    monkeypatch.setattr(plan, "run_reframe", reframe)
    return ask_reframe(load_site(str(TRAPS)), TRAPS, *given)


def test_reframe_is_asked_in_a_dry_run_that_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    skipped = reported_case(result="skip", skip_reason="planned")
    reframe = Reframe([skipped, {**skipped, "environ": "mpich5"}], planned())
    due, other = asked(monkeypatch, reframe, ["quick"], "openmpi")
    assert due.key == ("OsuBandwidth", "eth0", "compute", "openmpi5")
    assert (due.is_due, due.nodes, due.limit_seconds, due.legs) == (True, 2, 300.0, ("rail0",))
    assert (other.stack, other.skipped) == ("mpich5", "planned")
    assert reframe.arguments == ["--dry-run", "-t", "quick", "-p", "openmpi"]
    assert not reframe.report.exists()


def test_ranks_of_one_node_take_one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = asked(monkeypatch, Reframe([], planned(partition="node")))
    assert case.nodes == 1


def test_what_is_skipped_or_lost_keeps_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    build = reported_case("StackBuild", fixture=True)
    del build["fabric"]
    error = "config error: not installed:\n  | base.py:154\n  | raise"
    told = [
        build,
        reported_case("A", result="skip", skip_reason="fabric eth0 has one rail"),
        reported_case("B", result="fail", fail_reason=error),
        reported_case("C"),
    ]
    cases = asked(monkeypatch, Reframe(told))
    assert [(word, why) for word, why, _ in refusals(cases)] == [
        ("SKIPPED", "fabric eth0 has one rail"),
        ("MISSING", "config error: not installed"),
        ("MISSING", "its legs were not planned"),
    ]
    assert not any(each.is_due for each in cases)


def test_without_a_check_nothing_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, Reframe(None, "[==========] Running 0 check(s)")) == []


def test_a_check_file_that_cannot_be_loaded_is_no_cheap_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reframe = Reframe([reported_case()], "WARNING: skipping test file 'x.py' due to errors")
    with pytest.raises(ConfigError, match=r"x\.py"):
        asked(monkeypatch, reframe)


def test_a_reframe_that_says_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnavailableError, match=r"ended with status 1.*no module system"):
        asked(monkeypatch, Reframe(None, "ERROR: no module system"))


def test_the_real_checks_say_what_they_would_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    found = ask_reframe(load_site(str(TRAPS)), ROOT)
    cases = {case.check: case for case in found if case.fabric == "eth0"}
    bandwidth = cases["OsuBandwidth"]
    assert bandwidth.is_due
    assert bandwidth.nodes == 1
    assert bandwidth.legs
    assert "has no suite imb" in cases["ImbPingPong"].skipped
    assert any(case.skipped == "this site has no infiniband fabric" for case in found)
    assert not list(tmp_path.iterdir())


def test_the_newest_run_that_has_a_job_of_the_case_says_what_it_took(tmp_path: Path) -> None:
    case = CASE
    other = reported_case(system="elsewhere", job_completion_time_unix=900.0)
    never = reported_case(job_completion_time_unix=None)
    write_report(tmp_path, "20261101T000000Z-000001", [reported_case()])
    write_report(tmp_path, "20261102T000000Z-000001", [reported_case(job_submit_time=104.0)])
    write_report(tmp_path, "20261103T000000Z-000001", [other, never])
    assert last_seconds(tmp_path, "vcluster", [case]) == ({case.key: 3.0}, [])


@pytest.mark.parametrize("text", ["{", "[]", '{"runs": [{"testcases": [1]}]}', "\0"])
def test_a_report_that_cannot_be_read_is_a_note(text: str, tmp_path: Path) -> None:
    case = CASE
    path = write_report(tmp_path, "20261101T000000Z-000001", [])
    path.write_text(text)
    took, notes = last_seconds(tmp_path, "vcluster", [case])
    assert took == {}
    assert notes == [f"{path}: no readable report, passed over"]
    assert json.dumps(notes)
