"""What guests are started and configured with, against golden copies in golden/rdma.

After a change that is meant, with FABRICPROOF_REWRITE_GOLDEN=1: pytest this file, and
read the difference.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from vcluster import slurm
from vcluster.guests import guest
from vcluster.guests import rdma as guests
from vcluster.guests.accel import KVM, TCG, Acceleration
from vcluster.guests.guest import Guest, console_end, qemu_command, space_from_json
from vcluster.guests.image import Image
from vcluster.node import Space
from vcluster.paths import Paths
from vcluster.plan import RDMA, Plan, Wishes, make_plan
from vcluster.processes import Process
from vcluster.rails import network

_GOLDEN = Path(__file__).parent / "golden" / "rdma"
_PATHS = Paths("soft")
_IMAGE = Image(folder=Path("/images/one"))
_TCG = Acceleration(name=TCG, reason="a reason")


def _plan() -> Plan:
    wishes = Wishes(kind=RDMA, rail_rates_bit_s={1: 10**7}, shares=("/data/project", "/scratch"))
    return make_plan("soft", wishes, 24_000)


def _guest(pid: int = 2**22 + 5, start: int = 1) -> Guest:
    init = Process(pid=pid, start=start)
    return Guest(
        name="vc1", init=init, net="net:[1]", pid_space="pid:[2]", reach=("/run/inside", "vc1")
    )


def _texts() -> dict[str, str]:
    plan = _plan()
    node = plan.nodes[1]
    command = qemu_command(plan, _PATHS, node, _IMAGE, _TCG)
    return {
        "slurm.conf": slurm.render_slurm_conf(plan, _PATHS),
        "vc2.guest": guests.render_guest(plan, node),
        "vc2.tc": guests.render_shaping(plan),
        "ssh_config": guests.render_ssh_config(plan, _PATHS),
        "sshd_config": guests.render_sshd_config(_PATHS),
        "taps.ip": "\n".join(network.tap_commands(plan, node)) + "\n",
        "qemu": "\n".join(command) + "\n",
    }


@pytest.mark.parametrize(
    "name", ["slurm.conf", "vc2.guest", "vc2.tc", "ssh_config", "sshd_config", "taps.ip", "qemu"]
)
def test_text_of_a_guest_is_as_reviewed(name: str) -> None:
    text, golden = _texts()[name], _GOLDEN / name
    if os.environ.get("FABRICPROOF_REWRITE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_guests_differ_in_name_address_and_cards_only() -> None:
    plan = _plan()
    first, second = (qemu_command(plan, _PATHS, node, _IMAGE, _TCG) for node in plan.nodes)
    assert len(first) == len(second)
    differ = [(one, two) for one, two in zip(first, second, strict=True) if one != two]
    assert differ
    for one, two in differ:
        assert one.replace("vc1", "vc2").replace(":01:01,", ":01:02,") == two


def test_no_two_cards_of_a_cluster_have_one_address() -> None:
    plan = make_plan("soft", Wishes(kind=RDMA, nodes=64, rails=8), 24_000)
    macs = [network.management_mac(node) for node in plan.nodes]
    macs += [network.rail_mac(node, rail) for node in plan.nodes for rail in plan.rails]
    assert len(set(macs)) == 64 * 9
    # locally administered, for one receiver (IEEE 802): second-lowest bit set, lowest not
    assert {int(mac.split(":")[0], 16) & 3 for mac in macs} == {2}


def test_kvm_and_tcg_are_asked_for_in_qemus_words() -> None:
    command = qemu_command(
        _plan(), _PATHS, _plan().nodes[0], _IMAGE, Acceleration(name=KVM, reason="")
    )
    assert command[command.index("-accel") + 1] == "kvm"
    assert command[command.index("-cpu") + 1] == "host"
    words = qemu_command(_plan(), _PATHS, _plan().nodes[0], _IMAGE, _TCG)
    # Without a limit QEMU keeps 1 GB of translated code for each guest.
    assert words[words.index("-accel") + 1] == "tcg,thread=multi,tb-size=256"


@pytest.mark.parametrize("text", [guests.render_guest, None])
def test_what_a_shell_is_to_read_is_shell(text: object, tmp_path: Path) -> None:
    plan = _plan()
    script = tmp_path / "script"
    if text is None:
        script.write_text((Path(guests.__file__).parent / "guest_init.sh").read_text())
    else:
        script.write_text(guests.render_guest(plan, plan.nodes[0]))
    for shell in (["sh", "-n"], ["bash", "-n"]):
        subprocess.run([*shell, str(script)], check=True, timeout=10)


def test_a_guest_reads_back_what_it_is(tmp_path: Path) -> None:
    plan = _plan()
    script = tmp_path / "vc2.guest"
    script.write_text(guests.render_guest(plan, plan.nodes[1]))
    asked = 'for share in $shares; do echo "$share"; done; echo $host_number $rail_macs $mtu'
    command = ["sh", "-euc", f". {shlex.quote(str(script))}; {asked}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    assert done.stdout.splitlines() == [
        "/data/project",
        "/scratch",
        "12 02:18:01:00:01:02 02:18:02:00:01:02 4200",
    ]


def _reached(tmp_path: Path, *words: str) -> list[str]:
    """Return the words that a guest's shell would see, with ssh and nsenter played by programs."""
    paths = Paths("soft")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "nsenter").write_text(
        '#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done\nshift\n"$@"'
    )
    # sshd gives one line to a shell: so does this
    (folder / "ssh").write_text('#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done\nbash -c "$2"')
    for program in folder.iterdir():
        program.chmod(0o755)
    head = Space(name="head", init=Process(pid=1, start=1), net="net:[1]", pid_space="pid:[1]")
    paths.run = run = tmp_path / "run"
    run.mkdir()
    guests.write_reach(paths, head)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        [str(run / "inside"), "vc1", *words], capture_output=True, text=True, timeout=10,
        check=True, env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout.split("\0")[:-1]


