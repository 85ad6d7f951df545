"""``fabricproof site roll``: what is due, compared with what ReFrame loads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.cli.site import site as site_module
from fabricproof.site.roll import read_roll

Command = Callable[..., Any]

TRAPS = Path(__file__).parents[1] / "rfm" / "site"


def _check(name: str, fabric: str = "eth0") -> dict[str, Any]:
    return {"name": f"{name} %fabric={fabric}", "fabric": fabric, "tags": ["quick", "pt2pt"]}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    shutil.copytree(TRAPS, folder)
    described = [_check("OsuLatency"), _check("OsuLatency", "no-infiniband"), _check("OsuPut")]
    monkeypatch.setattr(site_module, "describe_checks", lambda *_: described)
    return folder


def test_a_roll_that_was_written_is_fine(fabricproof: Command, site: Path) -> None:
    assert fabricproof("site", "roll", site, "--write").status == 0
    assert [entry["check"] for entry in read_roll(site)] == ["OsuLatency", "OsuPut"]
    ended = fabricproof("site", "roll", site)
    assert (ended.status, ended.out) == (0, "traps: fine: 2 due\n")


def test_without_a_roll_everything_is_new(fabricproof: Command, site: Path) -> None:
    ended = fabricproof("site", "roll", site)
    assert ended.status == 78
    assert ended.out.count("\n+ ") + ended.out.startswith("+ ") == 2
    assert "0 gone, 2 new" in ended.err
    assert f"fabricproof site roll {site} --write" in ended.err
    assert not (site / "roll.json").exists()


def test_a_check_that_is_gone_is_shown(
    fabricproof: Command, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabricproof("site", "roll", site, "--write")
    monkeypatch.setattr(site_module, "describe_checks", lambda *_: [_check("OsuPut")])
    ended = fabricproof("site", "roll", site)
    assert ended.status == 78
    assert ended.out.startswith('- {"check": "OsuLatency"')
    assert "1 gone, 0 new" in ended.err


def test_json_is_the_roll_as_it_would_be_written(fabricproof: Command, site: Path) -> None:
    ended = fabricproof("site", "roll", site, "--json")
    assert ended.status == 78
    record = json.loads(ended.out)
    assert fabricproof("site", "roll", site, "--write", "--json").record == record
    assert read_roll(site) == record
