"""A node is a set of namespaces with an init of its own: kill the init, and all of it is gone."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vcluster.errors import UnavailableError, or_else
from vcluster.paths import Paths
from vcluster.processes import (
    Process,
    clean_environment,
    in_namespaces,
    name_of,
    namespace,
    process,
    run,
)

#: in the environment of every init, so that ``down`` finds them even without a state file.
MARK = "FABRICPROOF_VCLUSTER_INIT"

_START_TIMEOUT_S = 20.0

#: First program of every node.  Its standard output is a pipe on which it tells the process
#: number that the outside knows it by: /proc is still the outside's there.  A shell that waits
#: also reaps the orphans of finished jobs.
_INIT = r"""# First program of a node of a virtual cluster.
set -eu
read -r pid _ </proc/self/stat
for setting in /proc/sys/net/ipv6/conf/all/disable_ipv6 /proc/sys/net/ipv6/conf/default/disable_ipv6
do if [ -w "$setting" ]; then echo 1 >"$setting"; fi; done
ip link set lo up
hostname "$NODE"
mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t sysfs -o nosuid,nodev,noexec sysfs /sys
case $KIND in
head)
    mount -t tmpfs -o mode=755 fabricproof-head "$RUN/head"
    mkdir -m 700 "$RUN/head/state" "$RUN/head/db"
    mount --bind "$RUN/etc/hosts" /etc/hosts
    ;;
node)
    stage=/mnt
    mount -t tmpfs fabricproof-stage $stage
    mkdir $stage/etc $stage/log
    mount --bind "$RUN/etc" $stage/etc
    mount --bind "$RUN/log" $stage/log
    number=0
    for share in "$@"; do
        number=$((number + 1))
        mkdir $stage/$number
        mount --rbind "$share" $stage/$number
    done
    mount -t tmpfs -o mode=1777 fabricproof-tmp /tmp
    mount -t tmpfs -o mode=1777 fabricproof-shm /dev/shm
    mount -t tmpfs -o mode=755 fabricproof-run /run
    mkdir -p "$RUN/etc" "$RUN/log" "$RUN/munge" /run/slurm/spool /run/lock
    mount --bind $stage/etc "$RUN/etc"
    mount --bind $stage/log "$RUN/log"
    number=0
    for share in "$@"; do
        number=$((number + 1))
        mkdir -p "$share"
        mount --rbind $stage/$number "$share"
    done
    umount -l -R $stage
    mount --bind "$RUN/etc/hosts" /etc/hosts
    if [ -d /etc/slurm ]; then mount --bind "$RUN/etc" /etc/slurm; fi
    ;;
esac
cd /
echo "$pid"
exec >/dev/null
trap '' HUP INT TERM
while :; do sleep 2147483 & wait; done
"""


@dataclass(frozen=True, kw_only=True)
class Space:
    """The namespaces of one node, of the head or of the switches.

    Attributes:
        init: its first process; when it dies the kernel kills all others.
        net: identity of its network namespace.
        pid_space: identity of its process namespace.
    """

    #: a program that is run inside has ended by then
    answers_within_s: ClassVar[float] = 20.0

    name: str
    init: Process
    net: str
    pid_space: str

    def alive(self) -> bool:
        """Tell whether its init runs."""
        return self.init.alive()

    def enter(self, *, only_network: bool = False) -> list[str]:
        """Return the start of a command line that runs a program inside."""
        which = ["--net"] if only_network else ["--net", "--uts", "--ipc", "--pid", "--mount"]
        return ["nsenter", "--target", str(self.init.pid), *which, "--"]

    def programs(self) -> set[str]:
        """Return the names of the programs that run inside."""
        return {name_of(pid) for pid in in_namespaces("pid", [self.pid_space])}

    def batch(self, tool: str, commands: Sequence[str], *, check: bool = True) -> None:
        """Give ``ip`` or ``tc`` a list of commands to do in this network namespace.

        Without ``check`` a failure is none: some commands may find nothing to do.
        """
        if commands:
            argv = [*self.enter(only_network=True), tool, "-batch", "-"]
            text = "\n".join(commands) + "\n"
            run(argv, stdin=text, timeout_s=self.answers_within_s, check=check)

    def as_json(self) -> dict[str, Any]:
        """Return plain data for the state file."""
        return {
            "name": self.name,
            "pid": self.init.pid,
            "start": self.init.start,
            "net": self.net,
            "pid_space": self.pid_space,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Space:
        """Return the space that :meth:`as_json` wrote."""
        return cls(
            name=data["name"],
            init=Process(pid=data["pid"], start=data["start"]),
            net=data["net"],
            pid_space=data["pid_space"],
        )


def start_space(paths: Paths, name: str, kind: str, shares: Sequence[str] = ()) -> Space:
    """Make the namespaces of ``name`` and start its init.

    ``kind`` is ``switches``, ``head`` or ``node``; a node sees ``shares`` at the same path though
    it hides their surroundings.

    Raises:
        UnavailableError: the kernel or the init script refused.
    """
    log = paths.log / f"init-{name}.log"
    environment = clean_environment(**{MARK: paths.name}, NODE=name, KIND=kind, RUN=str(paths.run))
    script = paths.run / f"init-{name}"
    script.write_text(_INIT)
    command = ["unshare", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount"]
    command += ["--propagation", "slave", "sh", str(script), *shares]
    log.unlink(missing_ok=True)
    needs = "a kernel with net, pid, uts, ipc and mount namespaces, and the right to mount"
    started = start_first(
        command, environment, log, f"the namespaces of {name} could not be made", or_else(needs)
    )
    return _space_of(name, started)


def start_first(
    command: Sequence[str],
    environment: dict[str, str],
    log: Path,
    problem: str,
    next_step: str | None = None,
) -> int:
    """Start the first program of a node; return the process number that it tells on its output.

    Raises:
        UnavailableError: it tells none.
    """
    with log.open("ab") as errors:
        starter = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,
            cwd="/",
        )
    assert starter.stdout is not None
    with starter.stdout as pipe:
        ready, _, _ = select.select([pipe], [], [], _START_TIMEOUT_S)
        line = os.read(pipe.fileno(), 64) if ready else b""
    if not line.strip().isdigit():
        starter.kill()
        starter.wait()
        raise UnavailableError(
            problem, source=str(log), got=last_lines(log, 3) or "no message", next_step=next_step
        )
    starter.returncode = 0  # it outlives us; Popen would warn of a child not waited for
    return int(line)


def _space_of(name: str, pid: int) -> Space:
    init, net, pid_space = process(pid), namespace(pid, "net"), namespace(pid, "pid")
    if init is None or net is None or pid_space is None:
        raise UnavailableError(f"the init of {name} died as soon as it had started")
    return Space(name=name, init=init, net=net, pid_space=pid_space)


def last_lines(log: Path, count: int) -> str:
    """Return the last lines of a log on one line; empty when there is none."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return " / ".join(line for line in lines[-count:] if line.strip())
