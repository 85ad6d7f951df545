"""Installing: once, whole or not at all, and only what answers as pinned."""

import dataclasses
import json
import os
from pathlib import Path

import pytest

from fabricproof.core.errors import OutputError, UnavailableError
from fabricproof.stacks import install as room
from fabricproof.stacks.catalog import Catalog, load_catalog
from fabricproof.stacks.environment import ports_folder, stack_python
from fabricproof.stacks.install import InstallState, install, observe, remove

CATALOG = load_catalog()
STACK = CATALOG.stacks["mpich5"]


def _quiet(_line: str) -> None:
    """Report nothing."""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace what needs the network; the list tells what was asked for."""
    calls: list[str] = []

    def download(wheels: list[str], _downloads: Path) -> None:
        calls.append("download " + " ".join(wheels))

    def unpack(_catalog: Catalog, _stack: object, prefix: Path, _downloads: Path) -> None:
        stack_python(prefix).parent.mkdir(parents=True)
        stack_python(prefix).touch()

    monkeypatch.setattr(room, "_download", download)
    monkeypatch.setattr(room, "_install_wheels", unpack)
    monkeypatch.setattr(room, "_answer", lambda _stack, _prefix: "MPICH Version: 5.0.2")
    return calls


def test_install_puts_everything_in_place_and_then_is_instant(fake: list[str], tmp_path: Path):
    assert InstallState.ABSENT is observe(CATALOG, STACK, tmp_path).state
    entry = install(CATALOG, STACK, tmp_path, _quiet)
    assert (entry.state, entry.answer) == (InstallState.INSTALLED, "MPICH Version: 5.0.2")
    ports = {path.name for path in ports_folder(entry.prefix).iterdir()}
    assert {"osu_bw.py", "osu_latency.py", "osu_alltoall.py", "LICENSE.rst"} < ports
    assert (tmp_path / "modulefiles" / "mpich5" / "5.0.2.lua").is_file()
    install(CATALOG, STACK, tmp_path, _quiet)
    assert len(fake) == 1


def test_a_changed_pin_makes_it_stale_and_the_next_install_replaces_it(
    fake: list[str], tmp_path: Path
):
    install(CATALOG, STACK, tmp_path, _quiet)
    newer = dataclasses.replace(STACK, wheels=("mpich==5.0.3",))
    assert InstallState.STALE is observe(CATALOG, newer, tmp_path).state
    assert InstallState.INSTALLED is install(CATALOG, newer, tmp_path, _quiet).state
    assert "mpich==5.0.3" in fake[1]


def test_a_failed_installation_leaves_what_was_there(
    fake: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install(CATALOG, STACK, tmp_path, _quiet)
    newer = dataclasses.replace(STACK, wheels=("mpich==5.0.3",))

    def fail(*_arguments: object) -> str:
        raise UnavailableError("the index is down")

    monkeypatch.setattr(room, "_answer", fail)
    with pytest.raises(UnavailableError, match="index is down"):
        install(CATALOG, newer, tmp_path, _quiet)
    assert InstallState.INSTALLED is observe(CATALOG, STACK, tmp_path).state
    assert not list(tmp_path.glob(".partial-*"))


def test_what_a_killed_installation_left_is_cleared_away(fake: list[str], tmp_path: Path):
    left = tmp_path / f".partial-mpich5-{os.getpid() + 1}" / "lib"
    left.mkdir(parents=True)
    install(CATALOG, STACK, tmp_path, _quiet)
    assert not left.exists()


@pytest.mark.parametrize("stamp", ["", "[]", "{broken"])
def test_a_damaged_stamp_counts_as_absent(fake: list[str], tmp_path: Path, stamp: str):
    install(CATALOG, STACK, tmp_path, _quiet)
    (tmp_path / "mpich5" / "stamp.json").write_text(stamp)
    assert InstallState.ABSENT is observe(CATALOG, STACK, tmp_path).state
    assert InstallState.INSTALLED is install(CATALOG, STACK, tmp_path, _quiet).state


def test_pips_failure_is_its_own_error_line():
    failure = room._failure("downloading x", "WARNING: a\nERROR: No matching distribution\n")
    assert isinstance(failure, UnavailableError)
    assert "downloading x failed: ERROR: No matching distribution; next:" in str(failure)
    full = room._failure("installing x", "OSError: [Errno 28] No space left on device")
    assert isinstance(full, OutputError)


def test_another_mpi_than_the_pinned_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    python = stack_python(tmp_path)
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho 'Open MPI v4.1.4'\n")
    python.chmod(0o755)
    with pytest.raises(UnavailableError, match=r"another MPI than MPICH 5\.0\.2 answers"):
        room._answer(STACK, tmp_path)
    python.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(UnavailableError, match="apt-get install openmpi-bin libopenmpi3"):
        room._answer(CATALOG.stacks["openmpi4"], tmp_path)


def test_a_loaded_mpi_module_does_not_leak_into_the_question(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/other/lib")
    monkeypatch.setenv("OPAL_PREFIX", "/other")
    monkeypatch.setenv("HOME", "/h")
    clean = room._clean_environment()
    assert clean["HOME"] == "/h"
    assert not {"LD_LIBRARY_PATH", "OPAL_PREFIX"} & set(clean)


def test_remove_takes_the_stack_and_its_module_and_keeps_downloads(fake: list[str], tmp_path: Path):
    install(CATALOG, STACK, tmp_path, _quiet)
    assert remove(STACK, tmp_path, _quiet)
    assert not (tmp_path / "mpich5").exists()
    assert not (tmp_path / "modulefiles" / "mpich5" / "5.0.2.lua").exists()
    assert (tmp_path / "downloads").is_dir()
    assert not remove(STACK, tmp_path, _quiet)


def test_the_stamp_is_readable_by_people(fake: list[str], tmp_path: Path):
    install(CATALOG, STACK, tmp_path, _quiet)
    stamp = json.loads((tmp_path / "mpich5" / "stamp.json").read_text())
    assert ["mpich==5.0.2", CATALOG.mpi4py.wheel] == stamp["pins"]["wheels"]
