"""A real, tiny cluster of its own.  Opt in, as root: pytest -m vcluster tests/vcluster."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vcluster.paths import Paths, project_root
from vcluster.processes import end, process

pytestmark = [pytest.mark.vcluster, pytest.mark.timeout(300)]

_NAME = "livetest"
_PATHS = Paths(_NAME)
_FABRICPROOF = [sys.executable, "-m", "fabricproof.cli"]


def _vcluster(*words: str, timeout: float = 90) -> subprocess.CompletedProcess[str]:
    verb, *rest = words
    command = [*_FABRICPROOF, "vcluster", verb, "--name", _NAME, *rest]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def _slurm(*words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    command = [str(_PATHS.bin / words[0]), *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def _footprint() -> dict[str, set[str]]:
    """Everything a cluster could leave behind on the machine."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    marks = set()
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if _NAME in line and entry.name.isdigit() and int(entry.name) != os.getpid():
            marks.add(f"{entry.name} {line}")
    return {
        "mounts": {line for line in Path("/proc/mounts").read_text().splitlines() if _NAME in line},
        "links": {re.split(r"[:@]", line)[1].strip() for line in links.splitlines()},
        "processes": {mark for mark in marks if "pytest" not in mark},
        "files": {str(path) for path in Path("/run/fabricproof").rglob(f"{_NAME}*")},
        "namespaces": _namespaces(),
    }


def _namespaces() -> set[str]:
    """Return the network namespaces that ip(8) knows by name."""
    done = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.fixture(scope="module", autouse=True)
