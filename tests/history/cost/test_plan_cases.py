"""What a dry run's report says is due, and how ReFrame is asked for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.errors import ConfigError, ParseError, UnavailableError
from fabricproof.history.cost import case as cases
from fabricproof.history.cost.case import read_cases
from fabricproof.job.leg import write_plan
from fabricproof.site import load_site
from planned import make_planned_leg, reported_case, write_report

TRAPS = Path(__file__).parents[2] / "rfm" / "site"
BANDWIDTH = ("osu_bw", "-m", "1:4", "-i", "10", "-x", "2", "-W", "64")


def planned(folder: Path, **changes: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    write_plan(folder, [make_planned_leg("osu", "osu_bw", BANDWIDTH, BANDWIDTH)])
    return reported_case(stagedir=str(folder), **changes)


def test_a_planned_case_has_its_paths_and_starts(tmp_path: Path) -> None:
    (case,) = read_cases([planned(tmp_path)])
    assert case.key == ("OsuBandwidth", "eth0", "compute", "openmpi5")
    assert [(net_path.name, net_path.starts, net_path.sizes) for net_path in case.net_paths] == [
        ("rail0", 2, (1, 2, 4))
    ]
    assert case.is_due
    assert (case.nodes, case.limit_seconds) == (2, 300.0)


def test_ranks_of_one_node_take_one_node(tmp_path: Path) -> None:
    (case,) = read_cases([planned(tmp_path)], one_node=["compute"])
    assert case.nodes == 1
    (packed,) = read_cases([planned(tmp_path, num_tasks=5, num_tasks_per_node=2)])
    assert packed.nodes == 3


def test_builds_and_other_fixtures_are_no_cases() -> None:
    build = reported_case("StackBuild", fixture=True)
    del build["fabric"]
    assert read_cases([build]) == []


def test_what_is_skipped_or_lost_keeps_its_reason() -> None:
    skipped, lost, silent = read_cases(
        [
            reported_case(result="skip", skip_reason="fabric eth0 has one rail", stagedir=None),
            reported_case(
                result="fail",
                fail_reason="config error: not installed:\n  | base.py:154\n  | raise",
            ),
            reported_case(),
        ]
    )
    assert (skipped.skipped, skipped.lost) == ("fabric eth0 has one rail", "")
    assert (lost.skipped, lost.lost) == ("", "config error: not installed")
    assert silent.lost == "its legs were not planned"
    assert not any(each.is_due for each in (skipped, lost, silent))


def test_a_damaged_plan_is_named(tmp_path: Path) -> None:
    record = planned(tmp_path)
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(ParseError, match="damaged plan"):
        read_cases([record])


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


def asked(monkeypatch: pytest.MonkeyPatch, reframe: Reframe, stacks: str | None = None) -> Any:
    monkeypatch.setattr(cases, "run_reframe", reframe)
    return cases.ask_reframe(load_site(str(TRAPS)), TRAPS, stacks)


def test_reframe_is_asked_in_a_dry_run_that_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reframe = Reframe([reported_case(result="skip", skip_reason="no")])
    (case,) = asked(monkeypatch, reframe, "openmpi")
    assert case.skipped == "no"
    assert reframe.arguments == ["--dry-run", "--keep-stage-files", "-p", "openmpi"]
    assert not reframe.report.exists()


def test_without_a_check_nothing_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    reframe = Reframe(None, "[==========] Running 0 check(s)")
    assert asked(monkeypatch, reframe) == []


def test_a_check_file_that_cannot_be_loaded_is_no_cheap_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reframe = Reframe([reported_case()], "WARNING: skipping test file 'x.py' due to errors")
    with pytest.raises(ConfigError, match=r"x\.py"):
        asked(monkeypatch, reframe)


def test_a_reframe_that_says_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnavailableError, match=r"ended with status 1.*no module system"):
        asked(monkeypatch, Reframe(None, "ERROR: no module system"))
