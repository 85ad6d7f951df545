"""What guests need of a machine, and whether KVM is one that works."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from process_groups import is_gone
from vcluster import state
from vcluster.command import status
from vcluster.errors import UnavailableError
from vcluster.guests import accel
from vcluster.guests import rdma as guests
from vcluster.guests.guest import Guest
from vcluster.guests.image import Image
from vcluster.paths import Paths
from vcluster.plan import RDMA, Plan, Wishes, make_plan
from vcluster.processes import Process


def _plan(**wishes: int) -> Plan:
    return make_plan("soft", Wishes(kind=RDMA, nodes=wishes.get("nodes")), 24_000)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which guests can run; each test takes something away."""
    tun, meminfo = tmp_path / "tun", tmp_path / "meminfo"
    tun.touch()
    meminfo.write_text("MemTotal:       24684208 kB\nMemAvailable:   16000000 kB\n")
    monkeypatch.setattr(guests, "_TUN", tun)
    monkeypatch.setattr(guests, "_MEMINFO", meminfo)
    monkeypatch.setattr(guests, "find_program", lambda name: f"/usr/bin/{name}")
    return tmp_path


def test_a_machine_with_all_of_it_will_do(machine: Path) -> None:
    guests.require_machine()
    guests.require_memory(_plan())


@pytest.mark.parametrize(
    ("gone", "package"),
    [
        ({"qemu-system-x86_64"}, "packages qemu-system-x86;"),
        ({"ssh"}, "packages openssh-client;"),
        ({"ssh", "ssh-keygen"}, "packages openssh-client;"),
        ({"ssh-keygen", "qemu-system-x86_64"}, "packages openssh-client, qemu-system-x86;"),
    ],
)
def test_missing_programs_for_guests_are_named_as_packages(
    machine: Path, monkeypatch: pytest.MonkeyPatch, gone: set[str], package: str
) -> None:
    monkeypatch.setattr(guests, "find_program", lambda name: None if name in gone else name)
    with pytest.raises(UnavailableError, match=rf"{package} next: ci/bootstrap\.sh packages"):
        guests.require_machine()


def test_no_tap_devices_are_told_with_what_to_do(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guests, "_TUN", machine / "none")
    with pytest.raises(UnavailableError, match=r"got none; next: modprobe tun"):
        guests.require_machine()


def test_tap_devices_that_one_may_not_open_are_told_apart(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UnavailableError, match="got no permission"):
        guests.require_machine()


def test_another_processor_is_refused_with_what_works_there(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list(os.uname())
    told[4] = "aarch64"
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(told))
    with pytest.raises(UnavailableError, match=r"got aarch64.*kind 'namespaces' works here"):
        guests.require_machine()


def test_too_little_memory_is_told_with_how_much_is_needed(machine: Path) -> None:
    # two guests of 1280 MB, QEMU's own 400 MB for each, 512 MB for the rest
    (machine / "meminfo").write_text(f"MemAvailable: {3871 * 1024} kB\n")
    with pytest.raises(UnavailableError, match=r"expected 3872 MB available.*got 3871 MB"):
        guests.require_memory(_plan())
    (machine / "meminfo").write_text(f"MemAvailable: {3872 * 1024} kB\n")
    guests.require_memory(_plan())
    with pytest.raises(UnavailableError, match="for 3 guests of 1280 MB"):
        guests.require_memory(_plan(nodes=3))


def test_a_kernel_that_does_not_say_what_is_free_refuses_nothing(machine: Path) -> None:
    (machine / "meminfo").write_text("MemTotal: 100 kB\n")
    guests.require_memory(_plan())


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    """An image, a /dev/kvm that opens and a folder for a program that plays QEMU."""
    device, programs = tmp_path / "kvm", tmp_path / "programs"
    device.touch()
    programs.mkdir()
    monkeypatch.setattr(accel, "_DEVICE", device)
    monkeypatch.setattr(accel, "PROBE_SECONDS", 1.5)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(accel, "clean_environment", lambda: dict(os.environ))
    folder = tmp_path / "image"
    folder.mkdir()
    return Image(folder=folder)


def _qemu(tmp_path: Path, body: str) -> None:
    """Let a script play QEMU, with its serial line on its standard output."""
    program = tmp_path / "programs" / "qemu-system-x86_64"
    program.write_text(f"#!/bin/sh\necho ran >>{tmp_path}/runs\n{body}\n")
    program.chmod(0o755)


def _runs(tmp_path: Path) -> int:
    try:
        return len((tmp_path / "runs").read_text().splitlines())
    except FileNotFoundError:
        return 0


_COMES_UP = 'echo "fabricproof-guest: kernel 7.3 runs"; exec sleep 60'
#: what QEMU 7.2 says where the processor below has no such register
_ABORT = """
echo 'qemu-system-x86_64: error: failed to set MSR 0x10a to 0x69' >&2
echo 'qemu-system-x86_64: ../../target/i386/kvm/kvm.c:3213: kvm_buf_set_msrs: Assertion failed' >&2
kill -ABRT $$
"""


def test_kvm_is_taken_where_a_kernel_comes_up_under_it(image: Image, tmp_path: Path) -> None:
    _qemu(tmp_path, _COMES_UP)
    chosen = accel.choose(image, None)
    assert chosen.name == "kvm"
    assert chosen.reason.startswith("KVM: a kernel came up in ")


