"""A pipe, a device or a link that leads nowhere in place of a file: told, and never waited for."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from report_data import NEWEST, recorded

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SITE = ROOT / "site-configs" / "vcluster-spack"
#: seconds after which a command counts as hung
HUNG = 20

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Let what waits fail."""

    def hung(*_: object) -> None:
        raise AssertionError("it waits for somebody to write into a pipe")

    monkeypatch.setenv("FABRICPROOF_SITES", str(tmp_path))
    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(HUNG)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


PIPE: Callable[[Path], object] = os.mkfifo
ENDLESS: Callable[[Path], object] = lambda path: path.symlink_to("/dev/zero")  # noqa: E731


@pytest.mark.parametrize("make", [PIPE, ENDLESS])
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("fabric.toml", 66),
        ("references.toml", 66),
    ],
)
def test_in_place_of_a_file_of_a_site(
    name: str, status: int, make: Callable[[Path], object], tmp_path: Path, fabricproof: Command
) -> None:
    site = tmp_path / "mine"
    shutil.copytree(SITE, site)
    _replaced(site / name, make)
    ended = fabricproof("site", "check", site)
    assert (ended.status, ended.out) == (status, "")
    assert f"{site}/{name}: cannot read: no file" in ended.err


@pytest.mark.parametrize("make", [PIPE, ENDLESS])
def test_in_place_of_what_spack_is_told(
    make: Callable[[Path], object], tmp_path: Path, fabricproof: Command
) -> None:
    shutil.copytree(SITE, tmp_path / "mine")
    _replaced(tmp_path / "mine" / "spack" / "packages.yaml", make)
    ended = fabricproof("stack", "list", "--site", tmp_path / "mine")
    assert ended.status == 0
    assert "packages.yaml" in ended.out


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
        ("vcluster/.night/state.jsonl", ["nightly", "--alive"]),
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


@pytest.mark.parametrize("make", [PIPE, ENDLESS])
@pytest.mark.parametrize("name", ["head.txt", "slurm.txt", "node-compute.txt"])
def test_in_place_of_what_a_machine_showed(
    name: str, make: Callable[[Path], object], tmp_path: Path, fabricproof: Command
) -> None:
    folder = tmp_path / "kept"
    shutil.copytree(DATA / "discover" / "virtual-cluster", folder)
    _replaced(folder / name, make)
    ended = fabricproof("site", "init", "new", "--from", folder)
    assert (ended.status, ended.out) == (66, "")
    assert f"{folder}/{name}: cannot read: no file" in ended.err
    assert "next: fabricproof site init NAME --keep FOLDER" in ended.err


@pytest.mark.parametrize("make", [PIPE, ENDLESS])
@pytest.mark.parametrize("name", ["ibnetdiscover.txt", "iblinkinfo.txt", "issm.txt"])
def test_in_place_of_what_a_fabric_showed(
    name: str, make: Callable[[Path], object], tmp_path: Path, fabricproof: Command
) -> None:
    folder = tmp_path / "kept"
    shutil.copytree(DATA / "subnet" / "tree", folder)
    _replaced(folder / name, make)
    ended = fabricproof("subnet", "check", "--from", folder)
    assert (ended.status, ended.out) == (66, "")
    assert f"{folder}/{name}: cannot read: no file" in ended.err
