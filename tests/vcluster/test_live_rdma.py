"""Real guests, in tiny clusters of their own.  Opt in, as root: pytest -m vcluster tests/vcluster.

Two guests of 768 MB; two emulated cores have to bring them up, so each test takes half a minute.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vcluster.errors import VclusterError
from vcluster.guests import rdma as guests
from vcluster.paths import Paths, failure_logs
from vcluster.plan import RDMA, Wishes, make_plan
from vcluster.processes import all_pids, marked, namespace

pytestmark = [pytest.mark.vcluster, pytest.mark.timeout(400)]

_NAME, _OTHER = "rdma-t1", "rdma-t2"
_PATHS = Paths(_NAME)
_UP = ("up", "--kind", "rdma", "--nodes", "2", "--memory", "768")
#: until a server in a busy emulated guest listens, and between two clients that ask for it
_LISTEN_SECONDS, _PAUSE_SECONDS = 90, 0.5
_GUESTS_SOURCE = Path(guests.__file__).parent


def _command(*words: str, name: str = _NAME) -> list[str]:
    verb, *rest = words
    return [sys.executable, "-m", "vcluster", verb, "--name", name, *rest]


def _vcluster(
    *words: str, name: str = _NAME, timeout: float = 180, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(*words, name=name), capture_output=True, text=True, timeout=timeout, check=False,
        input=stdin,
    )  # fmt: skip


def _footprint() -> dict[str, set[str]]:
    """Everything of clusters of these names that could be left on the machine."""
    names = (_NAME, _OTHER)
    found = {str(pid) for name in names for pid in marked(f"FABRICPROOF_VCLUSTER_INIT={name}")}
    for pid in all_pids():
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            if any(f"/{name}/" in line for name in names):
                found.add(f"{pid} {line}")
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    found_there = [*Path("/tmp").glob("fabricproof-*"), *Path("/dev/shm").glob("*fabricproof*")]
    # What fabricproof itself has there comes and goes beside us.
    others = ("fabricproof-night-", "fabricproof-plan-")
    temporary = [path for path in found_there if not path.name.startswith(others)]
    files = [path for name in names for path in Path("/run/fabricproof").rglob(f"{name}*")]
    return {
        "processes": found,
        "mounts": {
            line
            for line in Path("/proc/mounts").read_text().splitlines()
            if any(name in line for name in names)
        },
        "interfaces": {re.split(r"[:@]", line)[1].strip() for line in links.splitlines()},
        "files": {str(path) for path in [*temporary, *files]},
    }


def _networks() -> set[str]:
    """Return the network namespaces of the running cluster; each is alive by its processes only."""
    spaces = json.loads(_PATHS.state.read_text())["spaces"]
    return {space["net"] for space in spaces}


def _settled(before: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the footprint, once it is as before or five seconds have passed."""
    deadline = time.monotonic() + 5
    while (seen := _footprint()) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    return seen


@pytest.fixture(scope="module", autouse=True)
def machine() -> Iterator[dict[str, set[str]]]:
    """Nothing of the clusters before, nothing of them afterwards."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    try:
        guests.require_machine()
        guests.require_memory(make_plan(_NAME, Wishes(kind=RDMA, memory_mb=768), 0))
    except VclusterError as lacking:
        pytest.skip(str(lacking))
    for name in (_NAME, _OTHER):
        _vcluster("down", name=name)
    before = _footprint()
    assert not before["processes"]
    yield before
    for name in (_NAME, _OTHER):
        assert _vcluster("down", name=name).returncode == 0
    assert _settled(before) == before


@pytest.fixture
def up(machine: object) -> None:
    done = _vcluster(*_UP)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def nothing(machine: dict[str, set[str]]) -> Iterator[dict[str, set[str]]]:
    """For a test that begins and ends without a cluster."""
    _vcluster("down")
    yield machine
    assert _settled(machine) == machine


def _status() -> dict[str, Any]:
    seen: dict[str, Any] = json.loads(_vcluster("status", "--json").stdout)
    return seen


def _inside(host: str, *words: str) -> str:
    done = _vcluster("exec", host, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _switch_rates(port: str) -> str:
    """Return the shaper of the switch's end of a cable."""
    spaces = json.loads(_PATHS.state.read_text())["spaces"]
    pid = next(space["pid"] for space in spaces if space["name"] == "switches")
    command = ["nsenter", f"--net=/proc/{pid}/ns/net", "--", "tc", "qdisc", "show", "dev", port]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout


@pytest.mark.usefixtures("up")
def test_every_rail_of_every_guest_has_a_device_that_is_active() -> None:
    for host in ("vc1", "vc2"):
        told = _inside(host, "rdma", "link").splitlines()
        assert [line.split()[1] for line in told] == ["rxe0/1", "rxe1/1"]
        assert all("state ACTIVE physical_state LINK_UP" in line for line in told)
        assert [line.split()[-1] for line in told] == ["rail0", "rail1"]


