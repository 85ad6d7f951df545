"""``fabricproof compare`` and ``fabricproof ab`` as a person calls them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made import SITE, Made, nights, node_facts

from fabricproof.cli.measure import ab as ab_command
from fabricproof.cli.measure.run import Performed
from fabricproof.core.errors import ExitStatus
from fabricproof.history.compare.comparison import Asked, compare_sides
from fabricproof.history.compare.plan import read_plan, state_file
from fabricproof.history.compare.sides import choose_side

BEFORE, AFTER = "2026-11-01..2026-11-10", "2026-11-11.."

_SITE_FILE = """
[site]
name = "made"

[[partitions]]
name = "compute"
scheduler = "local"
fabrics = ["ib0"]
stacks = ["openmpi5"]

[[stacks]]
name = "openmpi5"
family = "openmpi"
version = "5.0"

[switches.mtu]
a = "echo a >> {state}"
b = "echo b >> {state}"
back = "echo back >> {state}"

[switches.broken]
a = "true"
b = "echo no such card; false"
"""

_FABRIC_FILE = """
[[fabrics]]
name = "ib0"
link = "HDR100"
rails = [{ interface = "mlx5_0:1" }, { interface = "mlx5_1:1" }]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a site folder whose switches write into ``state``, with perflogs of its own."""
    folder = tmp_path / "sites" / SITE
    folder.mkdir(parents=True)
    (folder / "site.toml").write_text(_SITE_FILE.format(state=tmp_path / "state"))
    (folder / "fabric.toml").write_text(_FABRIC_FILE)
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    return folder


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Return the history of that site."""
    return Made(tmp_path / "perflogs")


def half(where: tuple[Any, ...]) -> float:
    """Return the factor of a rail 1 that lost half its bandwidth."""
    return 0.5 if where[0] == "rail1" and where[2] == "bandwidth" else 1.0


def test_worse_ends_with_1_and_says_where(
    site: Path, made: Made, fabricproof: Callable[..., Any]
) -> None:
    """The first line has word, place, percent with sign, and direction."""
    nights(made, range(1, 7))
    nights(made, range(11, 17), factor=half, facts=node_facts(firmware="28.41.1000"))
    made.store()
    ended = fabricproof("compare", "firmware=28.39", "firmware=28.41", "--site", site)
    assert ended.status == ExitStatus.FAIL
    first = ended.out.splitlines()[0]
    assert first.startswith("WORSE: ")
    assert "rail1" in first
    assert "-50" in first or "-49" in first
    assert "which is worse" in first
    assert "firmware 28.39.1002 before, 28.41.1000 after" in ended.out
    assert f"Next: fabricproof trend --site {site}   (since when" in ended.out


def test_one_screen_without_all(site: Path, made: Made, fabricproof: Callable[..., Any]) -> None:
    """Without --all it fits a screen of fifty lines, and says what it left out."""
    nodes = tuple(f"n{at}" for at in range(8))
    nights(made, range(1, 7), nodes=nodes)
    nights(made, range(11, 17), nodes=nodes, factor=half)
    made.store()
    ended = fabricproof("compare", BEFORE, AFTER, "--site", site)
    assert len(ended.out.splitlines()) <= 50
    assert "(--all)" in ended.out
    whole = fabricproof("compare", BEFORE, AFTER, "--site", site, "--all")
    assert len(whole.out.splitlines()) > 150


