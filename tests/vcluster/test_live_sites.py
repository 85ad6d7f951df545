"""What real sites ask of a job: features, a reservation, QOS and account, --export, power saving.

As root: pytest -m vcluster tests/vcluster/test_live_sites.py.  The check chooses its nodes itself
(every node with every other), so each case asks which nodes were measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fabricproof.stacks.environment import stacks_root
from vcluster.paths import Paths, project_root

pytestmark = [pytest.mark.vcluster, pytest.mark.timeout(560)]

_NAME = "siteslive"
_STACK = "openmpi5"
_FABRICPROOF = [sys.executable, "-m", "fabricproof.cli"]
_CHECK = str(project_root() / "checks" / "multirail" / "all_pairs.py")
#: what every job of the site must say, as sbatch is told
_ACCESS = '"--export=NONE", "-A", "fabric", "--qos=night"'


def _call(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_FABRICPROOF, *words], env=environment, capture_output=True, text=True, timeout=400,
        check=False,
    )  # fmt: skip


def _slurm(*words: str) -> str:
    """Run a command of Slurm on the cluster; return what it printed."""
    command = [str(Paths(_NAME).bin / words[0]), *words[1:]]
    environment = {**os.environ, "SLURM_CONF": str(Paths(_NAME).slurm_conf)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def _programs(folder: Path) -> list[str]:
    """Write Slurm's suspend and resume programs; each puts down for which nodes it was called."""
    for name in ("suspend", "resume"):
        program = folder / name
        program.write_text(f'#!/bin/sh\nscontrol show hostnames "$1" >>{folder}/{name}.called\n')
        program.chmod(0o755)
    return [f"SuspendProgram={folder}/suspend", f"ResumeProgram={folder}/resume"]


@pytest.fixture(scope="module")
def theirs() -> Iterator[dict[str, str]]:
    """Bring up a cluster with the rules of a large site; give the environment of a user there."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if not (stacks_root() / _STACK).is_dir():
        pytest.skip(f"needs {_STACK}: fabricproof stack install {_STACK}")
    paths, folder = Paths(_NAME), project_root() / "work" / "sites-tests"
    subprocess.run(["rm", "-rf", folder], check=True)
    (folder / "sites").mkdir(parents=True)
    environment = {
        **os.environ,
        "FABRICPROOF_VCLUSTER": _NAME,
        "FABRICPROOF_SITES": str(folder / "sites"),
        "FABRICPROOF_PERFLOGS": str(folder / "perflogs"),
        "FABRICPROOF_WORK": str(folder / "work"),
        "PATH": f"{paths.bin}{os.pathsep}{os.environ['PATH']}",
        "SLURM_CONF": str(paths.slurm_conf),
    }
    lines = [
        *("AccountingStorageEnforce=associations,limits,qos", "PrivateData=jobs,usage"),
        *("NodeName=DEFAULT Feature=rome,ib", *_programs(folder)),
        *("SuspendTime=36000", "SuspendTimeout=3", "ResumeTimeout=120"),
    ]
    options = [word for line in lines for word in ("--slurm", line)]
    try:
        done = _call(environment, "vcluster", "up", "--nodes", "4", "--rate", "150mbit", *options)
        assert done.returncode == 0, done.stderr
        _slurm("sacctmgr", "-i", "add", "qos", "night")
        _slurm("sacctmgr", "-i", "add", "account", "fabric")
        _slurm("sacctmgr", "-i", "add", "user", "root", "account=fabric", "qos=normal,night")
        _slurm("scontrol", "update", "NodeName=vc3", "AvailableFeatures=ib", "ActiveFeatures=ib")
        done = _call(environment, "site", "init", "theirs")
        assert done.returncode == 0, done.stderr
        yield environment
    finally:
        done = _call(environment, "vcluster", "down")
    assert done.returncode == 0, done.stderr


def _measured(environment: dict[str, str], access: str) -> tuple[set[str], dict[str, Any]]:
    """Measure all pairs with these words of access; return the nodes, and the whole result."""
    path = Path(environment["FABRICPROOF_SITES"]) / "theirs" / "site.toml"
    lines = path.read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("access = "))
    lines[at] = f'access = ["--licenses=fabric:1", {access}]'
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    choice = ("-c", _CHECK, "-n", "^AllPairsRound", "-p", _STACK)
    done = _call(environment, "run", "--site", "theirs", "--json", *choice)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    legs = [leg for leg in result["legs"] if leg["verdict"] not in {"SKIPPED", "MISSING"}]
    return {node for leg in legs for node in leg["nodes"]}, result


@contextmanager
def _maintenance(nodes: str) -> Iterator[None]:
    """Reserve nodes as an administrator does before he works on them."""
    words = ("ReservationName=night", "users=root", "flags=maint,ignore_jobs", f"nodes={nodes}")
    _slurm("scontrol", "create", "reservation", *words, "starttime=now", "duration=60")
    try:
        yield
    finally:
        _slurm("scontrol", "delete", "ReservationName=night")


def test_features_and_a_reservation_decide_which_nodes_can_be_had(theirs: dict[str, str]) -> None:
    """vc3 has another feature, vc4 is reserved; no partition is named, --export=NONE is."""
    with _maintenance("vc4"):
        nodes, result = _measured(theirs, f'{_ACCESS}, "--constraint=rome"')
    assert nodes == {"vc1", "vc2"}, result


def test_the_acceptance_of_a_maintenance_measures_inside_its_reservation(
    theirs: dict[str, str],
) -> None:
    with _maintenance("vc[3-4]"):
        nodes, result = _measured(theirs, f'{_ACCESS}, "--reservation=night"')
    assert nodes == {"vc3", "vc4"}, result


def test_a_job_that_slurm_refuses_is_missing_in_slurm_s_words(theirs: dict[str, str]) -> None:
    nodes, result = _measured(theirs, '"-A", "nobody", "--qos=night"')
    assert not nodes
    reasons = [leg["reason"] for leg in result["legs"] if leg["verdict"] == "MISSING"]
    assert reasons
    assert all("Invalid account" in reason for reason in reasons), reasons


@pytest.mark.long
def test_nodes_that_slurm_powered_down_are_woken_and_measured(theirs: dict[str, str]) -> None:
    _slurm("scontrol", "update", "NodeName=vc3,vc4", "State=POWER_DOWN")
    _until(lambda: all("~" in state for state in _states("vc[3-4]")), "not powered down")
    ended = threading.Event()
    waker = threading.Thread(target=_wake, args=(theirs, ended))
    waker.start()
    try:
        nodes, result = _measured(theirs, _ACCESS)
    finally:
        ended.set()
        waker.join()
    assert nodes == {"vc1", "vc2", "vc3", "vc4"}, result


def _states(nodes: str) -> list[str]:
    return _slurm("sinfo", "-h", "-N", "-n", nodes, "-o", "%t").split()


def _until(holds: Any, what: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.5)


def _wake(environment: dict[str, str], ended: threading.Event) -> None:
    """Boot each node that Slurm's resume program was called for, as a cloud does."""
    called, woken = project_root() / "work" / "sites-tests" / "resume.called", set()
    while not ended.wait(0.5):
        wanted = set(called.read_text().split()) if called.exists() else set()
        for node in sorted(wanted - woken):
            _call(environment, "vcluster", "revive", node)
            woken.add(node)
