"""A first site folder: facts in, the text of its files out, every guess marked.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from fabricproof.nodes.discover.cluster import Cluster, Host, Partition
from fabricproof.nodes.discover.draft import comment, guess, line, noted, seen, toml_value
from fabricproof.nodes.discover.fabrics import FabricDraft, find_fabrics, name_fabrics
from fabricproof.nodes.discover.stacks import StackDraft, find_stacks
from fabricproof.site.scheduling import keeps_accounts, shares_nodes
from fabricproof.stacks.wheels import WheelStack

#: the file names of a site folder, in the order in which a person should read them
SITE, FABRIC, REFERENCES = "site.toml", "fabric.toml", "references.toml"

#: where a distribution puts sinfo; elsewhere the site file must say so
_USUAL_FOLDERS = frozenset({"/usr/bin", "/bin", "/usr/local/bin"})

#: stands in for the fabrics of a machine without a scheduler, as in site-configs/local
MEMORY = "memory"

#: the license of a cluster that lets one measurement run at a time (docs/virtual-cluster.md)
FABRIC_LICENSE = "fabric"
#: what the schema takes when nothing is said, in minutes
_JOB_MINUTES = 10


def write_site(
    name: str,
    cluster: Cluster,
    provisioned: Sequence[WheelStack] = (),
    claims: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the texts of a site folder, by file name.

    ``provisioned`` are stacks of ``fabricproof stack install`` that are installed; ``claims``: host
    name -> the site that is chosen there by itself already.
    """
    chosen, left_out = used_partitions(cluster)
    # one host for each partition, or the head if no node of it was seen
    hosts = [cluster.nodes.get(each.name, cluster.head) for each in chosen] or [cluster.head]
    by_host = {host.name: find_fabrics(host) for host in hosts}
    named = name_fabrics(draft for drafts, _ in by_host.values() for draft in drafts)
    stacks, passed_over = find_stacks(hosts[0], cluster.slurm, provisioned)
    site = [*_opening(name, cluster, [*cluster.troubles, *left_out, *passed_over])]
    site += ["", "[site]", *_site(name, cluster, claims or {})]
    needs_memory = not chosen
    for partition, host in zip(chosen, hosts, strict=False):
        drafts = by_host[host.name][0]
        fabrics = [name for draft in drafts for name, each in named.items() if each == draft]
        needs_memory |= not fabrics
        site += ["", "[[partitions]]"]
        site += _partition(cluster, partition, fabrics or [MEMORY], stacks)
    if not chosen:
        site += ["", "[[partitions]]", *_local(cluster.head, stacks)]
    for stack in stacks:
        site += ["", "[[stacks]]", *stack.lines]
    fabric = [*_FABRIC_OPENING]
    for host_name, (_, sentences) in by_host.items():
        fabric += [comment(f"Left out on {host_name}: {sentence}") for sentence in sentences]
    for fabric_name, draft in named.items():
        fabric += ["", *_fabric(fabric_name, draft)]
    if needs_memory:
        fabric += ["", "# No link: the memory of one machine; nothing is judged by it."]
        fabric += ["[[fabrics]]", line("name", MEMORY), line("rails", [{"interface": "lo"}])]
    references = _REFERENCES.format(fabric=toml_value(next(iter(named), MEMORY)))
    texts = {SITE: site, FABRIC: fabric, REFERENCES: references.splitlines()}
    return {file: "\n".join(lines) + "\n" for file, lines in texts.items()}


def used_partitions(cluster: Cluster) -> tuple[list[Partition], list[str]]:
    """Return the partitions that a site can measure on, and a sentence for each other one."""
    if cluster.slurm is None:
        return [], ["no Slurm answered: what stands here is for two ranks on one machine"]
    chosen, left_out = [], []
    for each in cluster.slurm.partitions:
        if not each.is_up:
            left_out.append(f"partition {each.name}: takes no jobs")
        elif each.num_nodes < 2:
            why = f"{each.num_nodes} node, and a fabric has two ends"
            left_out.append(f"partition {each.name}: {why}")
        else:
            chosen.append(each)
    return chosen, left_out


