"""``fabricproof plan``: what it prints, and how it ends."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.cli.measure import plan as plan_module
from fabricproof.history.plan import Case
from reported_cases import reported_case, write_report

Command = Callable[..., Any]

TRAPS = Path(__file__).parents[1] / "rfm" / "site"


def make_case(check: str, *tags: str, **changes: Any) -> Case:
    facts: dict[str, Any] = {
        "check": check,
        "fabric": "eth0",
        "partition": "node",
        "stack": "fake",
        "tags": ("ethernet", *tags),
        "nodes": 2,
        "limit_seconds": 1800.0,
        "legs": ("rail0", "rail1"),
    }
    return Case(**{**facts, **changes})


CASES = [
    make_case("OsuBandwidth", "quick", "nightly", "full"),
    make_case("OsuBibw", "nightly", "full"),
    make_case("ImbExchange", "full", skipped="no IMB binary has Exchange"),
    make_case("OsuPut", "full", lost="fake is not installed"),
]

PLAN = """\
site {site} (everything): nothing was submitted
CHECK         STACK  FABRIC  NODES   LIMIT  LAST  LEGS
OsuBandwidth  fake   eth0        2  30 min   6 s  rail0, rail1
OsuBibw       fake   eth0        2  30 min     -  rail0, rail1

TOTAL           JOBS  LEGS  NODE-h AT MOST  LAST, ALL JOBS
this selection     2     4             2.0  6 s of 1 jobs
  quick            1     2             1.0  6 s
  nightly          2     4             2.0  6 s of 1 jobs
  full             2     4             2.0  6 s of 1 jobs
SKIPPED 1: no IMB binary has Exchange (ImbExchange)
MISSING 1: fake is not installed (OsuPut)

next: fabricproof run --site {folder}
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Return what ReFrame was asked for; it answers with :data:`CASES`."""
    asked: list[tuple[Any, ...]] = []

    def ask(_site: Any, _project: Any, *given: Any) -> list[Case]:
        asked.append(given)
        return CASES if "no-such-tag" not in given[0] else []

    monkeypatch.setattr(plan_module, "ask_reframe", ask)
    return asked


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[Any]) -> Path:
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    shutil.copytree(TRAPS, tmp_path / "site")
    ran = reported_case(environ="fake", partition="node", system="traps")
    write_report(tmp_path / "perflogs", "20261120T180000Z-000001", [ran])
    return tmp_path / "site"


def test_a_plan_has_jobs_nodes_limits_and_what_each_took(fabricproof: Command, site: Path) -> None:
    ended = fabricproof("plan", "--site", site)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == PLAN.format(site="traps", folder=site)


def test_a_machine_gets_the_same(fabricproof: Command, site: Path) -> None:
    record = fabricproof("plan", "--site", site, "--json").record
    assert [(each["check"], each["last_seconds"]) for each in record["jobs"]] == [
        ("OsuBandwidth", 6.5),
        ("OsuBibw", None),
    ]
    assert [(each["verdict"], each["reason"]) for each in record["not_run"]] == [
        ("SKIPPED", "no IMB binary has Exchange"),
        ("MISSING", "fake is not installed"),
    ]


def test_a_tag_that_is_a_pattern_is_printed_for_a_shell(
    fabricproof: Command, site: Path, asked: list[tuple[Any, ...]]
) -> None:
    """``-t`` takes what ReFrame takes: a bar would start another program."""
    out = fabricproof("plan", "-t", "ether|inf", "-p", "fake", "--site", site).out
    assert asked == [(("ether|inf",), "fake")]
    assert out.startswith("site traps -t 'ether|inf' -p fake: nothing was submitted\n")
    assert out.endswith(f"\nnext: fabricproof run -t 'ether|inf' -p fake --site {site}\n")


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_nothing_selected_has_its_own_status(
    fabricproof: Command, site: Path, as_json: tuple[str, ...]
) -> None:
    ended = fabricproof("plan", "-t", "no-such-tag", "--site", site, *as_json)
    assert ended.status == 6
    assert as_json or "no check would run" in ended.out


def test_a_wrong_site_and_a_wrong_pattern_are_refused(fabricproof: Command, site: Path) -> None:
    (site / "site.toml").write_text("[site]\n")
    assert fabricproof("plan", "--site", site).status == 78
    ended = fabricproof("plan", "-t", "(", "--site", site)
    assert ended.status == 2
    assert "is no pattern" in ended.err


def test_a_stack_to_build_is_named(fabricproof: Command, site: Path) -> None:
    text = (site / "site.toml").read_text()
    suites = 'suites = { osu = "PATH" }'
    assert suites in text
    (site / "site.toml").write_text(text.replace(suites, 'spack = "openmpi"'))
    ended = fabricproof("plan", "-t", "quick", "--site", site)
    assert ended.status == 0
    assert "built first: fake: " in ended.out
