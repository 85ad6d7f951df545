from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabricproof.errors import NeedsPrivilegeError, UnavailableError
from fabricproof.vcluster import cluster, processes, run, service, state
from fabricproof.vcluster.node import Space, last_lines
from fabricproof.vcluster.paths import Paths
from fabricproof.vcluster.plan import Plan
from fabricproof.vcluster.processes import Process


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    base = tmp_path / "run" / "vcluster"
    monkeypatch.setattr("fabricproof.vcluster.paths.BASE", base)
    monkeypatch.setattr("fabricproof.vcluster.state.BASE", base)
    return Paths("tiny")


def _state(plan: Plan) -> state.State:
    init = Process(pid=2**22 + 5, start=1)
    space = Space(name="head", init=init, net="net:[1]", pid_space="pid:[2]")
    return state.State(plan=plan, spaces={"head": space}, complete=True, faults={"vc1/rail0": "x"})


def test_a_state_survives_its_file(paths: Paths, plan: Plan) -> None:
    paths.run.mkdir(parents=True)
    state.save(paths, _state(plan))
    assert state.load(paths) == _state(plan)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 0}', '{"format": 1}', "null"])
def test_a_damaged_state_counts_as_none(paths: Paths, text: str) -> None:
    paths.run.mkdir(parents=True)
    paths.state.write_text(text)
    assert state.load(paths) is None


def test_a_second_command_is_locked_out_and_told_by_whom(paths: Paths) -> None:
    with (
        state.locked(paths),
        pytest.raises(UnavailableError, match=f"process {os.getpid()}"),
        state.locked(paths),
    ):
        raise AssertionError("the lock was given twice")


def test_the_lock_leaves_nothing_behind(paths: Paths) -> None:
    with state.locked(paths):
        assert paths.lock.exists()
    assert not paths.lock.parent.parent.exists()


def test_the_lock_is_free_again_after_an_error(paths: Paths) -> None:
    with pytest.raises(ZeroDivisionError), state.locked(paths):
        raise ZeroDivisionError
    with state.locked(paths):
        assert paths.lock.exists()


def test_a_cluster_whose_head_is_dead_is_down(paths: Paths, plan: Plan) -> None:
    paths.run.mkdir(parents=True)
    state.save(paths, _state(plan))
    with pytest.raises(UnavailableError, match="vcluster up --name tiny"):
        service.running("tiny")


def test_without_root_it_says_what_can_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NeedsPrivilegeError, match="site 'local'"):
        cluster.require_machine()


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cluster, "find_program", lambda name: None if name == "slurmd" else name)
    with pytest.raises(UnavailableError, match=r"missing: slurmd; next: ci/bootstrap.sh"):
        cluster.require_machine()


def test_a_process_is_known_by_number_and_start() -> None:
    own = processes.process(os.getpid())
    assert own is not None
    assert own.alive()
    assert not Process(pid=own.pid, start=own.start + 1).alive()


def test_a_marked_process_is_found_and_ended() -> None:
    mark = f"FABRICPROOF_TEST_MARK={os.getpid()}"
    name, value = mark.split("=")
    child = subprocess.Popen([sys.executable, "-c", "input()"], env={name: value}, stdin=-1)
    try:
        assert processes.marked(mark) == [child.pid]
        found = processes.process(child.pid)
        assert found is not None
        assert processes.end([found]) == []
    finally:
        child.kill()
        child.communicate(timeout=10)


def test_a_program_that_fails_is_quoted() -> None:
    with pytest.raises(UnavailableError, match=r"status 3.*got the reason"):
        run.run(["sh", "-c", "echo the reason >&2; exit 3"])


def test_a_program_that_hangs_is_stopped() -> None:
    with pytest.raises(UnavailableError, match=r"did not end within 0\.1 s"):
        run.run(["sleep", "60"], timeout_s=0.1)


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(UnavailableError, match="'no-such-program' is not there"):
        run.run(["no-such-program"])


def test_the_end_of_a_log_is_one_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\n\nthree\n")
    assert last_lines(log, 3) == "two / three"
    assert last_lines(tmp_path / "none", 3) == ""