def test_words_reach_a_guest_as_they_were_given(tmp_path: Path) -> None:
    words = ["a b", "", "it's", '"', "$HOME", "`id`", "two\nlines", "*", "\\", "ü", "-n", ";x", "!"]
    assert _reached(tmp_path, "printf", "%s\\0", *words) == words


def test_a_console_is_told_by_its_last_lines() -> None:
    text = "one\r\n\r\n two \nthree\nfour\nfive\nsix\n\n"
    assert console_end(text) == "two / three / four / five / six"
    assert console_end(text, 2) == "five / six"


def test_a_panic_is_told_and_not_the_trace_after_it() -> None:
    text = (
        "squashfs: no\n[ 1.2] Kernel panic - not syncing: VFS\n[ 1.2] CPU: 0 PID: 1\n"
        "[ 1.2] Call Trace:\n[ 1.3] ---[ end Kernel panic - not syncing: VFS ]---\n"
    )
    assert console_end(text) == "squashfs: no / [ 1.2] Kernel panic - not syncing: VFS"


def test_what_a_kernel_says_after_it_was_switched_off_is_left_out() -> None:
    # of a guest of kernel 7.3 whose guest-init ended with "echo o >/proc/sysrq-trigger"
    text = (
        "fabricproof-guest: kernel 7.3.4+deb13-amd64 runs\na last word\n"
        "[    3.958946] sysrq: Power Off\n"
        "[    3.966008] I/O error, dev vda, sector 304404 op 0x0:(READ) flags 0x800\n"
        "[    3.966118] SQUASHFS error: Failed to read block 0x94a2b86: -5\n"
        "[    3.977842] reboot: Power down\n"
    )
    assert console_end(text, 2) == "a last word / [    3.958946] sysrq: Power Off"


def test_an_empty_console_is_empty() -> None:
    assert console_end("") == ""
    assert console_end("\n \r\n\n") == ""


def test_a_guest_survives_its_state_file_and_stays_a_guest() -> None:
    assert space_from_json(_guest().as_json()) == _guest()
    plain = Space(name="head", init=_guest().init, net="net:[1]", pid_space="pid:[2]")
    assert type(space_from_json(plain.as_json())) is Space


def test_a_command_in_a_guest_goes_by_ssh_and_never_into_qemus_namespaces() -> None:
    assert _guest().enter() == ["/run/inside", "vc1"]
    assert _guest().enter(only_network=True) == ["/run/inside", "vc1"]


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Consoles in a folder of the test's own; nobody waits for long."""
    monkeypatch.setattr("vcluster.paths.BASE", tmp_path)
    monkeypatch.setattr(guest, "UP_SECONDS", 0.3)
    (tmp_path / "soft" / "log").mkdir(parents=True)
    return tmp_path / "soft" / "log"


def _own() -> Guest:
    """A guest that is alive: this process."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return _guest(os.getpid(), int(fields[19]))


def test_a_guest_that_says_so_is_up(quick: Path) -> None:
    (quick / "console-vc1.log").write_text("noise\nfabricproof-guest: UP after 9.1 s\n")
    guest.wait_until_up(Paths("soft"), [_own()])


@pytest.mark.parametrize(
    ("console", "alive", "words"),
    [
        ("fabricproof-guest: FAILED no rail\n", True, r"vc1 said: no rail"),
        ("Kernel panic - not syncing\n", False, r"ended while it came up.*Kernel panic"),
        ("still booting\n", True, r"did not come up within 0\.3 s.*still booting"),
        # cut in the middle of the reason, which comes letter by letter: waited for
        ("fabricproof-guest: FAILED modu", True, r"did not come up within"),
        ("fabricproof-guest: FAILED modu", False, r"ended while it came up.*FAILED modu"),
    ],
)
def test_a_guest_that_does_not_come_up_is_told_with_its_console(
    quick: Path, console: str, alive: bool, words: str
) -> None:
    (quick / "console-vc1.log").write_text(console)
    with pytest.raises(Exception, match=words) as caught:
        guest.wait_until_up(Paths("soft"), [_own() if alive else _guest()])
    assert getattr(caught.value, "exit_status", None) == 69


def test_a_guest_without_a_console_is_told_with_qemus_words(quick: Path) -> None:
    (quick / "qemu-vc1.log").write_text("qemu-system-x86_64: could not set up host network\n")
    with pytest.raises(Exception, match=r"qemu-vc1\.log.*could not set up host network"):
        guest.wait_until_up(Paths("soft"), [_guest()])