def test_same_ends_with_0_and_undecided_with_5(
    site: Path, made: Made, fabricproof: Callable[..., Any]
) -> None:
    """Quiet runs are SAME; two runs against two decide nothing."""
    nights(made, range(1, 8))
    nights(made, range(11, 18))
    made.store()
    assert fabricproof("compare", BEFORE, AFTER, "--site", site).status == ExitStatus.PASS
    few = fabricproof("compare", "last:2@2026-11-08", "last:2", "--site", site)
    assert few.status == ExitStatus.UNJUDGED
    assert few.out.startswith("UNDECIDED: ")


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("2026-10-01", "latest"), ExitStatus.NOTHING_JUDGED, "an empty side"),
        (("nonsense", "latest"), ExitStatus.USAGE, "fabricproof runs"),
        (("=7", "latest"), ExitStatus.USAGE, "'=7' names no value of the inventory"),
        (("latest,", "latest"), ExitStatus.USAGE, "'latest,' has an empty name"),
        (("latest", "latest"), ExitStatus.USAGE, "on both sides"),
        (("latest~1", "latest", "--across", "unit"), ExitStatus.USAGE, "never alike"),
        (("latest~1", "latest", "--margin", "bandwidth=x"), ExitStatus.USAGE, "no margin"),
        (("latest~1", "latest", "--margin", "speed=3%"), ExitStatus.USAGE, "no margin"),
        (("latest~1", "latest", "--renamed", "n1"), ExitStatus.USAGE, "no renaming"),
        (
            ("latest~1", "latest", "--only", "rail=rail7"),
            ExitStatus.NOTHING_JUDGED,
            "--only rail=rail7",
        ),
        (("baseline:none", "latest"), ExitStatus.NO_INPUT, "none"),
        (("latest~1", "latest", "--only", "size=4parsecs"), ExitStatus.DATA, "parsecs"),
    ],
)
def test_bad_input_is_one_sentence_and_a_documented_status(
    site: Path,
    made: Made,
    fabricproof: Callable[..., Any],
    arguments: tuple[str, ...],
    status: ExitStatus,
    says: str,
) -> None:
    """Never a traceback, never a shorter result in silence."""
    nights(made, range(1, 4))
    made.store()
    ended = fabricproof("compare", *arguments, "--site", site)
    assert ended.status == status
    assert says in ended.err
    assert len(ended.err.splitlines()) == 1
    assert ended.out == ""


def test_the_record_holds_every_number(
    site: Path, made: Made, fabricproof: Callable[..., Any]
) -> None:
    """--json is strict JSON with each run's value of each quantity, words and warnings."""
    nights(made, range(1, 4))
    ids = nights(made, range(11, 14))
    made.store()
    record = fabricproof("compare", BEFORE, AFTER, "--site", site, "--json").record
    assert record["overall"] in {"BETTER", "SAME", "WORSE", "UNDECIDED"}
    assert [each["run_id"] for each in record["second"]["runs"]] == ids
    assert all(set(each["second"]) == set(ids) for each in record["quantities"])
    assert len(record["quantities"]) == 3 * 2 * 2 * 3
    assert {each["kind"] for each in record["groups"]} >= {"overall", "rail", "pair"}


def test_help_documents_sides_and_statuses(fabricproof: Callable[..., Any]) -> None:
    """Every form of a side and every status stands in --help."""
    text = " ".join(fabricproof("compare", "--help").out.split())
    for word in ("latest~3", "last:5", "baseline:NAME", "vc2:mtu=1400", "stack=NAME@BUILD"):
        assert word in text
    for word in ("1 for WORSE", "5 for UNDECIDED", "6 where nothing", "66: no records"):
        assert word in text


def test_a_baseline_is_a_side(made: Made) -> None:
    """Samples of a baseline stand against runs, by the same key; its runs are its columns."""
    ids = nights(made, range(1, 7))
    nights(made, range(11, 17), factor=half)
    store = made.store()
    matrix = store.matrix(ids)
    samples = {
        key: dict(zip(ids, row.tolist(), strict=True))
        for key, row in zip(matrix.keys, matrix.values, strict=True)
    }
    history = made.history(store, baseline=lambda _: samples)
    first, second = choose_side("baseline:good", history), choose_side(AFTER, history)
    found = compare_sides(store, history, first, second, Asked())
    by_runs = made.compare(BEFORE, AFTER)
    assert found.overall is by_runs.overall
    assert {each.key: each.shift for each in found.quantities} == {
        each.key: each.shift for each in by_runs.quantities
    }
    assert found.first.baseline == "good"
    assert any("outliers are left out" in each for each in found.warnings)


