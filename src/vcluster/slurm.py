"""Slurm and its database: their configuration files as pure texts, and their daemons.

Options are explained in slurm.conf(5), slurmdbd.conf(5), topology.conf(5) and cgroup.conf(5).
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from vcluster.errors import UnavailableError
from vcluster.guests.guest import Guest
from vcluster.node import Space, last_lines
from vcluster.paths import Paths
from vcluster.plan import HEAD_ADDRESS, RDMA, Node, Plan
from vcluster.processes import all_pids, clean_environment, name_of, namespace, run, start_time

_POLL_S = 0.01


@dataclass(frozen=True, kw_only=True)
class Daemon:
    """A program that is to keep running in a node.

    Attributes:
        name: of the program, as people and logs call it.
        argv: command line, in the foreground.
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
        # -b: a node that starts has booted, and Slurm waits for that after its resume program.
        argv=("slurmd", "-D", "-b", "-N", node),
        log=paths.log / f"slurmd-{node}.log",
        ready=lambda space: listens(space, 6818),
        environment={"SLURM_CONF": str(paths.slurm_conf)},
    )


#: Processes that a job has left behind: with proctrack/linuxproc a daemon that has cut all ties
#: to its parents escapes the kill.  The node sees only its own processes.
EPILOG = """#!/bin/sh
# After a job: kill what still carries its id in the environment.
for environ in $(grep -lzx "SLURM_JOB_ID=$SLURM_JOB_ID" /proc/[0-9]*/environ 2>/dev/null); do
    pid=${environ#/proc/}
    pid=${pid%/environ}
    [ "$pid" = $$ ] || grep -qx slurmstepd "/proc/$pid/comm" || kill -9 "$pid"
done 2>/dev/null
exit 0
"""

#: first release with ``CgroupPlugin=disabled`` (cgroup.conf(5) of 24.05).
_CGROUP_DISABLED_FROM = (24, 5)


def render_cgroup_conf(slurm_version: tuple[int, int]) -> str:
    """Return ``cgroup.conf``: no cgroups, so that version 1, version 2 or none will do.

    Older slurmd must load a plugin.  That of version 1 touches nothing until another plugin
    asks it to, and none here does; autodetect refuses a /sys without cgroups.
    """
    disabled = slurm_version >= _CGROUP_DISABLED_FROM
    return f"CgroupPlugin={'disabled' if disabled else 'cgroup/v1'}\n"


def _names(nodes: Iterable[Node]) -> str:
    indices = [node.index for node in nodes]
    return f"vc[{indices[0]}-{indices[-1]}]" if len(indices) > 1 else f"vc{indices[0]}"


def render_slurm_conf(plan: Plan, paths: Paths) -> str:
    """Return ``slurm.conf``: fast scheduling, quick detection of dead nodes, no cgroups."""
    # A line of the caller stands behind ours: Slurm takes the last of two with one key.
    settings = [*_identity(plan, paths), *_behaviour(), *_patience(plan), *_accounting(plan, paths)]
    nodes = [
        f"NodeName={node.name} NodeAddr={node.management_address} Boards=1 SocketsPerBoard=1 "
        f"CoresPerSocket={plan.cpus} ThreadsPerCore=1 RealMemory={plan.memory_mb} State=UNKNOWN"
        for node in plan.nodes
    ]
    partition = (
        f"PartitionName=compute Nodes={_names(plan.nodes)} Default=YES "
        "DefaultTime=00:30:00 MaxTime=INFINITE State=UP"
    )
    return "\n".join([*settings, *plan.slurm, *nodes, partition]) + "\n"


def _identity(plan: Plan, paths: Paths) -> list[str]:
    return [
        f"ClusterName={plan.name}",
        f"SlurmctldHost=head({HEAD_ADDRESS})",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={paths.munge_socket}",
        "CredType=cred/munge",
        f"StateSaveLocation={paths.head}/state",
        f"SlurmctldPidFile={paths.head}/slurmctld.pid",
        f"SlurmctldLogFile={paths.log}/slurmctld.log",
        "SlurmdSpoolDir=/run/slurm/spool",
        "SlurmdPidFile=/run/slurm/slurmd.pid",
        f"SlurmdLogFile={paths.log}/slurmd-%n.log",
        f"Epilog={paths.etc}/epilog",
    ]