def test_a_kernel_that_runs_and_ends_at_once_ran(image: Image, tmp_path: Path) -> None:
    _qemu(tmp_path, 'echo "fabricproof-guest: kernel 7.3 runs"')
    assert accel.choose(image, None).name == "kvm"


def test_without_kvm_it_is_software_emulation_and_nothing_is_tried(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accel, "_DEVICE", tmp_path / "none")
    _qemu(tmp_path, _COMES_UP)
    chosen = accel.choose(image, None)
    assert (chosen.name, chosen.reason) == (
        "tcg",
        "software emulation: this machine has no /dev/kvm",
    )
    assert _runs(tmp_path) == 0


def test_a_qemu_that_ends_under_kvm_is_quoted(image: Image, tmp_path: Path) -> None:
    _qemu(tmp_path, _ABORT)
    chosen = accel.choose(image, None)
    assert chosen.name == "tcg"
    assert "QEMU ends under it: error: failed to set MSR 0x10a to 0x69 / kvm_buf_set" in (
        chosen.reason
    )
    assert "within" not in chosen.reason  # it did not wait for any time to pass
    assert "qemu-system-x86_64" not in chosen.reason


def test_a_kvm_under_which_no_kernel_comes_up_is_told_with_the_time(
    image: Image, tmp_path: Path
) -> None:
    _qemu(tmp_path, 'echo "Probing EDD (edd=off to disable)... ok"; exec sleep 60')
    chosen = accel.choose(image, None)
    assert chosen.name == "tcg"
    assert "no kernel came up within 1.5 s" in chosen.reason


def test_what_was_found_holds_until_the_machine_is_started_again(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _qemu(tmp_path, _ABORT)
    first = accel.choose(image, None)
    assert accel.choose(image, None) == first
    assert _runs(tmp_path) == 1
    monkeypatch.setattr(accel, "_boot", lambda: "another boot")
    _qemu(tmp_path, _COMES_UP)
    assert accel.choose(image, None).name == "kvm"
    assert _runs(tmp_path) == 2


def test_a_kvm_that_is_gone_is_not_taken_from_memory(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a container that is started again without the device, on a machine that was not
    _qemu(tmp_path, _COMES_UP)
    assert accel.choose(image, None).name == "kvm"
    monkeypatch.setattr(accel, "_DEVICE", tmp_path / "none")
    assert accel.choose(image, None).name == "tcg"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"boot": 1}', "null"])
def test_a_damaged_memory_is_none(image: Image, tmp_path: Path, text: str) -> None:
    (image.folder / "acceleration.json").write_text(text)
    _qemu(tmp_path, _ABORT)
    assert accel.choose(image, None).name == "tcg"
    assert json.loads((image.folder / "acceleration.json").read_text())["name"] == "tcg"


def test_who_insists_gets_what_was_asked_for_untried(image: Image, tmp_path: Path) -> None:
    _qemu(tmp_path, _ABORT)
    assert accel.choose(image, "kvm").name == "kvm"
    assert accel.choose(image, "tcg").reason == "as asked for"
    assert _runs(tmp_path) == 0


#: what is killed with -9 in the middle of its probe
_PROBES = """
import os, sys, tempfile
from pathlib import Path
from vcluster.guests import accel
from vcluster.guests.image import Image
accel.clean_environment = lambda: dict(os.environ)
tempfile.tempdir = sys.argv[1]
accel.probe(Image(folder=Path(sys.argv[1])), "kvm")
"""


def test_a_probe_that_is_killed_leaves_no_qemu_and_no_file(image: Image, tmp_path: Path) -> None:
    number, temporary = tmp_path / "number", tmp_path / "temporary"
    temporary.mkdir()
    _qemu(tmp_path, f"echo $$ >{number}; exec sleep 60")
    child = subprocess.Popen([sys.executable, "-c", _PROBES, str(temporary)])
    try:
        deadline = time.monotonic() + 20
        while not number.exists() or not number.read_text().strip():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait(timeout=10)
    qemu = int(number.read_text())
    try:
        assert is_gone(qemu)  # it leads a group of its own
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(qemu, signal.SIGKILL)
    assert list(temporary.iterdir()) == []


def test_only_a_log_of_the_cluster_is_told_as_a_kept_one(tmp_path: Path) -> None:
    # A build's log, or /etc/os-release, is not copied: named there it would not be found.
    paths = Paths("soft")
    assert state.is_log(paths, str(paths.log / "console-vc1.log"))
    assert not state.is_log(paths, "/project/.vcluster/images/build.log")
    assert not state.is_log(paths, "/etc/os-release")
    assert not state.is_log(paths, None)


def test_a_guest_that_does_not_answer_has_no_interfaces_and_no_programs(tmp_path: Path) -> None:
    silent = tmp_path / "inside"
    silent.write_text("#!/bin/sh\necho 'ssh: connect to host: timed out' >&2\nexit 255\n")
    silent.chmod(0o755)
    mute = Guest(
        name="vc1", init=Process(pid=os.getpid(), start=0), net="net:[1]", pid_space="pid:[1]",
        reach=(str(silent), "vc1"),
    )  # fmt: skip
    assert status._interfaces(_plan(), mute) == []
    assert mute.programs() == set()
