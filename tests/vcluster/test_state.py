from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from vcluster import cluster, processes, state
from vcluster.command import service
from vcluster.errors import ConfigError, NeedsPrivilegeError, UnavailableError
from vcluster.node import Space, last_lines
from vcluster.paths import Paths, project_root
from vcluster.plan import Plan, Wishes
from vcluster.processes import Process
from vcluster.rails.faults import Fault, Place


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    base = tmp_path / "run" / "vcluster"
    monkeypatch.setattr("vcluster.paths.BASE", base)
    monkeypatch.setattr("vcluster.state.BASE", base)
    return Paths("tiny")


def _state(plan: Plan) -> state.State:
    init = Process(pid=2**22 + 5, start=1)
    space = Space(name="head", init=init, net="net:[1]", pid_space="pid:[2]")
    return state.State(
        plan=plan,
        spaces={"head": space},
        complete=True,
        faults={Place(host="vc1", rail=0): Fault(rate_bit_s=10**7)},
    )


def test_a_state_survives_its_file(paths: Paths, plan: Plan) -> None:
    paths.run.mkdir(parents=True)
    state.save(paths, _state(plan))
    assert state.load(paths) == _state(plan)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 0}', '{"format": 1}', "null"])
def test_a_damaged_state_counts_as_none(paths: Paths, text: str) -> None:
    paths.run.mkdir(parents=True)
    paths.state.write_text(text)
    assert state.load(paths) is None


@pytest.mark.parametrize(
    "name", ["", ".", "..", "Upper", "1st", "a" * 25, "../etc", "with space", "a/b"]
)
def test_names_that_could_leave_the_run_folder_are_refused(
    name: str, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``down`` removes the folder of that name, so it asks first, as every command does."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    paths.run.mkdir(parents=True)
    for refused in (
        service.down,
        service.running,
        lambda each: service.ensure_up(each, Wishes(), print),
    ):
        with pytest.raises(ConfigError, match="not a name for a virtual cluster"):
            refused(name)
    assert paths.run.is_dir()


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
    with pytest.raises(NeedsPrivilegeError, match=r"next: sudo\Z"):
        cluster.require_machine(accounting=True)
    monkeypatch.setenv("VCLUSTER_INSTEAD", "without root the site 'local' works")
    with pytest.raises(NeedsPrivilegeError, match=r"sudo; without root the site 'local' works\Z"):
        cluster.require_machine(accounting=True)


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cluster, "find_program", lambda name: None if name == "slurmd" else name)
    with pytest.raises(UnavailableError, match=r"missing: slurmd; next: ci/bootstrap.sh"):
        cluster.require_machine(accounting=True)


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
        processes.run(["sh", "-c", "echo the reason >&2; exit 3"])


def test_a_program_that_hangs_is_stopped() -> None:
    with pytest.raises(UnavailableError, match=r"did not end within 0\.1 s"):
        processes.run(["sleep", "60"], timeout_s=0.1)


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(UnavailableError, match="'no-such-program' is not there"):
        processes.run(["no-such-program"])


def test_the_end_of_a_log_is_one_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\n\nthree\n")
    assert last_lines(log, 3) == "two / three"
    assert last_lines(tmp_path / "none", 3) == ""


def _running_for(project: str, plan: Plan, paths: Paths) -> None:
    """Put a cluster on file whose head is this very test, brought up by ``project``."""
    paths.run.mkdir(parents=True)
    own = processes.process(os.getpid())
    assert own is not None
    space = Space(name="head", init=own, net="net:[1]", pid_space="pid:[2]")
    state.save(
        paths, state.State(plan=plan, spaces={"head": space}, complete=True, project=project)
    )


def test_a_cluster_of_another_checkout_is_neither_adopted_nor_ended(
    paths: Paths, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    _running_for("/elsewhere/fabricproof", plan, paths)
    with pytest.raises(ConfigError, match=r"another checkout.*got /elsewhere/fabricproof.*--name"):
        service.ensure_up("tiny", Wishes(), print)
    with pytest.raises(ConfigError, match="--of-another-checkout"):
        service.down("tiny")
    assert paths.state.exists()


@pytest.mark.parametrize(
    ("project", "of_another_checkout"),
    [("", False), (str(project_root()), False), ("/elsewhere/fabricproof", True)],
)
def test_what_is_ours_or_said_to_go_is_ended(
    paths: Paths,
    plan: Plan,
    monkeypatch: pytest.MonkeyPatch,
    project: str,
    of_another_checkout: bool,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    _running_for(project, plan, paths)
    ended: list[Paths] = []
    monkeypatch.setattr(cluster, "clear", ended.append)
    assert service.down("tiny", of_another_checkout=of_another_checkout)
    assert [each.run for each in ended] == [paths.run]


def test_a_dead_cluster_of_another_checkout_is_in_nobodys_way(
    paths: Paths, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cluster, "clear", lambda _: None)
    paths.run.mkdir(parents=True)
    state.save(paths, replace(_state(plan), project="/elsewhere/fabricproof"))
    assert service.down("tiny")


def test_without_accounting_nobody_asks_for_a_database(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    absent = {"mariadbd", "mariadb-install-db", "slurmdbd"}
    monkeypatch.setattr(cluster, "find_program", lambda name: None if name in absent else name)
    monkeypatch.setattr(cluster, "up", lambda plan, _: built.append(plan))
    built: list[Plan] = []
    with pytest.raises(UnavailableError, match=r"missing: .*slurmdbd"):
        service.ensure_up("tiny", Wishes(), print)
    assert service.ensure_up("tiny", Wishes(accounting=False), print)
    assert not built[0].accounting
    assert service.head_daemons(built[0]) == ("munged", "slurmctld")
    assert "no accounting" in service.describe(built[0])


@pytest.mark.parametrize(("place", "is_shared"), [("/tmp/python", True), ("/opt/python", False)])
def test_a_python_that_nodes_would_not_see_is_shared(
    place: str, is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package need not lie in the project's folder."""
    monkeypatch.setattr(service.sys, "prefix", place)
    assert (place in service._shares(Wishes(), None)) is is_shared