def machine() -> Iterator[None]:
    """Nothing of the cluster before, nothing of it afterwards."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    _vcluster("down")
    before = _footprint()
    assert not before["processes"]
    yield
    assert _vcluster("down").returncode == 0
    deadline = time.monotonic() + 5
    while _footprint() != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _footprint() == before


@pytest.fixture(scope="module")
def workdir() -> Iterator[Path]:
    """A folder that outside and nodes both see."""
    cache = project_root() / ".cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        yield Path(folder)


@pytest.fixture
def up(machine: None) -> None:
    done = _vcluster("up", "--nodes", "2", "--rails", "2", "--rate", "100mbit")
    assert done.returncode == 0, done.stderr


def _status() -> dict[str, object]:
    seen: dict[str, object] = json.loads(_vcluster("status", "--json").stdout)
    return seen


def _finished(job: str, timeout: float = 30) -> str:
    deadline = time.monotonic() + timeout
    state = ""
    while time.monotonic() < deadline:
        line = _slurm("sacct", "-n", "-X", "-P", "-j", job, "-o", "State,ExitCode").stdout.strip()
        state = line.split(" ")[0]
        if state.split("|")[0] not in {"", "PENDING", "RUNNING", "COMPLETING"}:
            return line
        time.sleep(0.05)
    raise AssertionError(f"job {job} has not ended: {state!r}")


def _submit(workdir: Path, body: str, *options: str) -> str:
    script = workdir / "job.sh"
    script.write_text(f"#!/bin/sh\n{body}\n")
    log = f"--output={workdir}/%j.out"
    done = _slurm("sbatch", "--parsable", log, *options, str(script))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.usefixtures("up")
def test_a_job_runs_on_every_node() -> None:
    done = _slurm("srun", "-N2", "hostname")
    assert sorted(done.stdout.split()) == ["vc1", "vc2"]


@pytest.mark.usefixtures("up")
def test_the_commands_keep_folder_environment_and_status(workdir: Path) -> None:
    command = [str(_PATHS.bin / "srun"), "-N1", "sh", "-c", 'pwd; echo "$COLOUR"; exit 5']
    environment = {**os.environ, "COLOUR": "green"}
    done = subprocess.run(
        command,
        cwd=workdir,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout.split() == [str(workdir), "green"]
    assert done.returncode == 5


@pytest.mark.usefixtures("up")
def test_accounting_has_state_and_exit_code(workdir: Path) -> None:
    assert _finished(_submit(workdir, "true")) == "COMPLETED|0:0"
    assert _finished(_submit(workdir, "exit 7")) == "FAILED|7:0"


@pytest.mark.usefixtures("up")
def test_a_job_leaves_no_process_behind(workdir: Path) -> None:
    body = "setsid -f sleep 4711\nnohup sleep 4712 &\nexit 0"
    assert _finished(_submit(workdir, body)) == "COMPLETED|0:0"
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        seen = _vcluster("exec", "vc1", "ps", "-e", "-o", "args").stdout
        if "sleep 471" not in seen:
            return
        time.sleep(0.1)
    raise AssertionError(seen)


@pytest.mark.long
@pytest.mark.usefixtures("up")
def test_a_job_is_killed_at_its_limit(workdir: Path) -> None:
    job = _submit(workdir, "sleep 600", "--time=1")
    assert _finished(job, timeout=150).startswith("TIMEOUT")


@pytest.mark.usefixtures("up")
def test_a_node_has_its_own_view(tmp_path: Path) -> None:
    # The machine's /tmp is not the node's, but for the project where the checkout lies there.
    script = (
        f"hostname; ls /sys/class/net | tr '\\n' ' '; ls -d {tmp_path} 2>/dev/null | wc -l; "
        "ls /proc | grep -c '^[0-9]'"
    )
    name, interfaces, files, processes = _vcluster(
        "exec", "vc2", "sh", "-c", script.replace("tr '\\n' ' '", "xargs")
    ).stdout.splitlines()
    assert name == "vc2"
    assert interfaces.split() == ["lo", "mgmt0", "rail0", "rail1"]
    assert int(files) == 0
    assert int(processes) < 20


@pytest.mark.usefixtures("up")
def test_up_again_says_at_once_that_all_is_well() -> None:
    before = _status()
    done = _vcluster("up")
    assert "was up and is healthy" in done.stdout
    assert _status()["nodes"][0]["alive"]  # type: ignore[index]
    assert before["paths"] == _status()["paths"]


@pytest.mark.usefixtures("up")
def test_other_options_are_refused_and_nothing_changes() -> None:
    done = _vcluster("up", "--nodes", "5")
    assert done.returncode == 78
    assert "expected nodes 5" in done.stderr
    assert _status()["healthy"]


@pytest.mark.usefixtures("up")
def test_two_commands_at_once_do_not_mix() -> None:
    """The second begins while the first holds the lock: in one of ten tries at the least."""
    words = ["vcluster", "revive", "--name", _NAME, "vc2"]
    for _ in range(10):
        first = subprocess.Popen([*_FABRICPROOF, *words], stdout=-1, stderr=-1, text=True)
        second = _vcluster("up")
        _, said = first.communicate(timeout=60)
        if second.returncode or first.returncode:
            break
    assert {first.returncode, second.returncode} == {0, 69}
    assert "another command is changing" in (second.stderr if second.returncode else said)


def _payload_mbit_s(rail: int, seconds: float = 2.0) -> float:
    """Return what iperf3 moves from vc1 to vc2 over a rail."""
    address = f"198.19.{rail}.12"
    server = _vcluster("exec", "vc2", "iperf3", "-s", "-1", "-D", "--bind", address)
    assert server.returncode == 0, server.stderr
    time.sleep(0.3)
    done = _vcluster("exec", "vc1", "iperf3", "-J", "-t", str(seconds), "-c", address)
    return float(json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]) / 1e6


@pytest.mark.usefixtures("up")
def test_a_rail_carries_its_payload_ceiling_and_never_more() -> None:
    ceiling = 100 * 1448 / 1538
    rates = [_payload_mbit_s(rail) for rail in (0, 1, 0)]
    assert max(rates) <= ceiling
    assert max(rates) >= 0.97 * ceiling


@pytest.mark.usefixtures("up")
def test_a_fault_slows_one_rail_and_is_cleared() -> None:
    assert _vcluster("fault", "vc1", "rail1", "--rate", "20mbit").returncode == 0
    assert _status()["faults"] == {"vc1/rail1": "rate 20mbit"}
    assert _payload_mbit_s(1) <= 20
    assert _payload_mbit_s(0) > 60
    assert _vcluster("fault", "vc1", "rail1", "--clear").returncode == 0
    assert _payload_mbit_s(1) > 60
    assert _status()["faults"] == {}


@pytest.mark.usefixtures("up")
def test_a_cut_cable_takes_the_carrier() -> None:
    carrier = ("exec", "vc1", "cat", "/sys/class/net/rail0/operstate")
    assert _vcluster(*carrier).stdout.strip() == "up"
    _vcluster("fault", "vc1", "rail0", "--down")
    assert _vcluster(*carrier).stdout.strip() in {"down", "lowerlayerdown"}
    _vcluster("fault", "vc1", "rail0", "--clear")
    assert _vcluster(*carrier).stdout.strip() == "up"


@pytest.mark.usefixtures("up")
def test_a_dead_node_is_seen_and_comes_back(workdir: Path) -> None:
    job = _submit(workdir, "sleep 300", "--nodelist=vc2", "--no-requeue")
    time.sleep(1)
    assert _vcluster("kill", "vc2").returncode == 0
    assert _vcluster("status").returncode == 69
    assert _finished(job, timeout=60).startswith("NODE_FAIL")
    assert _vcluster("revive", "vc2").returncode == 0
    assert _vcluster("status").returncode == 0
    assert sorted(_slurm("srun", "-N2", "hostname").stdout.split()) == ["vc1", "vc2"]


@pytest.mark.usefixtures("up")
def test_up_repairs_a_cluster_that_lost_half_its_daemons() -> None:
    for host, daemon in (("head", "slurmdbd"), ("head", "munged"), ("vc1", "slurmd")):
        done = _vcluster("exec", host, "pkill", "-9", "-x", daemon)
        assert done.returncode == 0, (host, daemon)
    assert not _status()["healthy"]
    assert _vcluster("up").returncode == 0
    assert _status()["healthy"]


@pytest.mark.usefixtures("up")
def test_up_rebuilds_when_the_head_is_gone() -> None:
    spaces = json.loads(_PATHS.state.read_text())["spaces"]
    head = process(next(space["pid"] for space in spaces if space["name"] == "head"))
    assert head is not None
    assert end([head]) == []
    assert _slurm("sinfo").returncode == 69
    assert _vcluster("up").returncode == 0
    assert _slurm("srun", "-N2", "hostname").returncode == 0


@pytest.mark.usefixtures("up")
def test_down_works_without_the_state_file() -> None:
    _PATHS.state.unlink()
    assert "is down" in _vcluster("down").stdout
    assert not _footprint()["processes"]


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    "delay_s",
    [pytest.param(0.3, marks=pytest.mark.long), 0.7, pytest.param(1.2, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_up_leaves_nothing(delay_s: float, number: signal.Signals) -> None:
    _vcluster("down")
    words = [*_FABRICPROOF, "vcluster", "up", "--name", _NAME, "--nodes", "2"]
    child = subprocess.Popen(words, stdout=-1, stderr=-1, text=True)
    time.sleep(delay_s)
    child.send_signal(number)
    child.communicate(timeout=60)
    if child.returncode == 0:
        pytest.skip("it was faster than the signal")
    assert child.returncode == 130
    assert not _footprint()["processes"]
    assert not _footprint()["files"]


@pytest.mark.usefixtures("machine")
def test_up_after_a_killed_up_builds_again() -> None:
    _vcluster("down")
    words = [*_FABRICPROOF, "vcluster", "up", "--name", _NAME, "--nodes", "2"]
    child = subprocess.Popen(words, stdout=-1, stderr=-1, text=True)
    time.sleep(0.8)
    child.kill()
    child.communicate(timeout=10)
    assert _vcluster("up", "--nodes", "2").returncode == 0
    assert _status()["healthy"]
    _vcluster("down")


@pytest.mark.usefixtures("up")
def test_down_ends_commands_that_still_wait(workdir: Path) -> None:
    waiting = subprocess.Popen([str(_PATHS.bin / "srun"), "sleep", "600"], stdout=-1, stderr=-1)
    time.sleep(1)
    assert _vcluster("down").returncode == 0
    waiting.communicate(timeout=10)
    assert waiting.returncode != 0
