"""Start a daemon in a node, wait until it answers, and name it with its log when it does not."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from vcluster.errors import UnavailableError
from vcluster.guest import Guest
from vcluster.node import Space, last_lines
from vcluster.paths import Paths
from vcluster.processes import all_pids, name_of, namespace, start_time
from vcluster.run import clean_environment, run
from vcluster.slurm_conf import MARIADB_OPTIONS

_POLL_S = 0.01


@dataclass(frozen=True, kw_only=True)
class Daemon:
    """A program that is to keep running in a node.

    Attributes:
        name: of the program, as people and logs call it.
        argv: command line, in the foreground.
        log: where it writes.
        ready: tells whether it serves.
        environment: what it needs beside the clean environment.
    """

    name: str
    argv: tuple[str, ...]
    log: Path
    ready: Callable[[Space], bool]
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, space: Space) -> None:
        """Start it in ``space``, with its output in its log; do not wait."""
        command = f"exec {shlex.join(self.argv)} >>{shlex.quote(str(self.log))} 2>&1"
        limits = "ulimit -l unlimited 2>/dev/null; ulimit -c 0;"
        run(
            [*space.enter(), "setsid", "--fork", "sh", "-c", f"{limits} {command}"],
            environment=clean_environment(**self.environment),
        )

    def wait(self, space: Space, timeout_s: float) -> None:
        """Wait until it serves.

        Raises:
            UnavailableError: it died or does not serve in time; holds the end of its log.
        """
        begin = time.monotonic()
        while not self.ready(space):
            waited = time.monotonic() - begin
            dead = waited > 0.5 and self.name not in space.programs()
            if dead or waited > timeout_s:
                why = "has died" if dead else f"does not serve after {timeout_s:g} s"
                raise UnavailableError(
                    f"{self.name} on {space.name} {why}",
                    source=str(self.log),
                    got=last_lines(self.log, 4) or "an empty log",
                )
            time.sleep(_POLL_S)


def programs_by_space(spaces: Iterable[Space]) -> dict[str, set[str]]:
    """Return the names of the programs that run in each space, by host name, in one look.

    Guests are asked, all at once: their processes are not the machine's.
    """
    alive = [space for space in spaces if space.alive()]
    guests = [space for space in alive if isinstance(space, Guest)]
    host = {space.pid_space: space.name for space in alive if space not in guests}
    found: dict[str, set[str]] = {name: set() for name in host.values()}
    with ThreadPoolExecutor(max_workers=8) as pool:
        answers = pool.map(Guest.programs, guests)
        found |= {guest.name: names for guest, names in zip(guests, answers, strict=True)}
    for pid in all_pids():
        name = host.get(namespace(pid, "pid") or "")
        if name is not None and start_time(pid) is not None:
            found[name].add(name_of(pid))
    return found


def _file_seen(path: Path) -> Callable[[Space], bool]:
    """Return a test for a file in the mount namespace of a node."""

    def seen(space: Space) -> bool:
        return Path(f"/proc/{space.init.pid}/root{path}").exists()

    return seen


def listens(space: Space, tcp_port: int) -> bool:
    """Tell whether something in the node listens on a TCP port (proc_net(5), state 0A)."""
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{space.init.pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[1].endswith(f":{tcp_port:04X}") and fields[3] == "0A":
                return True
    return False


def munged(paths: Paths, node: str) -> Daemon:
    """Return the daemon that proves who sends a message, one per node."""
    log = paths.log / f"munged-{node}.log"
    argv = (
        "munged",
        "--foreground",
        "--force",
        f"--key-file={paths.etc}/munge.key",
        f"--socket={paths.munge_socket}",
        f"--pid-file={paths.munge}/munged.pid",
        f"--seed-file={paths.munge}/munged.seed",
    )
    return Daemon(name="munged", argv=argv, log=log, ready=_file_seen(paths.munge_socket))


def mariadbd(paths: Paths) -> Daemon:
    """Return the database server, which listens on a socket of the head's alone."""
    argv = (
        "mariadbd",
        *MARIADB_OPTIONS,
        f"--datadir={paths.head}/db",
        f"--socket={paths.mysql_socket}",
        f"--pid-file={paths.head}/mariadbd.pid",
        f"--tmpdir={paths.head}",
    )
    log = paths.log / "mariadbd.log"
    return Daemon(name="mariadbd", argv=argv, log=log, ready=_file_seen(paths.mysql_socket))


def slurmdbd(paths: Paths) -> Daemon:
    """Return the accounting daemon."""
    return Daemon(
        name="slurmdbd",
        argv=("slurmdbd", "-D"),
        log=paths.log / "slurmdbd.log",
        ready=lambda space: listens(space, 6819),
        environment={
            "SLURM_CONF": str(paths.slurm_conf),
            # StorageHost=localhost has no option for the socket; the client library has this.
            "MYSQL_UNIX_PORT": str(paths.mysql_socket),
        },
    )


def slurmctld(paths: Paths) -> Daemon:
    """Return the controller."""
    return Daemon(
        name="slurmctld",
        argv=("slurmctld", "-D"),
        log=paths.log / "slurmctld.log",
        ready=lambda space: listens(space, 6817),
        environment={"SLURM_CONF": str(paths.slurm_conf)},
    )


def slurmd(paths: Paths, node: str) -> Daemon:
    """Return a compute node's daemon."""
    return Daemon(
        name="slurmd",
        argv=("slurmd", "-D", "-N", node),
        log=paths.log / f"slurmd-{node}.log",
        ready=lambda space: listens(space, 6818),
        environment={"SLURM_CONF": str(paths.slurm_conf)},
    )
