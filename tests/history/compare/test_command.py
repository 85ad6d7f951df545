"""``fabricproof compare`` as a person calls them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made import SITE, Made, nights, node_facts

from fabricproof.core.errors import ExitStatus
from fabricproof.history.compare.comparison import Asked, compare_sides
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
"""

_FABRIC_FILE = """
[[fabrics]]
name = "ib0"
link = "HDR100"
rails = [{ interface = "mlx5_0:1" }, { interface = "mlx5_1:1" }]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a site folder with perflogs of its own."""
    folder = tmp_path / "sites" / SITE
    folder.mkdir(parents=True)
    (folder / "site.toml").write_text(_SITE_FILE)
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
    assert "firmware 28.39.1002 -> 28.41.1000" in ended.out
    assert f"  fabricproof trend --site {site}\n" in ended.out


def test_one_screen_without_all(site: Path, made: Made, fabricproof: Callable[..., Any]) -> None:
    """Without --all it fits 25 lines of 80 columns, and says what it left out; --csv has all."""
    nodes = tuple(f"n{at}" for at in range(8))
    nights(made, range(1, 7), nodes=nodes)
    nights(
        made, range(11, 17), nodes=nodes, factor=half, facts=node_facts(rail1_mtu=1400, kernel="7")
    )
    made.store()
    ended = fabricproof("compare", BEFORE, AFTER, "--site", site)
    lines = ended.out.splitlines()
    assert len(lines) <= 25
    assert all(len(each) <= 80 for each in lines if "--site" not in each)
    assert "(--all)" in ended.out
    whole = fabricproof("compare", BEFORE, AFTER, "--site", site, "--all")
    assert len(whole.out.splitlines()) > 150
    picture = site / "picture.svg"
    plotted = ("--csv", "--plot", picture)
    table = fabricproof("compare", BEFORE, AFTER, "--site", site, *plotted).out.splitlines()
    assert len(ET.parse(picture).getroot()) > 100
    assert len(table) == 1 + 28 * 2 * 2 * 3
    assert sum(",WORSE," in each for each in table) >= 28


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
        (("=7", "latest"), ExitStatus.USAGE, "nothing is called so: '=7'"),
        (("latest,", "latest"), ExitStatus.USAGE, "'latest,' has an empty name"),
        (("latest", "latest"), ExitStatus.USAGE, "on both sides"),
        (("latest~1", "latest", "--across", "unit"), ExitStatus.USAGE, "are not compared"),
        (("latest~1", "latest", "--margin", "bandwidth=x"), ExitStatus.USAGE, "no margin"),
        (("latest~1", "latest", "--margin", "speed=3%"), ExitStatus.USAGE, "no margin"),
        (
            ("latest~1", "latest", "--only", "rail=rail7"),
            ExitStatus.NOTHING_JUDGED,
            "--only rail=rail7",
        ),
        (("baseline:none", "latest"), ExitStatus.NO_INPUT, "none"),
        (
            ("latest~1", "latest", "--only", "size=4parsecs"),
            ExitStatus.NOTHING_JUDGED,
            "1KiB",
        ),
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
    for word in ("latest~3", "last:5", "baseline:NAME", "vc2:mtu=1400"):
        assert word in text
    for word in ("1 for WORSE", "5 for UNDECIDED", "6 where nothing", "66: no records"):
        assert word in text


def test_a_baseline_is_a_side(made: Made) -> None:
    """It stands for the runs that it was learnt from; those without records are told."""
    ids = nights(made, range(1, 7))
    nights(made, range(11, 17), factor=half)
    store = made.store()
    history = made.history(store, baseline=lambda name: [*ids, "gone"] if name == "good" else [])
    first, second = choose_side("baseline:good", history), choose_side(AFTER, history)
    found = compare_sides(store, history, first, second, Asked())
    by_runs = made.compare(BEFORE, AFTER)
    assert found.groups == by_runs.groups
    assert found.first.baseline == "good"
    assert any("1 of 7 runs have no records" in each for each in found.warnings)
