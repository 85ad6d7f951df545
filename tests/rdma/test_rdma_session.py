"""How the tests on real verbs end a run that hangs, and what they do without a cluster."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rdma_session
from rdma_session import Session

from process_groups import is_gone

#: plays fabricproof with a ReFrame that it waits for; each tells its SIGINT, where it heeds any
_HANGS = """
import pathlib, signal, subprocess, sys, time
folder, heeds, name = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
def interrupted(number, frame):
    (folder / f"{name}.interrupted").touch()
    if heeds == "heeds":
        sys.exit(130)
signal.signal(signal.SIGINT, interrupted)
if name == "fabricproof":
    child = subprocess.Popen([sys.executable, __file__, *sys.argv[1:3], "reframe"])
else:
    (folder / "ready").touch()
while True:
    time.sleep(0.05)
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """Short patience, and a Slurm that has a job of ours and one of somebody else's."""
    calls: list[tuple[str, ...]] = []

    def slurm(session: Session, *words: str) -> str:
        calls.append(words)
        return f"41 {tmp_path}/work/stage/x\n42 {tmp_path}/other\n" if "squeue" in words else ""

    monkeypatch.setattr(Session, "slurm", slurm)
    monkeypatch.setattr(rdma_session, "PATIENCE_SECONDS", 0.2)
    return calls


def _hanging(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> subprocess.Popen[str]:
    """Start a run that hangs, and return it once all of it is there."""
    program = tmp_path / "hangs.py"
    program.write_text(_HANGS)
    command = [sys.executable, str(program), str(tmp_path), how, "fabricproof"]
    monkeypatch.setattr(Session, "command", lambda *_: command)
    process = _session(tmp_path).start()
    deadline = time.monotonic() + 20
    while not (tmp_path / "ready").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def _session(tmp_path: Path) -> Session:
    return Session(environment={"FABRICPROOF_WORK": str(tmp_path / "work")}, cluster="none")


@pytest.mark.parametrize("how", ["heeds", "deaf"])
def test_a_run_without_end_is_interrupted_then_killed_and_its_job_cancelled(
    how: str, tmp_path: Path, asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rdma_session, "ENDING_SECONDS", 30 if how == "heeds" else 2)
    process = _hanging(tmp_path, how, monkeypatch)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            _session(tmp_path).finish(process)
        assert is_gone(process.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == (130 if how == "heeds" else -9)
    for name in ("fabricproof", "reframe"):  # fabricproof alone would leave ReFrame and its job
        assert (tmp_path / f"{name}.interrupted").exists(), name
    assert ("scancel", "41") in asked
    assert not [words for words in asked if "42" in words]


def test_a_run_that_is_over_is_left_alone(tmp_path: Path, asked: list[tuple[str, ...]]) -> None:
    with subprocess.Popen(["true"], text=True) as process:
        process.wait()
        _session(tmp_path).end(process)
    assert asked == []


def test_a_test_may_last_as_long_as_all_its_runs_may() -> None:
    # two fixtures look twice, and one test looks once more
    due = 3 * rdma_session.PATIENCE_SECONDS + rdma_session.ENDING_SECONDS
    modules = [path.stem for path in Path(__file__).parent.glob("test_rdma_*_live.py")]
    assert len(modules) == 4
    for name in modules:
        marks = {mark.name: mark for mark in importlib.import_module(name).pytestmark}
        assert marks["timeout"].args[0] > due, name


def test_a_cluster_that_was_named_and_is_not_there_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FABRICPROOF_VCLUSTER", "rdma")
    with pytest.raises(pytest.fail.Exception, match="does not answer"):
        rdma_session.unavailable("does not answer")
    monkeypatch.delenv("FABRICPROOF_VCLUSTER")
    with pytest.raises(pytest.skip.Exception, match="does not answer"):
        rdma_session.unavailable("does not answer")