def _first_that_connects(
    client: str, serving: subprocess.Popen[str]
) -> subprocess.CompletedProcess[str]:
    """Run a client until it succeeds: how long its server takes to listen is not known."""
    deadline = time.monotonic() + _LISTEN_SECONDS
    while True:
        done = _vcluster("exec", "vc1", "sh", "-c", client)
        # A server serves once: where it has ended, another client would find none.
        over = serving.poll() is not None or time.monotonic() > deadline
        if done.returncode == 0 or over:
            return done
        time.sleep(_PAUSE_SECONDS)


@pytest.mark.usefixtures("up")
def test_verbs_carry_bytes_and_the_device_counts_them() -> None:
    counter = "/sys/class/infiniband/rxe1/ports/1/counters/port_xmit_data"
    before = int(_inside("vc1", "cat", counter))
    server = "exec timeout 150 ib_write_bw -F -d rxe1 -n 50"
    client = "exec timeout 30 ib_write_bw -F -d rxe1 -n 50 198.19.1.12"
    command = _command("exec", "vc2", "sh", "-c", server)
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, stdin=-3) as serving:
        try:
            done = _first_that_connects(client, serving)
            assert done.returncode == 0, done.stderr + done.stdout
            serving.communicate(timeout=60)
        finally:
            serving.kill()
    words = int(_inside("vc1", "cat", counter)) - before
    assert words * 4 >= 50 * 65536  # in words of 4 bytes (rdma_core, port counters)


@pytest.mark.usefixtures("up")
def test_status_has_kind_acceleration_and_every_interface() -> None:
    seen = _status()
    assert seen["healthy"]
    assert seen["plan"]["kind"] == "rdma"
    assert seen["plan"]["memory_mb"] == 768
    assert seen["acceleration"].startswith(("KVM", "software emulation"))
    for node in seen["nodes"]:
        assert node["daemons"] == {"munged": True, "slurmd": True}
        shown = {each["name"]: each for each in node["interfaces"]}
        assert sorted(shown) == ["mgmt0", "rail0", "rail1"]
        assert (shown["rail0"]["mtu"], shown["rail0"]["state"]) == (4200, "UP")
        assert shown["rail1"]["planned_rate_bit_s"] == 80_000_000


@pytest.mark.usefixtures("up")
def test_exec_keeps_words_status_input_and_folder() -> None:
    words = ["a b", "", "it's", '"$HOME"', "two\nlines", "*"]
    done = _vcluster("exec", "vc1", "printf", "%s\\n--\\n", *words)
    assert done.stdout == "".join(f"{word}\n--\n" for word in words)
    assert _vcluster("exec", "vc2", "sh", "-c", "exit 7").returncode == 7
    assert _vcluster("exec", "vc1", "no-such-program").returncode == 127
    assert _vcluster("exec", "vc1", "tr", "a-z", "A-Z", stdin="through\n").stdout == "THROUGH\n"
    assert _inside("vc1", "pwd").strip() == str(Path.cwd())  # the project's folder is shared
    assert _inside("vc2", "hostname").strip() == "vc2"


@pytest.mark.usefixtures("up")
def test_up_again_says_at_once_that_all_is_well_and_another_kind_is_one_message() -> None:
    assert "was up and is healthy" in _vcluster(*_UP).stdout
    assert "was up and is healthy" in _vcluster("up").stdout
    done = _vcluster("up", "--kind", "namespaces", "--nodes", "4")
    assert done.returncode == 78
    assert len(done.stderr.splitlines()) == 1
    assert "expected kind namespaces, got 2 guests with Soft-RoCE" in done.stderr
    assert _status()["healthy"]


@pytest.mark.usefixtures("up")
def test_a_pulled_cable_takes_the_devices_port_down() -> None:
    assert _vcluster("fault", "vc1", "rail0", "--down").returncode == 0
    assert _inside("vc1", "cat", "/sys/class/infiniband/rxe0/ports/1/state").startswith("1: DOWN")
    assert _inside("vc1", "cat", "/sys/class/infiniband/rxe1/ports/1/state").startswith("4: ACTIVE")
    assert _status()["faults"] == {"vc1/rail0": "no carrier"}
    assert _vcluster("fault", "vc1", "rail0", "--clear").returncode == 0
    deadline = time.monotonic() + 20
    state = ""
    while not state.startswith("4: ACTIVE") and time.monotonic() < deadline:
        state = _inside("vc1", "cat", "/sys/class/infiniband/rxe0/ports/1/state")
    assert state.startswith("4: ACTIVE")
    assert _status()["faults"] == {}


