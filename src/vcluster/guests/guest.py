"""A node that is a virtual machine: started, waited for, reached, and its cables pulled.

QEMU runs in the switches' network namespace, where its taps are the ports, and in a process
namespace of its own, whose first process it is: kill it, and nothing of the node is left.  Commands
reach a guest by ssh from the head's network, with keys that every cluster makes for itself.  Its
carrier is QEMU's to take (QEMU Machine Protocol).
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vcluster.errors import UnavailableError
from vcluster.guests.accel import Acceleration
from vcluster.guests.image import Image
from vcluster.node import MARK, Space, last_lines, start_first
from vcluster.paths import Paths
from vcluster.plan import Node, Plan
from vcluster.processes import clean_environment, namespace, process, run
from vcluster.rails.network import management_mac, rail_mac

#: a guest says so when it is up (guest_init.sh), or why it cannot be
UP, FAILED = "fabricproof-guest: UP", "fabricproof-guest: FAILED"
#: two guests need 8 s on two idle cores under software emulation
UP_SECONDS = 240.0
#: with these words a kernel ends; what it says afterwards is of no use
_ENDS = ("Kernel panic", "sysrq: Power Off")
#: QEMU answers at its monitor by then
_MONITOR_SECONDS = 10.0

#: First program of a guest's namespaces: tells its own number as the outside knows it, then becomes
#: QEMU.
_STARTER = r"""read -r pid _ </proc/self/stat
echo "$pid"
exec >>"$LOG" 2>&1
exec "$@"
"""


@dataclass(frozen=True, kw_only=True)
class Guest(Space):
    """A node in a virtual machine.

    Attributes:
        reach: the program that runs a command in it, and its name there.
    """

    #: an emulated core that two ranks spin on answers ssh after seconds
    answers_within_s: ClassVar[float] = 60.0

    reach: tuple[str, ...]

    def enter(self, *, only_network: bool = False) -> list[str]:
        """Return the start of a command line that runs a program in the guest."""
        del only_network  # a guest's network is not to be had without the guest
        return list(self.reach)

    def programs(self) -> set[str]:
        """Return the names of the programs that run in it; none where it does not answer."""
        command = [*self.enter(), "ps", "-e", "-o", "comm="]
        try:
            done = run(command, timeout_s=self.answers_within_s, check=False)
        except UnavailableError:
            return set()
        return set(done.stdout.split())

    def as_json(self) -> dict[str, Any]:
        """Return plain data for the state file."""
        return {**super().as_json(), "reach": list(self.reach)}


def space_from_json(data: dict[str, Any]) -> Space:
    """Return the namespaces or the guest that ``as_json`` wrote."""
    space = Space.from_json(data)
    if "reach" not in data:
        return space
    return Guest(
        name=space.name,
        init=space.init,
        net=space.net,
        pid_space=space.pid_space,
        reach=tuple(data["reach"]),
    )


def start_guest(
    plan: Plan,
    paths: Paths,
    compute: Node,
    switches: Space,
    image: Image,
    acceleration: Acceleration,
) -> Guest:
    """Start a virtual machine; do not wait until it is up.

    Raises:
        UnavailableError: QEMU did not start; holds what it said.
    """
    log = paths.log / f"qemu-{compute.name}.log"
    console(paths, compute.name).unlink(missing_ok=True)
    monitor(paths, compute.name).unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    command = [*switches.enter(only_network=True), "unshare", "--pid", "--fork", "--kill-child"]
    command += ["sh", "-c", _STARTER, "sh"]
    command += qemu_command(plan, paths, compute, image, acceleration)
    environment = clean_environment(**{MARK: paths.name}, LOG=str(log))
    problem = f"the virtual machine of {compute.name} could not be started"
    pid = start_first(command, environment, log, problem)
    return _guest_of(paths, compute.name, pid, switches, log)


def _guest_of(paths: Paths, name: str, pid: int, switches: Space, log: Path) -> Guest:
    init, pid_space = process(pid), namespace(pid, "pid")
    if init is None or pid_space is None:
        raise UnavailableError(
            f"QEMU of {name} died as soon as it had started",
            source=str(log),
            got=last_lines(log, 3) or "no message",
        )
    reach = (str(paths.run / "inside"), name)
    return Guest(name=name, init=init, net=switches.net, pid_space=pid_space, reach=reach)


def console(paths: Paths, name: str) -> Path:
    """Return the file that holds what a guest's console said."""
    return paths.log / f"console-{name}.log"


def monitor(paths: Paths, name: str) -> Path:
    """Return the socket at which QEMU takes commands for a guest."""
    return paths.run / f"{name}.qmp"