def _opening(name: str, cluster: Cluster, left_out: Sequence[str]) -> Iterator[str]:
    yield comment(f"Site {name}: a first draft by `fabricproof site init`.  Nothing was measured.")
    yield "# Lines marked `guess:` are for you to settle, each with the command that does; the rest"
    yield comment(f"was seen on the host that is named.  Then: fabricproof site check {name}")
    yield "#"
    yield comment(f"Head node: {cluster.head.name} ({cluster.head.system})")
    for partition, node in cluster.nodes.items():
        count = len(node.parts("numa"))
        numa = f", {count} NUMA nodes" if count > 1 else ""
        seen_there = f"{node.name}, {node.cpus} CPUs{numa} ({node.system})"
        yield comment(f"Partition {partition}: {seen_there}")
    if slurm := cluster.slurm:
        default = slurm.settings.get("MpiDefault", "not said")
        types = ", ".join(slurm.mpi_types) or "not said"
        yield comment(f"Slurm {slurm.version}: default PMI {default}, of {types}")
        if topology := slurm.settings.get("TopologyPlugin"):
            switches = f", {slurm.num_switches} switches" if slurm.num_switches else ""
            yield comment(f"Topology: {topology}{switches}")
    for host in {each.name: each for each in (cluster.head, *cluster.nodes.values())}.values():
        if host.absent:
            tools = ", ".join(host.absent)
            yield comment(f"Not installed on {host.name}, would have said more: {tools}")
    yield from (comment(f"Left out: {each}") for each in left_out)


def _site(name: str, cluster: Cluster, claims: Mapping[str, str]) -> Iterator[str]:
    head, slurm = cluster.head, cluster.slurm
    short = head.name.partition(".")[0].strip()
    told = slurm.settings.get("ClusterName") if slurm else None
    yield line("name", name)
    if told:
        yield line("description", f"Cluster {told}", "Slurm's ClusterName")
    else:
        yield line("description", f"Machine {short}", seen(head.name))
    check = "hostname on each login node"
    if site := claims.get(head.name) or claims.get(short):
        yield line("hostnames", [], guess(f"{short} is site {site}'s already", check))
    elif not re.fullmatch(r"[\w.-]+", short):  # hostnames are patterns
        yield line("hostnames", [], guess("this machine does not say its name", check))
    else:
        yield line("hostnames", [short], guess("this machine; more login nodes?", check))
    yield line("modules_system", head.modules_system, seen(head.name))
    if slurm is not None:
        folder = str(PurePosixPath(slurm.sinfo).parent)
        if folder not in _USUAL_FOLDERS:
            yield line("path", [folder], "where sinfo is")
        if slurm.conf and slurm.conf.isprintable():
            yield line("environment", {"SLURM_CONF": slurm.conf}, "set in this shell")


def _partition(
    cluster: Cluster, partition: Partition, fabrics: Sequence[str], stacks: Sequence[StackDraft]
) -> Iterator[str]:
    slurm, node = cluster.slurm, cluster.nodes.get(partition.name)
    assert slurm is not None
    default = ", the default" if partition.is_default else ""
    # in the alphabet that ReFrame and the site file take
    name = re.sub(r"[^A-Za-z0-9_-]", "-", partition.name)
    name = name if re.match(r"[A-Za-z_]", name) else f"p{name}"
    yield line("name", name, f"sinfo: {partition.num_nodes} nodes, {partition.nodes}{default}")
    accounting = slurm.traits.accounting
    if keeps_accounts(accounting) is False:  # sacct, which "slurm" asks, always fails there
        yield line("scheduler", "squeue", f"no accounts: AccountingStorageType = {accounting}")
    else:
        yield line("scheduler", "slurm")
    yield line("launcher", "srun")
    has_license = FABRIC_LICENSE in slurm.licenses
    sharing = slurm.traits.oversubscribe.get(partition.name, "")
    sharing = sharing if shares_nodes(sharing) else ""
    alone, why = "--exclusive", "nobody else's traffic on the nodes; an account?"
    check = "sacctmgr show assoc user=$USER"
    if has_license:
        alone = f"--licenses={FABRIC_LICENSE}:1"
        why, check = "that license keeps measurements apart; an account?", "scontrol show licenses"
    elif sharing:
        why, check = (
            f"OverSubscribe={sharing} does not honour it; a reservation?",
            "scontrol show res",
        )
    yield line("access", [f"--partition={partition.name}", alone], guess(why, check))
    where = guess(f"seen on the head node {cluster.head.name} only", "srun ip -br addr")
    if node is not None:
        why = f"all that {node.name} has; drop what only carries management"
        where = guess(why, "ip -br addr")
    yield line("fabrics", list(fabrics), where)
    yield line("stacks", [stack.name for stack in stacks])
    limit = partition.limit_minutes
    if limit is not None and limit < _JOB_MINUTES:
        yield line("job_minutes", max(1, limit), "sinfo: the partition's limit")
    if sharing and not has_license:  # our own jobs are kept apart if Slurm does not
        why = f"OverSubscribe={sharing}: jobs share nodes, --exclusive or not; another partition?"
        yield line("max_jobs", 1, guess(why, "scontrol show partition"))
    if node is None:
        return
    if node.boot and node.boot == cluster.head.boot and node.name != cluster.head.name:
        why = f"{node.name} and {cluster.head.name} are one machine, by their boot id"
        check = "cat /proc/sys/kernel/random/boot_id on both"
        yield line("oversubscribed", True, guess(why, check))
        # A stall of some milliseconds hits some size in every run there (site vcluster).
        wide = "nodes that share cores are uneven, and this is wide; lower it while runs stay green"
        yield line("curve_tolerance", 4.0, guess(wide, "fabricproof run -t quick"))
    elif partition.cpus and node.cpus and partition.cpus > node.cpus:
        why = f"Slurm gives away {partition.cpus} CPUs, {node.name} has {node.cpus}"
        yield line("oversubscribed", True, guess(why, "nproc; sinfo -o %c"))


