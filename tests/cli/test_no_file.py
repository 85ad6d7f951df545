"""A link that leads nowhere in place of a file or a folder: told, and not taken for absent."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from report_data import NEWEST, recorded

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SITE = ROOT / "site-configs" / "vcluster-spack"
Command = Callable[..., Any]


def _replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


NOWHERE: Callable[[Path], object] = lambda path: path.symlink_to("is-not-mounted")  # noqa: E731
ITSELF: Callable[[Path], object] = lambda path: path.symlink_to(path.name)  # noqa: E731


@pytest.mark.parametrize("make", [NOWHERE, ITSELF, Path.mkdir])
def test_references_that_cannot_be_read_are_not_taken_for_none(
    make: Callable[[Path], object], tmp_path: Path, fabricproof: Command
) -> None:
    """They may lie on a file system that is not mounted: without them PASS is cheaper."""
    shutil.copytree(SITE, tmp_path / "mine")
    _replaced(tmp_path / "mine" / "references.toml", make)
    output = DATA / "osu" / "document-004-put-bw.txt"
    ended = fabricproof("judge", output, "--site", tmp_path / "mine")
    assert (ended.status, ended.out) == (66, "")
    assert f"{tmp_path}/mine/references.toml: cannot read: " in ended.err


@pytest.mark.parametrize("make", [NOWHERE, ITSELF])
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("vcluster/compute", ["runs"]),
        ("vcluster/compute", ["report", NEWEST]),
        ("vcluster/labels.jsonl", ["runs"]),
        ("vcluster/.inventory/index.jsonl", ["preflight"]),
        ("vcluster/.night/events.jsonl", ["nightly", "--alive"]),
    ],
)
def test_a_history_that_cannot_be_read_is_not_taken_for_none(
    name: str,
    command: list[str],
    make: Callable[[Path], object],
    tmp_path: Path,
    fabricproof: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded(tmp_path)
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_SITES", str(ROOT / "site-configs"))
    path = tmp_path / "perflogs" / name
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        path.rename(tmp_path / "elsewhere")
    make(path)
    ended = fabricproof(*command, "--site", "vcluster")
    assert ended.status == 66
    assert f"{path}: cannot " in ended.err
