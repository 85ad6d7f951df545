"""``fabricproof site``: check, list and show."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[1] / "site" / "data"

Command = Callable[..., Any]


def test_all_shipped_sites_are_fine(fabricproof: Command) -> None:
    ended = fabricproof("site", "check")
    assert ended.status == 0
    assert "vcluster: fine:" in ended.out
    assert "local: fine:" in ended.out


def test_a_site_is_checked_by_its_folder(fabricproof: Command) -> None:
    ended = fabricproof("site", "check", DATA / "full")
    assert ended.status == 0
    assert "gordon: fine: 1 partition, 2 stacks, 4 references" in ended.out
    assert "ib0: QDR 4x: mlx4_0:1 3950 to 3950 MB/s (protocol), mlx4_1:1" in ended.out


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.write_text("{")])
def test_a_damaged_roll_is_found_as_well(
    make: Callable[[Path], object], fabricproof: Command, tmp_path: Path
) -> None:
    shutil.copytree(DATA / "full", tmp_path, dirs_exist_ok=True)
    make(tmp_path / "roll.json")
    ended = fabricproof("site", "check", tmp_path)
    assert (ended.status, ended.out) == (78, "")
    assert f"{tmp_path}/roll.json: damaged roll" in ended.err


def test_a_wrong_site_ends_with_one_line_and_status_78(
    fabricproof: Command, tmp_path: Path
) -> None:
    shutil.copytree(DATA / "full", tmp_path, dirs_exist_ok=True)
    fabric = tmp_path / "fabric.toml"
    fabric.write_text(fabric.read_text().replace("mtu = 2048", "mtu = 1500"))
    ended = fabricproof("site", "check", tmp_path)
    assert ended.status == 78
    assert ended.out == ""
    assert ended.err == (
        f"fabricproof: {tmp_path}/fabric.toml:5: fabric 'ib0': no MTU 1500 with ib: "
        "expected one of 256, 512, 1024, 2048, 4096 bytes, got 1500\n"
    )


def test_an_unknown_site_ends_with_status_66(fabricproof: Command) -> None:
    ended = fabricproof("site", "check", "nowhere")
    assert ended.status == 66
    assert "no such site" in ended.err


def test_no_site_at_all_is_no_success(
    fabricproof: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_SITES", str(tmp_path))
    assert fabricproof("site", "check").status == 66


def test_the_record_holds_the_ceilings_that_follow(fabricproof: Command) -> None:
    for arguments in (["site", "check", DATA / "full", "--json"], ["site", "show", DATA / "full"]):
        record = json.loads(fabricproof(*arguments).out)
        site = record[0] if isinstance(record, list) else record
        ceilings = site["fabrics"][0]["ceilings"]
        assert set(ceilings) == {"mlx4_0:1", "mlx4_1:1", "mlx4_0:1+mlx4_1:1"}
        assert ceilings["mlx4_1:1"]["name"] == "slot_packet"


def test_sites_are_listed(fabricproof: Command) -> None:
    assert "vcluster" in fabricproof("site", "list").out.splitlines()
    assert "vcluster" in json.loads(fabricproof("site", "list", "--json").out)