class Runs:
    """Stands for ReFrame: adds a run to the history in the state that the site is in."""

    def __init__(self, made: Made, state: Path) -> None:
        self.made = made
        self.state = state
        self.day = 0
        self.interrupted_at: int | None = None

    def __call__(self, *_: object, **__: object) -> Performed:
        self.day += 1
        if self.day == self.interrupted_at:
            return Performed(
                run_id="x", result=None, status=ExitStatus.INTERRUPTED, whole=False,
                reason="interrupted",
            )  # fmt: skip
        state = self.state.read_text().split()[-1]
        run_id = self.made.run(self.day, factor=half if state == "b" else lambda _: 1.0)
        self.made.store()
        return Performed(run_id=run_id, result=None, status=ExitStatus.PASS, whole=True)


def test_ab_plans_runs_and_compares(
    site: Path,
    made: Made,
    tmp_path: Path,
    fabricproof: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From plan to verdict on a site of files: b halves a rail, and WORSE says so."""
    runs = Runs(made, tmp_path / "state")
    monkeypatch.setattr(ab_command, "perform", runs)
    planned = fabricproof("ab", "plan", "mtu", "--rounds", "7", "--seed", "3", "--site", site)
    assert planned.status == 0
    assert "7 rounds, 0 of 14 runs done, seed 3" in planned.out
    ended = fabricproof("ab", "run", "mtu", "--site", site, "-t", "quick")
    assert ended.status == ExitStatus.FAIL, ended.err
    assert "WORSE: " in ended.out
    plan = read_plan(state_file(tmp_path / "perflogs", SITE, "mtu"))
    assert plan.arguments == ("-t", "quick")
    assert len(plan.blocks) == 14
    did = (tmp_path / "state").read_text().split()
    assert did == [*(each.side for each in plan.steps), "back"]
    again = fabricproof("compare", "mtu-a", "mtu-b", "--site", site, "--json")
    assert again.record["overall"] == "WORSE"
    assert len(again.record["first"]["runs"]) == 7


def test_ab_goes_on_after_an_interruption(
    site: Path,
    made: Made,
    tmp_path: Path,
    fabricproof: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C ends with 130 and the site is back; other options for the rest are refused."""
    runs = Runs(made, tmp_path / "state")
    runs.interrupted_at = 4
    monkeypatch.setattr(ab_command, "perform", runs)
    fabricproof("ab", "plan", "mtu", "--rounds", "3", "--site", site)
    ended = fabricproof("ab", "run", "mtu", "--site", site, "-t", "quick")
    assert ended.status == ExitStatus.INTERRUPTED
    assert (tmp_path / "state").read_text().split()[-1] == "back"
    refused = fabricproof("ab", "run", "mtu", "--site", site, "-t", "full")
    assert refused.status == ExitStatus.USAGE
    assert "begun with other options" in refused.err
    fabricproof("ab", "run", "mtu", "--site", site)
    shown = json.loads(fabricproof("ab", "show", "mtu", "--site", site, "--json").out)
    assert all(each["run_id"] for each in shown["steps"])
    assert shown["switched"] == ""


def test_ab_says_what_a_switch_said(
    site: Path,
    made: Made,
    tmp_path: Path,
    fabricproof: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A command that fails ends the plan with its own words and the next step."""
    (tmp_path / "state").write_text("a")
    monkeypatch.setattr(ab_command, "perform", Runs(made, tmp_path / "state"))
    fabricproof("ab", "plan", "broken", "--rounds", "1", "--site", site)
    ended = fabricproof("ab", "run", "broken", "--site", site)
    assert ended.status == ExitStatus.UNAVAILABLE
    assert "no such card" in ended.err
    assert f"fabricproof ab back broken --site {site}" in ended.err


def test_ab_refuses_what_is_not_there(site: Path, fabricproof: Callable[..., Any]) -> None:
    """No such switch, no such plan, a plan twice: one sentence each."""
    assert "one of: mtu, broken" in fabricproof("ab", "plan", "mtv", "--site", site).err
    assert fabricproof("ab", "run", "mtu", "--site", site).status == ExitStatus.NO_INPUT
    few = fabricproof("ab", "plan", "mtu", "--rounds", "5", "--site", site)
    assert "5 rounds can never say BETTER or WORSE" in few.out
    assert fabricproof("ab", "plan", "mtu", "--site", site).status == ExitStatus.USAGE
    assert fabricproof("ab", "plan", "mtu", "--site", site, "--replace").status == 0
