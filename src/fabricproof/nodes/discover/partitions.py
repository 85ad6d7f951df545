"""Which of Slurm's partitions become partitions of the site, and how.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fabricproof.nodes.discover.draft import Entry, TomlTable, guess, seen
from fabricproof.nodes.discover.facts import ClusterSeen, HostSeen, PartitionSeen
from fabricproof.site.scheduling import keeps_accounts, shares_nodes

#: the license of a cluster that lets one measurement run at a time (docs/virtual-cluster.md)
FABRIC_LICENSE = "fabric"
#: what the schema takes when nothing is said, in minutes
_JOB_MINUTES = 10


def used_partitions(cluster: ClusterSeen) -> tuple[list[PartitionSeen], list[str]]:
    """Return the partitions that a site can measure on, and a sentence for each other one."""
    if cluster.slurm is None:
        return [], ["no Slurm answered: what stands here is for two ranks on one machine"]
    chosen, left_out = [], []
    for partition in cluster.slurm.partitions:
        reason = ""
        if not partition.is_up:
            reason = "takes no jobs"
        elif partition.num_nodes < 2:
            reason = f"{partition.num_nodes} node, and a fabric has two ends"
        if reason:
            left_out.append(f"partition {partition.name}: {reason}")
        else:
            chosen.append(partition)
    return chosen, left_out


def site_name_of(partition: str) -> str:
    """Return a partition's name in the alphabet that ReFrame and the site file take."""
    name = re.sub(r"[^A-Za-z0-9_-]", "-", partition)
    return name if re.match(r"[A-Za-z0-9]", name) else f"p{name}"


def partition_table(
    cluster: ClusterSeen, partition: PartitionSeen, fabrics: Sequence[str], stacks: Sequence[str]
) -> TomlTable:
    """Return the table of one partition."""
    node = cluster.nodes.get(partition.name)
    default = ", the default" if partition.is_default else ""
    size = f"sinfo: {partition.num_nodes} nodes, {partition.nodes}{default}"
    has_license = cluster.slurm is not None and FABRIC_LICENSE in cluster.slurm.licenses
    sharing = cluster.slurm.traits.oversubscribe.get(partition.name, "") if cluster.slurm else ""
    sharing = sharing if shares_nodes(sharing) else ""
    alone = f"--licenses={FABRIC_LICENSE}:1" if has_license else "--exclusive"
    if has_license:
        why = "that license keeps measurements apart; an account?", "scontrol show licenses"
    elif sharing:
        why = f"OverSubscribe={sharing} does not honour it; a reservation?", "scontrol show res"
    else:
        why = "nobody else's traffic on the nodes; an account?", "sacctmgr show assoc user=$USER"
    where = (
        guess(f"seen on the head node {cluster.head.name} only", "srun ip -br addr")
        if node is None
        else guess(f"all that {node.name} has; drop what only carries management", "ip -br addr")
    )
    entries = [
        Entry(key="name", value=site_name_of(partition.name), note=size),
        _scheduler(cluster),
        Entry(key="launcher", value="srun"),
        Entry(key="access", value=[f"--partition={partition.name}", alone], note=guess(*why)),
        Entry(key="fabrics", value=list(fabrics), note=where),
        Entry(key="stacks", value=list(stacks)),
    ]
    limit = partition.limit_minutes
    if limit is not None and limit < _JOB_MINUTES:
        note = "sinfo: the partition's limit"
        entries.append(Entry(key="job_minutes", value=max(1, limit), note=note))
    if sharing and not has_license:
        # Our own jobs are kept apart where Slurm does not.
        shared = (
            f"OverSubscribe={sharing}: jobs share nodes, --exclusive or not; another partition?"
        )
        note = guess(shared, "scontrol show partition")
        entries.append(Entry(key="max_jobs", value=1, note=note))
    entries += _oversubscribed(cluster.head, node, partition)
    return TomlTable(header="[[partitions]]", entries=tuple(entries))


def _scheduler(cluster: ClusterSeen) -> Entry:
    """Return ReFrame's backend: without accounts sacct, which "slurm" asks, always fails."""
    accounting = cluster.slurm.traits.accounting if cluster.slurm else ""
    if keeps_accounts(accounting) is False:
        note = f"no accounts: AccountingStorageType = {accounting}"
        return Entry(key="scheduler", value="squeue", note=note)
    return Entry(key="scheduler", value="slurm")


def _oversubscribed(
    head: HostSeen, node: HostSeen | None, partition: PartitionSeen
) -> Iterator[Entry]:
    if node is None:
        return
    if node.boot and node.boot == head.boot and node.name != head.name:
        why = f"{node.name} and {head.name} are one machine, by their boot id"
        check = "cat /proc/sys/kernel/random/boot_id on both"
        yield Entry(key="oversubscribed", value=True, note=guess(why, check))
        # A stall of some milliseconds hits some size in every run there (site vcluster).
        wide = "nodes that share cores are uneven, and this is wide; lower it while runs stay green"
        note = guess(wide, "fabricproof run -t quick")
        yield Entry(key="curve_tolerance", value=4.0, note=note)
    elif partition.cpus and node.cpus and partition.cpus > node.cpus:
        why = f"Slurm gives away {partition.cpus} CPUs, {node.name} has {node.cpus}"
        yield Entry(key="oversubscribed", value=True, note=guess(why, "nproc; sinfo -o %c"))


def local_table(head: HostSeen, fabric: str, stacks: Sequence[str]) -> TomlTable:
    """Return the partition of a machine without a scheduler: two ranks on it, no fabric proven."""
    entries = (
        Entry(key="name", value="node", note=seen(head.name, "no scheduler")),
        Entry(key="scheduler", value="local", note=guess("no Slurm answered here", "sinfo")),
        Entry(key="launcher", value="mpirun"),
        Entry(key="fabrics", value=[fabric]),
        Entry(key="stacks", value=list(stacks)),
        Entry(key="same_node", value=True, note="both ranks here: no fabric is proven"),
        Entry(key="max_jobs", value=1),
    )
    return TomlTable(header="[[partitions]]", entries=entries)