@pytest.mark.usefixtures("up")
def test_a_dead_guest_is_seen_and_comes_back_without_its_faults() -> None:
    assert _vcluster("fault", "vc2", "rail1", "--rate", "5mbit").returncode == 0
    assert "rate 4975Kbit" in _switch_rates("vc2r1")
    assert _vcluster("kill", "vc2").returncode == 0
    done = _vcluster("exec", "vc2", "true")
    assert (done.returncode, done.stderr.count("\n")) == (69, 1)
    assert _vcluster("status").returncode == 69
    assert _vcluster("revive", "vc2").returncode == 0
    assert _status()["faults"] == {}
    # a rail that is slow and not said to be would be a false red
    assert "rate 79600Kbit" in _switch_rates("vc2r1")
    assert "rate 79600Kbit" in _inside("vc2", "tc", "qdisc", "show", "dev", "rail1")
    assert _vcluster("status").returncode == 0


@pytest.mark.usefixtures("up")
def test_down_works_when_qemu_was_killed_and_the_state_file_is_gone(
    machine: dict[str, set[str]],
) -> None:
    networks = _networks()
    spaces = json.loads(_PATHS.state.read_text())["spaces"]
    os.kill(next(space["pid"] for space in spaces if space["name"] == "vc1"), signal.SIGKILL)
    _PATHS.state.unlink()
    assert "is down" in _vcluster("down").stdout
    assert _settled(machine) == machine
    assert not {net for pid in all_pids() if (net := namespace(pid, "net")) in networks}


def _broken(folder: Path, line: str) -> list[str]:
    """Return a command that brings a cluster up whose guests do ``line`` first."""
    for name in ("guest_init.sh", "guest_packages.txt", "initramfs.sh"):
        (folder / name).write_text((_GUESTS_SOURCE / name).read_text())
    init = folder / "guest_init.sh"
    init.write_text(f"{line}\n{init.read_text()}")
    words = (
        "import sys; from pathlib import Path; from vcluster.guests import rdma; "
        f"rdma._HERE = Path({str(folder)!r}); from vcluster.__main__ import main; main()"
    )
    return [sys.executable, "-c", words, "up", "--name", _NAME, *_UP[1:]]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("echo a last word; echo o >/proc/sysrq-trigger; sleep 60", "a last word"),
        pytest.param(
            *("echo the reason; exit 3", r"the reason.*Kernel panic"), marks=pytest.mark.long
        ),
        ('set -- vc9 "$2"', r"said: .*/etc/vc9\.guest cannot be read"),
    ],
)
def test_a_guest_that_does_not_come_up_is_told_with_the_end_of_its_console(
    nothing: object, tmp_path: Path, line: str, words: str
) -> None:
    command = _broken(tmp_path, line)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 69, done.stderr
    told = done.stderr.splitlines()[-1]
    assert re.search(rf"console-vc\d\.log: the guest vc\d .*{words}", told)
    assert "Traceback" not in done.stderr
    kept = Path(told.removeprefix("vcluster: ").split(": ")[0])
    assert kept.is_relative_to(failure_logs())
    assert kept.is_file(), shlex.quote(told)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_an_interrupt_while_guests_come_up_leaves_nothing(
    nothing: dict[str, set[str]], number: signal.Signals
) -> None:
    child = subprocess.Popen(_command(*_UP), stdout=-1, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    for line in child.stderr:  # a phase is told when it has ended
        if line.rstrip().endswith("s  slurmctld"):
            break
    time.sleep(0.5)
    child.send_signal(number)
    _, told = child.communicate(timeout=60)
    assert child.returncode == 130, told
    assert "Traceback" not in told
    assert _settled(nothing) == nothing


def test_up_after_a_killed_up_builds_again(nothing: object) -> None:
    child = subprocess.Popen(_command(*_UP), stdout=-1, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    for line in child.stderr:
        if "switches, cables and rails" in line:
            break
    time.sleep(0.5)
    child.kill()
    child.communicate(timeout=10)
    assert _footprint()["processes"]
    done = _vcluster(*_UP)
    assert done.returncode == 0, done.stderr
    assert _vcluster("down").returncode == 0


@pytest.mark.long
def test_five_times_up_and_down_leave_nothing(nothing: dict[str, set[str]]) -> None:
    for _ in range(5):
        done = _vcluster(*_UP)
        assert done.returncode == 0, done.stderr
        networks = _networks()
        assert _vcluster("down").returncode == 0
        assert _settled(nothing) == nothing
        assert not {net for pid in all_pids() if (net := namespace(pid, "net")) in networks}


@pytest.mark.long
@pytest.mark.usefixtures("up")
def test_two_clusters_of_guests_run_beside_each_other_or_memory_is_told() -> None:
    done = _vcluster(*_UP, name=_OTHER)
    if done.returncode == 69:
        assert "too little memory for the guests" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    for name in (_NAME, _OTHER):
        srun = [str(Paths(name).bin / "srun"), "-N2", "hostname"]
        ran = subprocess.run(srun, capture_output=True, text=True, timeout=60, check=False)
        assert sorted(ran.stdout.split()) == ["vc1", "vc2"]
    assert _vcluster("down", name=_OTHER).returncode == 0
    assert _status()["healthy"]
