"""The configuration files of Slurm and its database daemon, as pure texts.

Options are explained in slurm.conf(5), slurmdbd.conf(5), topology.conf(5) and cgroup.conf(5).
"""

from __future__ import annotations

from collections.abc import Iterable

from vcluster.paths import Paths
from vcluster.plan import HEAD_ADDRESS, RDMA, Node, Plan

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
    settings = [*_identity(plan, paths), *_behaviour(), *_patience(plan), *_accounting(plan, paths)]
    nodes = [
        f"NodeName={node.name} NodeAddr={node.management_address} Boards=1 SocketsPerBoard=1 "
        f"CoresPerSocket={plan.cpus} ThreadsPerCore=1 RealMemory={plan.memory_mb} State=UNKNOWN"
        for node in plan.nodes
    ]
    partition = (
        f"PartitionName=compute Nodes={_names(plan.nodes)} Default=YES "
        f"OverSubscribe={'FORCE:4' if plan.oversubscribe else 'NO'} "
        "DefaultTime=00:30:00 MaxTime=INFINITE State=UP"
    )
    return "\n".join([*settings, *nodes, partition]) + "\n"


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
        "UnkillableStepTimeout=30",
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
    """Return ``topology.conf``: two leaf switches and a spine."""
    lines = [
        f"SwitchName=leaf{leaf} Nodes={_names(n for n in plan.nodes if n.leaf == leaf)}"
        for leaf in (1, 2)
    ]
    return "\n".join([*lines, "SwitchName=spine Switches=leaf[1-2]"]) + "\n"


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
