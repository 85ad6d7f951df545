"""Stacks that are only there in name, so that job scripts can be written anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricproof.benchmarks.catalogue import SUITES
from fabricproof.stacks.environment import ROOT_VARIABLE
from fabricproof.stacks.wheels import IMB_HOME, ports_folder, wheel_stacks


def pretend_stacks(root: Path, patch: pytest.MonkeyPatch) -> Path:
    """Make ``root`` look like a folder of installed stacks, and have it taken for theirs."""
    for name in wheel_stacks():
        folder = ports_folder(root / name)
        folder.mkdir(parents=True)
        for row in SUITES["osu-mpi4py"]:
            if row.has_port:
                (folder / f"{row.name}.py").touch()
    (root / IMB_HOME / "bin").mkdir(parents=True)
    for binary in {row.binary for row in SUITES["imb"]}:
        (root / IMB_HOME / "bin" / binary).touch()
    patch.setenv(ROOT_VARIABLE, str(root))
    return root


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give stacks that are there in name, for one test."""
    return pretend_stacks(tmp_path / "stacks", monkeypatch)


@pytest.fixture(scope="module")
def shared_stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give them once for all tests of a file: what asks ReFrame takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        yield pretend_stacks(tmp_path_factory.mktemp("shared") / "stacks", patch)
