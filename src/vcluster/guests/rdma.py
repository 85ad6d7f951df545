"""The kind ``rdma``: what it needs of the machine, and how all its guests come up."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from vcluster.errors import UnavailableError
from vcluster.guests.accel import Acceleration, choose
from vcluster.guests.image import Image, ensure_image
from vcluster.node import Space
from vcluster.paths import Paths
from vcluster.plan import Node, Plan
from vcluster.processes import find_program, run
from vcluster.rails import network, shaping

_HERE = Path(__file__).parent
_PACKAGES = {
    "qemu-system-x86_64": "qemu-system-x86",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}
_TUN = Path("/dev/net/tun")
_MEMINFO = Path("/proc/meminfo")
#: What QEMU itself takes beside a guest's memory, in MB: under TCG the code that it translated
#: (accel.TRANSLATED_MB), and some 130.
_BESIDE_MB = 400
#: left for daemons, ReFrame and whatever the machine does
_SPARE_MB = 512


def require_machine() -> None:
    """Refuse a machine that cannot carry guests.

    Raises:
        UnavailableError: it is no x86, or QEMU, ssh or tap devices are missing; says what to do.
    """
    machine = os.uname().machine
    if machine != "x86_64":
        raise UnavailableError(
            "guests are x86 machines, made of the packages of the machine outside",
            expected="x86_64",
            got=machine,
            next_step="the kind 'namespaces' works here",
        )
    missing = sorted({_PACKAGES[name] for name in _PACKAGES if find_program(name) is None})
    if missing:
        raise UnavailableError(
            f"programs for guests are missing: packages {', '.join(missing)}",
            next_step="ci/bootstrap.sh packages",
        )
    if not os.access(_TUN, os.R_OK | os.W_OK):
        raise UnavailableError(
            "no tap devices, which are the guests' cables",
            source=str(_TUN),
            expected="a device that can be opened",
            got="none" if not _TUN.exists() else "no permission",
            next_step="modprobe tun; in a container: --device /dev/net/tun",
        )


def require_memory(plan: Plan) -> None:
    """Refuse guests that do not fit into what is free.

    Raises:
        UnavailableError: they do not; says how much is needed.
    """
    available, needed = _available_mb(), plan.node_count * (plan.memory_mb + _BESIDE_MB) + _SPARE_MB
    if available is not None and available < needed:
        raise UnavailableError(
            "too little memory for the guests",
            expected=f"{needed} MB available, for {plan.node_count} guests of {plan.memory_mb} MB",
            got=f"{available} MB",
            next_step="fewer nodes (--nodes), smaller ones (--memory), or another cluster down",
        )


def _available_mb() -> int | None:
    """Return MemAvailable (proc_meminfo(5)) in MB; None where the kernel does not say."""
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) // 1024 if found else None


def prepare(plan: Plan, report: Callable[[str], None]) -> tuple[Image, Acceleration]:
    """Return the image, built where there is none, and what guests are to be run with."""
    image = ensure_image(report)
    report("acceleration")
    return image, choose(image, plan.acceleration)


def write_configuration(plan: Plan, paths: Paths) -> None:
    """Write what each guest reads when it starts, and the keys with which it is reached."""
    (paths.etc / "guest-init").write_text((_HERE / "guest_init.sh").read_text())
    for compute in plan.nodes:
        (paths.etc / f"{compute.name}.guest").write_text(render_guest(plan, compute))
        (paths.etc / f"{compute.name}.tc").write_text(render_shaping(plan))
    _write_keys(plan, paths)


def render_guest(plan: Plan, compute: Node) -> str:
    """Return what a guest is, as shell assignments for ``guest-init``."""
    macs = " ".join(network.rail_mac(compute, rail) for rail in plan.rails)
    return (
        f"management_mac={network.management_mac(compute)}\n"
        f"management_address={compute.management_address}\n"
        f"host_number={compute.rail_address(0).rpartition('.')[2]}\n"
        f"rail_macs='{macs}'\n"
        f"mtu={plan.mtu}\n"
        f"shares='{' '.join(plan.shares)}'\n"
    )


def render_shaping(plan: Plan) -> str:
    """Return the lines for ``tc -batch`` with which a guest shapes its rails."""
    lines = [
        line
        for rail, rate in enumerate(plan.rail_rates_bit_s)
        for line in shaping.guest_commands(f"rail{rail}", rate, plan.mtu)
    ]
    return "".join(f"{line}\n" for line in lines)


def _write_keys(plan: Plan, paths: Paths) -> None:
    folder = paths.etc / "ssh"
    folder.mkdir(mode=0o700)
    for name in ("host_key", "client_key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", plan.name]
        run([*command, "-f", str(folder / name)])
    kind, key, *_ = (folder / "host_key.pub").read_text().split()
    hosts = [f"{compute.management_address} {kind} {key}\n" for compute in plan.nodes]
    (folder / "known_hosts").write_text("".join(hosts))
    (folder / "config").write_text(render_ssh_config(plan, paths))
    (folder / "sshd_config").write_text(render_sshd_config(paths))


def render_ssh_config(plan: Plan, paths: Paths) -> str:
    """Return ssh_config(5) for the outside: this cluster's keys, and nothing of the user's."""
    hosts = [f"Host {each.name}\n    HostName {each.management_address}" for each in plan.nodes]
    common = f"""Host *
    User root
    IdentityFile {paths.etc}/ssh/client_key
    IdentitiesOnly yes
    UserKnownHostsFile {paths.etc}/ssh/known_hosts
    StrictHostKeyChecking yes
    CheckHostIP no
    BatchMode yes
    ConnectTimeout 30
    ServerAliveInterval 15
    ServerAliveCountMax 8
    LogLevel ERROR
"""
    return "\n".join([*hosts, common])


def render_sshd_config(paths: Paths) -> str:
    """Return sshd_config(5) for the guests: keys of this cluster only, no PAM, no passwords."""
    return f"""HostKey /run/fabricproof-ssh/host_key
AuthorizedKeysFile /run/fabricproof-ssh/authorized_keys
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PidFile none
SetEnv SLURM_CONF={paths.slurm_conf}
"""


def write_reach(paths: Paths, head: Space) -> None:
    """Write the program with which the outside runs a command in a guest."""
    bash = shutil.which("bash") or "/bin/bash"
    script = paths.run / "inside"
    script.write_text(f"""#!{bash}
# Runs a command in a guest:  inside NODE COMMAND [ARG...]
node=$1
shift
tty=-T
[ -t 0 ] && [ -t 1 ] && tty=-tt
# Each word quoted: sshd gives the line to a shell.
exec nsenter --net=/proc/{head.init.pid}/ns/net -- \\
    ssh -F {paths.etc}/ssh/config $tty "$node" -- "${{*@Q}}"
""")
    script.chmod(0o755)


def wire(plan: Plan, compute: Node, switches: Space) -> None:
    """Make the taps that are a guest's cables; the switch's ends of the rails get their rates."""
    switches.batch("ip", network.tap_commands(plan, compute))
    for rail, rate in enumerate(plan.rail_rates_bit_s):
        shape_port(plan, compute, rail, rate, switches)


def shape_port(plan: Plan, compute: Node, rail: int, rate_bit_s: int, switches: Space) -> None:
    """Give the switch's end of a guest's rail a rate; it takes in what a bucket let pass."""
    commands = shaping.guest_commands(compute.rail_port(rail), rate_bit_s, plan.mtu)
    switches.batch("tc", commands)