def _behaviour() -> list[str]:
    return [
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "MpiDefault=none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        "TopologyPlugin=topology/tree",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=1,bf_yield_sleep=1000",
        "SlurmdParameters=config_overrides",
        # Measuring jobs ask for --licenses=fabric:1, and so never run beside each other.
        "Licenses=fabric:1",
        "ReturnToService=2",
        "InactiveLimit=60",
        "KillWait=2",
        # Longer than a step waits for what a dead node was to pass on to it (60 s:
        # REVERSE_TREE_CHILDREN_TIMEOUT, slurmstepd/req.c): else healthy nodes are drained with it.
        "UnkillableStepTimeout=120",
        "CompleteWait=0",
        "PropagateResourceLimitsExcept=MEMLOCK",
        "TmpFS=/tmp",
    ]


def _patience(plan: Plan) -> list[str]:
    """Return how long a daemon may be silent."""
    if plan.kind == RDMA:
        # An emulated core that two ranks spin on answers after seconds.
        return ["TCPTimeout=5", "SlurmdTimeout=90", "SlurmctldTimeout=30", "MessageTimeout=60"]
    # A dead node is seen after some 15 s: a ping tries TCPTimeout six times (2 s, the default,
    # makes it 30 s).  SlurmdTimeout shorter, and a busy machine looks dead.
    return ["TCPTimeout=1", "SlurmdTimeout=10", "SlurmctldTimeout=10", "MessageTimeout=10"]


def _accounting(plan: Plan, paths: Paths) -> list[str]:
    if not plan.accounting:
        return [
            "AccountingStorageType=accounting_storage/none",
            "JobAcctGatherType=jobacct_gather/none",
        ]
    return [
        "AccountingStorageType=accounting_storage/slurmdbd",
        f"AccountingStorageHost={HEAD_ADDRESS}",
        # For slurmdbd the munge socket is given here (slurm.conf(5)), not by AuthInfo.
        f"AccountingStoragePass={paths.munge_socket}",
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=30",
    ]


def render_topology_conf(plan: Plan) -> str:
    """Return ``topology.conf``: the leaf switches and a spine."""
    lines = [
        f"SwitchName=leaf{leaf} Nodes={_names(n for n in plan.nodes if n.leaf == leaf)}"
        for leaf in plan.leaves
    ]
    return "\n".join([*lines, f"SwitchName=spine Switches=leaf[1-{plan.leaf_count}]"]) + "\n"


def render_slurmdbd_conf(paths: Paths) -> str:
    """Return ``slurmdbd.conf``; the database knows root by the socket, there is no password."""
    settings = [
        "AuthType=auth/munge",
        f"AuthInfo=socket={paths.munge_socket}",
        "DbdHost=head",
        f"DbdAddr={HEAD_ADDRESS}",
        "SlurmUser=root",
        "StorageType=accounting_storage/mysql",
        "StorageHost=localhost",
        "StorageUser=root",
        "StorageLoc=slurm_acct_db",
        f"LogFile={paths.log}/slurmdbd.log",
        f"PidFile={paths.head}/slurmdbd.pid",
        "CommitDelay=0",
    ]
    return "\n".join(settings) + "\n"


#: MariaDB for one small cluster whose history ends with it: no durability, little memory, no
#: network.
MARIADB_OPTIONS = (
    "--no-defaults",
    "--user=root",
    "--skip-networking",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=4M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=fsync",
    "--innodb-doublewrite=0",
    "--innodb-buffer-pool-load-at-startup=0",
    "--innodb-buffer-pool-dump-at-shutdown=0",
    "--innodb-lock-wait-timeout=900",
    "--aria-pagecache-buffer-size=4M",
    "--key-buffer-size=1M",
    "--max-connections=32",
    "--max-allowed-packet=16M",
)
