"""``fabricproof plan``: what it prints, and how it ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.cli.measure import plan as plan_module
from fabricproof.history.cost.case import Case, PlannedPath
from planned import reported_case, write_leg, write_report

Command = Callable[..., Any]

TRAPS = Path(__file__).parents[1] / "rfm" / "site"
RUN = "20261120T180000Z-000001"
LATER = "20261120T190000Z-000002"


def make_case(check: str, *tags: str, **changes: Any) -> Case:
    facts: dict[str, Any] = {
        "check": check,
        "fabric": "eth0",
        "partition": "node",
        "stack": "fake",
        "suite": "osu",
        "tags": ("ethernet", *tags),
        "nodes": 1,
        "limit_seconds": 600.0,
        "net_paths": (PlannedPath(name="rail0", sizes=(1, 2), starts=1, seconds=3.0),),
    }
    return Case(**{**facts, **changes})


CASES = [
    make_case("OsuBandwidth", "quick", "nightly", "full"),
    make_case("OsuBibw", "nightly", "full"),
    make_case("ImbExchange", "full", skipped="no IMB binary has Exchange"),
    make_case("OsuPut", "full", lost="fake is not installed"),
]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setattr(plan_module, "ask_reframe", lambda *_: CASES)
    shutil.copytree(TRAPS, tmp_path / "site")
    return tmp_path / "site"


def past(perflogs: Path, run_id: str, ended: float) -> None:
    case = reported_case(
        environ="fake",
        partition="node",
        system="traps",
        job_submit_time=100.0,
        job_completion_time_unix=ended,
    )
    write_report(perflogs, run_id, [case])
    write_leg(perflogs, run_id)
    old = perflogs / "vcluster" / "compute" / "records.jsonl"
    new = perflogs / "traps" / "node" / "records.jsonl"
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_text((new.read_text() if new.exists() else "") + old.read_text())
    old.unlink()


def test_a_plan_has_jobs_totals_and_one_sentence(fabricproof: Command, site: Path) -> None:
    ended = fabricproof("plan", "-t", "quick", "--site", site)
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "site traps -t quick: nothing was submitted"
    assert lines[3].split() == ["OsuBandwidth", "fake", "eth0", "1", "4", "600", "rail0", "4.2"]
    assert "quick leaves out 1 check: OsuBibw; all stacks, paths, sizes are in it" in lines
    assert "SKIPPED" not in ended.out
    assert lines[-1].startswith(f"Tonight: fabricproof run -t nightly --site {site} ")


def test_a_tag_that_is_a_pattern_is_printed_for_a_shell(fabricproof: Command, site: Path) -> None:
    """``-t`` takes what ReFrame takes: a bar would start another program."""
    lines = fabricproof("plan", "-t", "ether|inf", "--site", site).out.splitlines()
    assert lines[0] == "site traps -t 'ether|inf': nothing was submitted"
    assert lines[-1].startswith("Tonight: fabricproof run -t nightly -t 'ether|inf' --site ")


def test_a_level_that_leaves_out_stacks_paths_and_sizes_names_them(
    fabricproof: Command, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = make_case(
        "OsuBandwidth",
        "full",
        stack="other",
        net_paths=(PlannedPath(name="rail0+rail1", sizes=(1, 2, 1024), starts=1, seconds=3.0),),
    )
    monkeypatch.setattr(plan_module, "ask_reframe", lambda *_: [CASES[0], wide])
    out = fabricproof("plan", "--site", site).out
    assert (
        "quick leaves out 1 stack: other; 1 path: eth0:rail0+rail1; 1 size: 1KiB; "
        "all checks are in it"
    ) in out.splitlines()


def test_the_hundred_paths_of_a_sweep_do_not_flood_a_terminal(
    fabricproof: Command, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net_paths = tuple(
        PlannedPath(name=f"rail0.alg-{number:03}", sizes=(1024,), starts=1, seconds=3.0)
        for number in range(100)
    )
    sweep = make_case("AlgorithmSweep", "full", net_paths=net_paths)
    monkeypatch.setattr(plan_module, "ask_reframe", lambda *_: [CASES[0], sweep])
    (line,) = [
        line
        for line in fabricproof("plan", "--site", site).out.splitlines()
        if line.startswith("quick leaves out")
    ]
    assert "100 paths: eth0:rail0.alg-000, " in line
    assert " and 88 more (--json names them); " in line
    told = json.loads(fabricproof("plan", "--site", site, "--json").out)
    assert len(told["levels"][0]["leaves_out"]["net_paths"]) == 100


def test_what_does_not_run_is_named_with_its_reason(fabricproof: Command, site: Path) -> None:
    out = fabricproof("plan", "--site", site).out
    assert "SKIPPED 1: no IMB binary has Exchange (ImbExchange)" in out
    assert "MISSING 1: fake is not installed (OsuPut)" in out
    assert out.endswith("leaves nothing out; mend first what is MISSING)\n")


def test_without_history_the_default_is_stated(fabricproof: Command, site: Path) -> None:
    out = fabricproof("plan", "--site", site).out
    assert "learnt: nothing, there are no past jobs" in out
    assert "the stated default of 1.2 s for each start" in out
    assert "second looks: not in it" in out
    assert "how many nodes are free is not known" in out


def test_what_was_learnt_is_said_with_its_count(
    fabricproof: Command, site: Path, tmp_path: Path
) -> None:
    for run_id in (RUN, LATER):
        past(tmp_path / "perflogs", run_id, ended=110.0)
    ended = fabricproof("plan", "-t", "quick", "--site", site, "--json")
    (job,) = ended.record["estimates"]
    assert job["seconds"] == pytest.approx(10.0)
    assert job["lesson"]["jobs"] == 2
    out = fabricproof("plan", "-t", "quick", "--site", site).out
    assert "learnt: from 2 past jobs (medians; 1 by this check on this stack)" in out


def test_a_machine_gets_the_same(fabricproof: Command, site: Path) -> None:
    record = fabricproof("plan", "--site", site, "--json").record
    assert record["site"] == "traps"
    assert record["cost"]["jobs"] == 2
    quick = record["levels"][0]
    assert (quick["name"], quick["leaves_out"]["checks"]) == ("quick", ["OsuBibw"])
    (lost,) = record["lost"]
    assert (lost["check"], lost["lost"]) == ("OsuPut", "fake is not installed")
    (leg,) = record["estimates"][0]["net_paths"]
    assert (leg["name"], leg["seconds"], leg["leg_seconds"]) == ("rail0", 3.0, pytest.approx(4.2))


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_nothing_selected_has_its_own_status(
    fabricproof: Command, site: Path, as_json: tuple[str, ...]
) -> None:
    ended = fabricproof("plan", "-t", "no-such-tag", "--site", site, *as_json)
    assert ended.status == 6
    assert as_json or "no check would run" in ended.out


def test_a_run_is_compared_by_what_older_runs_teach(
    fabricproof: Command, site: Path, tmp_path: Path
) -> None:
    past(tmp_path / "perflogs", RUN, ended=110.0)
    past(tmp_path / "perflogs", LATER, ended=120.0)
    ended = fabricproof("plan", "--site", site, LATER)
    assert ended.status == 0
    row = next(line for line in ended.out.splitlines() if line.startswith("OsuBandwidth"))
    # One older job is not enough to learn from: 3 s by the model, 1.2 s for the start.
    assert row.split() == ["OsuBandwidth", "1", "4", "20", "4", "40", "-79%"]
    assert "expected over measured: " in ended.out
    within = ("plan", "--site", site, LATER, "--within")
    assert fabricproof(*within, "25").status == 0
    assert fabricproof(*within, "1").status == 1
    record = fabricproof("plan", "--site", site, LATER, "--json").record
    assert record["lessons"]["jobs"] == 1
    assert record["checks"][0]["measured_seconds"] == 20.0


def test_a_run_that_is_not_there_is_named(fabricproof: Command, site: Path, tmp_path: Path) -> None:
    past(tmp_path / "perflogs", RUN, ended=110.0)
    ended = fabricproof("plan", "--site", site, LATER)
    assert ended.status == 66
    assert RUN in ended.err
    assert f"; next: ls {tmp_path}/perflogs/reports   # or choose another --site\n" in ended.err


def test_a_wrong_site_and_a_wrong_pattern_are_refused(fabricproof: Command, site: Path) -> None:
    (site / "site.toml").write_text("[site]\n")
    assert fabricproof("plan", "--site", site).status == 78
    ended = fabricproof("plan", "-t", "(", "--site", site)
    assert ended.status == 2
    assert "is no pattern" in ended.err


def test_a_stack_to_build_is_named_first(
    fabricproof: Command, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (site / "site.toml").read_text()
    suites = 'suites = { osu = "PATH" }'
    assert suites in text
    (site / "site.toml").write_text(text.replace(suites, 'spack = "openmpi"'))
    ended = fabricproof("plan", "-t", "quick", "--site", site)
    assert ended.status == 0
    assert "built first: fake: " in ended.out
    assert "not in the totals" in ended.out
