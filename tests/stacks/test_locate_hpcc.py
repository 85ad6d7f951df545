"""The distribution's hpcc is for the distribution's MPI alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.stacks.catalog import load_catalog
from fabricproof.stacks.programs import locate

OTHERS = ("openmpi5", "mpich5", "intelmpi")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_it_is_found_for_the_mpi_that_it_is_linked_with(path: Path) -> None:
    program = path / "hpcc"
    program.touch(mode=0o755)
    found = locate(load_catalog().stacks["openmpi4"], path, "hpcc", "LatencyBandwidth")
    assert found.argv == (str(program),)


@pytest.mark.parametrize("name", OTHERS)
def test_no_other_stack_gets_it(path: Path, name: str) -> None:
    (path / "hpcc").touch(mode=0o755)
    found = locate(load_catalog().stacks[name], path, "hpcc", "LatencyBandwidth")
    assert found.argv is None
    assert "linked with its own MPI" in found.reason
    assert not found.lost


def test_a_machine_without_it_says_what_to_install(path: Path) -> None:
    found = locate(load_catalog().stacks["openmpi4"], path, "hpcc", "LatencyBandwidth")
    assert (found.argv, found.reason) == (None, "no hpcc on this machine (Debian: hpcc)")
