"""Stacks that are only there in name, so that job scripts can be written anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.stack.catalog import ROOT_VARIABLE, load_catalog
from fabricproof.stack.environment import ports_folder
from fabricproof.stack.programs import IMB_HOME, PORTS
from fabricproof.stack.workload import IMB_BINARIES


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "stacks"
    for name in load_catalog().stacks:
        folder = ports_folder(root / name)
        folder.mkdir(parents=True)
        for port in PORTS:
            (folder / f"{port}.py").touch()
    (root / IMB_HOME / "bin").mkdir(parents=True)
    for binary in IMB_BINARIES:
        (root / IMB_HOME / "bin" / binary).touch()
    monkeypatch.setenv(ROOT_VARIABLE, str(root))
    return root