def _local(head: Host, stacks: Sequence[StackDraft]) -> Iterator[str]:
    """Yield the partition of a machine without a scheduler: two ranks on it, no fabric proven."""
    yield line("name", "node", seen(head.name, "no scheduler"))
    yield line("scheduler", "local", guess("no Slurm answered here", "sinfo"))
    yield line("launcher", "mpirun")
    yield line("fabrics", [MEMORY])
    yield line("stacks", [stack.name for stack in stacks])
    yield line("same_node", True, "both ranks here: no fabric is proven")
    yield line("max_jobs", 1)


_FABRIC_OPENING = (
    "# What the network is declared to be: what every verdict rests on.  Compare each line with",
    "# the data sheets: a link that trained low looks like a slower link that is fine.",
    "# A rail must have one name on all nodes; one node of each partition was looked at.",
)


def _remarks(draft: FabricDraft) -> Iterator[str]:
    if draft.link is None:
        yield comment(draft.link_note)
    if draft.kind == "ib" and draft.mtu is None:
        yield "# mtu left out, the bounds are wide: ibv_devinfo says it as active_mtu"
    if any(rail.pcie and rail.max_payload_bytes is None for rail in draft.rails):
        yield "# max_payload_bytes left out, the bounds are wide: lspci -vv tells root, in DevCtl"
    if draft.shares_some_slot:
        yield "# some rails are ports of one card and some are not: this file cannot say that"


def _fabric(name: str, draft: FabricDraft) -> Iterator[str]:
    yield from _remarks(draft)
    yield "[[fabrics]]"
    yield line("name", name)
    if draft.link is not None:
        yield line("link", draft.link, draft.link_note)
    if draft.protocol is not None:
        yield line("protocol", draft.protocol)
    if draft.mtu is not None:
        yield line("mtu", draft.mtu, draft.mtu_note)
    first = draft.rails[0]
    slots = {(rail.pcie, rail.max_payload_bytes) for rail in draft.rails}
    is_shared = len(slots) == 1 and first.pcie is not None
    if is_shared:
        yield line("pcie", first.pcie, "what the link trained to, see the rails")
        if first.max_payload_bytes is not None:
            yield line("max_payload_bytes", first.max_payload_bytes, "DevCtl in lspci -vv")
        if draft.shares_slot:
            yield line("rails_share_slot", True, "ports of one card")
    if draft.shaper:
        note = guess("tc-tbf's bucket and a tenth", "tc qdisc show")
        yield line("shaper", dict(draft.shaper), note)
    if draft.transport is not None:
        note = guess("what fits this kind of port", "fabricproof stack doctor STACK")
        yield line("transport", draft.transport, note)
    if draft.description:
        yield line("description", draft.description)
    tool = "ip -br link" if draft.kind in {"eth", "hsn"} else "ibv_devinfo"
    why = "of one rate, so rails of one fabric, by these names on all nodes"
    why = why if len(draft.rails) > 1 else "by this name on all nodes"
    yield noted("rails = [", guess(why, f"{tool} on two nodes"))
    for rail in draft.rails:
        slot = {"pcie": rail.pcie, "max_payload_bytes": rail.max_payload_bytes}
        own = {key: value for key, value in slot.items() if value is not None and not is_shared}
        own = own if rail.pcie is not None else {}
        keys = toml_value({"interface": rail.interface, **own})
        yield noted(f"    {keys},", rail.note)
    yield "]"


#: empty on purpose, with the lines to fill in as comments
_REFERENCES = """\
# None yet, and none is invented.  Bandwidth is judged by physics.  Latency has no upper
# limit in physics and is UNJUDGED, which is not green, until this file says what to
# expect: measure some 20 pairs in a quiet week, take the median, say where it is from.
#
# [[references]]
# quantity = "latency"
# value = "... us"
# tolerance = 0.3
# fabric = {fabric}
# origin = "median of 20 pairs, this cluster, when, by whom"
"""