def qemu_command(
    plan: Plan, paths: Paths, compute: Node, image: Image, acceleration: Acceleration
) -> list[str]:
    """Return the command line of a node's virtual machine."""
    name = compute.name
    # preempt=full: a rank that spins must make room for the device's own work at once.
    words = "console=ttyS0 quiet panic=-1 preempt=full mitigations=off audit=0 "
    words += f"fabricproof.node={name} fabricproof.run={paths.run}"
    command = ["qemu-system-x86_64", "-name", f"{plan.name}-{name}", "-machine", "q35"]
    command += [*acceleration.options(), "-m", str(plan.memory_mb), "-smp", "1", "-no-reboot"]
    command += ["-nodefaults", "-display", "none", "-serial", f"file:{console(paths, name)}"]
    command += ["-qmp", f"unix:{monitor(paths, name)},server=on,wait=off"]
    command += ["-kernel", str(image.kernel), "-initrd", str(image.initramfs), "-append", words]
    command += ["-device", "virtio-rng-pci"]
    command += ["-drive", f"file={image.root},format=raw,if=none,id=root,readonly=on"]
    command += ["-device", "virtio-blk-pci,drive=root"]
    for tag, folder in (("run", str(paths.run)), *_shares(plan)):
        command += ["-fsdev", f"local,id={tag},path={folder},security_model=none,multidevs=remap"]
        command += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    command += _card("management", compute.management_port(), management_mac(compute), "")
    for rail, rate in enumerate(plan.rail_rates_bit_s):
        about = f",host_mtu={plan.mtu},speed={max(1, rate // 10**6)},duplex=full"
        command += _card(f"rail{rail}", compute.rail_port(rail), rail_mac(compute, rail), about)
    return command


def _shares(plan: Plan) -> list[tuple[str, str]]:
    return [(f"share{number}", folder) for number, folder in enumerate(plan.shares)]


def _card(identity: str, port: str, mac: str, about: str) -> list[str]:
    tap = f"tap,id={identity}-tap,ifname={port},script=no,downscript=no"
    card = f"virtio-net-pci,id={identity},netdev={identity}-tap,mac={mac},romfile={about}"
    return ["-netdev", tap, "-device", card]


def wait_until_up(paths: Paths, guests: Sequence[Guest]) -> None:
    """Wait until every guest says on its console that it is up.

    Raises:
        UnavailableError: one said why it cannot be, ended, or does not come up in time; holds the
            end of its console.
    """
    begin = time.monotonic()
    waiting = list(guests)
    while waiting:
        waiting = [guest for guest in waiting if not _is_up(paths, guest, begin)]
        if waiting:
            time.sleep(0.1)


def _is_up(paths: Paths, guest: Guest, begin: float) -> bool:
    text = _text(console(paths, guest.name))
    if UP in text:
        return True
    waited = time.monotonic() - begin
    why, ended, _ = text.partition(FAILED)[2].partition("\n")
    if ended:  # a console comes letter by letter
        raise _not_up(paths, guest, f"said: {why.strip()}")
    if not guest.alive():
        raise _not_up(paths, guest, "ended while it came up")
    if waited > UP_SECONDS:
        raise _not_up(paths, guest, f"did not come up within {UP_SECONDS:g} s")
    return False


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def console_end(text: str, count: int = 5) -> str:
    """Return the last lines of a console that say something, on one line.

    After a panic those are the lines up to its first; what follows is the kernel's own trace.  So
    it is where a guest switched itself off, and its disk vanished below what still ran.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ends = [number for number, line in enumerate(lines) if any(end in line for end in _ENDS)]
    return " / ".join((lines[: ends[0] + 1] if ends else lines)[-count:])


def _not_up(paths: Paths, guest: Guest, how: str) -> UnavailableError:
    log = console(paths, guest.name)
    if not _text(log).strip():
        log = paths.log / f"qemu-{guest.name}.log"
    return UnavailableError(
        f"the guest {guest.name} {how}",
        source=str(log),
        got=console_end(_text(log)) or "an empty console",
        next_step="more memory or fewer nodes (--memory, --nodes), or --accel tcg",
    )


def set_link(monitor: Path, card: str, *, up: bool) -> None:
    """Let a card of a guest have a carrier, or none.

    Raises:
        UnavailableError: QEMU does not answer, or refuses.
    """
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(_MONITOR_SECONDS)
            line.connect(str(monitor))
            with line.makefile("rw") as stream:
                _read(stream)  # the greeting
                _ask(stream, "qmp_capabilities", {})
                _ask(stream, "set_link", {"name": card, "up": up})
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"QEMU does not take the command to {'plug in' if up else 'pull'} {card}",
            source=str(monitor),
            got=str(error),
        ) from error


def _ask(stream: Any, command: str, arguments: dict[str, Any]) -> None:
    stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    stream.flush()
    answer = _read(stream)
    if "error" in answer:
        raise ValueError(f"{command}: {answer['error'].get('desc', answer['error'])}")


def _read(stream: Any) -> dict[str, Any]:
    """Return the next answer; events that come in between are left out."""
    while True:
        line = stream.readline()
        if not line:
            raise ValueError("the connection ended")
        answer = json.loads(line)
        if "event" not in answer:
            return dict(answer)
