"""A first site folder: facts in, the text of its files out, every guess marked.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from fabricproof.nodes.discover.cluster import Cluster, Host, Partition
from fabricproof.nodes.discover.draft import Entry, TomlRows, TomlTable, guess, render, seen
from fabricproof.nodes.discover.fabrics import FabricDraft, RailDraft, find_fabrics, name_fabrics
from fabricproof.nodes.discover.stacks import StackDraft, find_stacks
from fabricproof.site.scheduling import keeps_accounts, shares_nodes
from fabricproof.stacks.wheels import WheelStack

#: the file names of a site folder, in the order in which a person should read them
SITE, FABRIC, REFERENCES = "site.toml", "fabric.toml", "references.toml"

#: where a distribution puts sinfo; elsewhere the site file must say so
_USUAL_FOLDERS = frozenset({"/usr/bin", "/bin", "/usr/local/bin"})

#: stands in for the fabrics of a machine without a scheduler, as in site-configs/local
MEMORY = "memory"


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
    by_host: dict[str, tuple[list[FabricDraft], list[str]]] = {}
    for host in _hosts(cluster, chosen):
        by_host[host.name] = find_fabrics(host)
    named = name_fabrics(draft for drafts, _ in by_host.values() for draft in drafts)
    node = next(iter(_hosts(cluster, chosen)))
    stacks, passed_over = find_stacks(node, cluster.slurm, provisioned)
    fabrics_of = {
        host: [name for draft in drafts for name, each in named.items() if each == draft]
        for host, (drafts, _) in by_host.items()
    }
    tables = [
        _site_table(name, cluster, claims or {}),
        *_partition_tables(cluster, chosen, fabrics_of, stacks),
        *(TomlTable(header="[[stacks]]", entries=stack.entries) for stack in stacks),
    ]
    notes = [*cluster.troubles, *left_out, *passed_over]
    needs_memory = not chosen or any(not names for names in fabrics_of.values())
    return {
        SITE: render(_site_opening(name, cluster, notes), tables),
        FABRIC: render(_fabric_opening(by_host), _fabric_tables(named, needs_memory=needs_memory)),
        REFERENCES: _references(named),
    }


def _hosts(cluster: Cluster, chosen: Sequence[Partition]) -> Iterator[Host]:
    """Yield one host for each partition, or the head where no node of it was seen."""
    yielded = False
    for partition in chosen:
        yield cluster.nodes.get(partition.name, cluster.head)
        yielded = True
    if not yielded:
        yield cluster.head


def _partition_tables(
    cluster: Cluster,
    chosen: Sequence[Partition],
    fabrics_of: Mapping[str, list[str]],
    stacks: Sequence[StackDraft],
) -> Iterator[TomlTable]:
    names = [stack.name for stack in stacks]
    for partition in chosen:
        host = cluster.nodes.get(partition.name, cluster.head)
        yield _partition_table(cluster, partition, fabrics_of[host.name] or [MEMORY], names)
    if not chosen:
        yield _local_table(cluster.head, MEMORY, names)


def _site_opening(name: str, cluster: Cluster, notes: Sequence[str]) -> Iterator[str]:
    yield f"Site {name}: a first draft by `fabricproof site init`.  Nothing in it was measured."
    yield "Lines marked `guess:` are for you to settle, each with the command that does; the rest"
    yield "was seen on the host that is named.  Then: fabricproof site check " + name
    yield ""
    yield f"Head node: {cluster.head.name} ({cluster.head.system})"
    for partition, node in cluster.nodes.items():
        numa = f", {len(node.parts('numa'))} NUMA nodes" if len(node.parts("numa")) > 1 else ""
        yield f"Partition {partition}: {node.name}, {node.cpus} CPUs{numa} ({node.system})"
    if cluster.slurm is not None:
        yield from _slurm_lines(cluster)
    for host in {each.name: each for each in (cluster.head, *cluster.nodes.values())}.values():
        if host.absent:
            yield f"Not installed on {host.name}, would have said more: {', '.join(host.absent)}"
    for note in notes:
        yield f"Left out: {note}"


def _slurm_lines(cluster: Cluster) -> Iterator[str]:
    assert cluster.slurm is not None
    slurm = cluster.slurm
    default = slurm.settings.get("MpiDefault", "not said")
    types = ", ".join(slurm.mpi_types) or "not said"
    yield f"Slurm {slurm.version}: default PMI {default}, of {types}"
    topology = slurm.settings.get("TopologyPlugin")
    if topology:
        yield f"Topology: {topology}" + f", {slurm.num_switches} switches" * bool(
            slurm.num_switches
        )


def _site_table(name: str, cluster: Cluster, claims: Mapping[str, str]) -> TomlTable:
    head, slurm = cluster.head, cluster.slurm
    short = head.name.partition(".")[0].strip()
    told = slurm.settings.get("ClusterName") if slurm else None
    entries = [
        Entry(key="name", value=name),
        Entry(
            key="description",
            value=f"Cluster {told}" if told else f"Machine {short}",
            note="Slurm's ClusterName" if told else seen(head.name),
        ),
        _hostnames(short, claims.get(head.name) or claims.get(short)),
        Entry(key="modules_system", value=head.modules_system, note=seen(head.name)),
    ]
    if slurm is not None:
        entries += _slurm_surroundings(slurm.sinfo, slurm.conf)
    return TomlTable(header="[site]", entries=tuple(entries))


def _hostnames(short: str, claimed_by: str | None) -> Entry:
    if claimed_by is not None:
        note = guess(f"{short} is site {claimed_by}'s already", "hostname on each login node")
        return Entry(key="hostnames", value=[], note=note)
    if not re.fullmatch(r"[\w.-]+", short):  # hostnames are patterns
        note = guess("this machine does not say its name", "hostname on each login node")
        return Entry(key="hostnames", value=[], note=note)
    note = guess("this machine; more login nodes?", "hostname on each login node")
    return Entry(key="hostnames", value=[short], note=note)


def _slurm_surroundings(sinfo: str, conf: str) -> Iterator[Entry]:
    folder = str(PurePosixPath(sinfo).parent)
    if folder not in _USUAL_FOLDERS:
        yield Entry(key="path", value=[folder], note="where sinfo is")
    if conf and conf.isprintable():
        yield Entry(key="environment", value={"SLURM_CONF": conf}, note="set in this shell")


def _fabric_opening(
    by_host: Mapping[str, tuple[list[FabricDraft], list[str]]],
) -> Iterator[str]:
    yield "What the network is declared to be: what every verdict rests on.  Compare each line with"
    yield "the data sheets: a link that trained low looks like a slower link that is fine."
    yield "A rail must have one name on all nodes; one node of each partition was looked at."
    for host, (_, left_out) in by_host.items():
        for sentence in left_out:
            yield f"Left out on {host}: {sentence}"


def _fabric_tables(named: Mapping[str, FabricDraft], *, needs_memory: bool) -> Iterator[TomlTable]:
    for name, draft in named.items():
        yield _fabric_table(name, draft)
    if needs_memory:
        yield TomlTable(
            header="[[fabrics]]",
            remarks=("No link: the memory of one machine; nothing is judged by it.",),
            entries=(
                Entry(key="name", value=MEMORY),
                Entry(key="rails", value=[{"interface": "lo"}]),
            ),
        )


def _fabric_table(name: str, draft: FabricDraft) -> TomlTable:
    slots = {(rail.pcie, rail.max_payload_bytes) for rail in draft.rails}
    shared = draft.rails[0] if len(slots) == 1 and draft.rails[0].pcie else None
    entries = [Entry(key="name", value=name)]
    if draft.link is not None:
        entries.append(Entry(key="link", value=draft.link, note=draft.link_note))
    if draft.protocol is not None:
        entries.append(Entry(key="protocol", value=draft.protocol))
    if draft.mtu is not None:
        entries.append(Entry(key="mtu", value=draft.mtu, note=draft.mtu_note))
    if shared is not None:
        entries += _slot_entries(draft, shared)
    if draft.shaper:
        note = guess("tc-tbf's bucket and a tenth", "tc qdisc show")
        entries.append(Entry(key="shaper", value=dict(draft.shaper), note=note))
    if draft.transport is not None:
        note = guess("what fits this kind of port", "fabricproof stack doctor STACK")
        entries.append(Entry(key="transport", value=draft.transport, note=note))
    if draft.description:
        entries.append(Entry(key="description", value=draft.description))
    check = (
        "ip -br link on two nodes" if draft.kind in {"eth", "hsn"} else "ibv_devinfo on two nodes"
    )
    why = "by this name on all nodes"
    if len(draft.rails) > 1:
        why = "of one rate, so rails of one fabric, by these names on all nodes"
    entries.append(Entry(key="rails", value=_rails(draft, shared), note=guess(why, check)))
    return TomlTable(header="[[fabrics]]", entries=tuple(entries), remarks=tuple(_remarks(draft)))


def _slot_entries(draft: FabricDraft, rail: RailDraft) -> Iterator[Entry]:
    yield Entry(key="pcie", value=rail.pcie, note="what the link trained to, see the rails")
    if rail.max_payload_bytes is not None:
        yield Entry(
            key="max_payload_bytes", value=rail.max_payload_bytes, note="DevCtl in lspci -vv"
        )
    if draft.shares_slot:
        yield Entry(key="rails_share_slot", value=True, note="ports of one card")


def _rails(draft: FabricDraft, shared: RailDraft | None) -> TomlRows:
    rows = []
    for rail in draft.rails:
        keys: dict[str, object] = {"interface": rail.interface}
        if shared is None and rail.pcie is not None:
            keys["pcie"] = rail.pcie
            if rail.max_payload_bytes is not None:
                keys["max_payload_bytes"] = rail.max_payload_bytes
        rows.append((keys, rail.note))
    return TomlRows(rows=tuple(rows))


def _remarks(draft: FabricDraft) -> Iterator[str]:
    if draft.link is None:
        yield draft.link_note
    if draft.kind == "ib" and draft.mtu is None:
        yield "mtu left out, the bounds are wide: ibv_devinfo says it as active_mtu"
    if any(rail.pcie and rail.max_payload_bytes is None for rail in draft.rails):
        yield "max_payload_bytes left out, the bounds are wide: lspci -vv tells root, in DevCtl"
    if draft.shares_some_slot:
        yield "some rails are ports of one card and some are not: this file cannot say that"


def _references(named: Mapping[str, FabricDraft]) -> str:
    """Return references.toml: empty on purpose, with the lines to fill in as comments."""
    fabric = next(iter(named), MEMORY)
    opening = (
        "None yet, and none is invented.  Bandwidth is judged by physics.  Latency has no upper",
        "limit in physics and is UNJUDGED, which is not green, until this file says what to",
        "expect: measure some 20 pairs in a quiet week, take the median, say where it is from.",
        "",
        "[[references]]",
        'quantity = "latency"',
        'value = "... us"',
        "tolerance = 0.3",
        f'fabric = "{fabric}"',
        'origin = "median of 20 pairs, this cluster, when, by whom"',
    )
    return render(opening, ())


#: the license of a cluster that lets one measurement run at a time (docs/virtual-cluster.md)
FABRIC_LICENSE = "fabric"
#: what the schema takes when nothing is said, in minutes
_JOB_MINUTES = 10


def used_partitions(cluster: Cluster) -> tuple[list[Partition], list[str]]:
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


def _site_name_of(partition: str) -> str:
    """Return a partition's name in the alphabet that ReFrame and the site file take."""
    name = re.sub(r"[^A-Za-z0-9_-]", "-", partition)
    return name if re.match(r"[A-Za-z_]", name) else f"p{name}"


def _partition_table(
    cluster: Cluster, partition: Partition, fabrics: Sequence[str], stacks: Sequence[str]
) -> TomlTable:
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
        Entry(key="name", value=_site_name_of(partition.name), note=size),
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


def _scheduler(cluster: Cluster) -> Entry:
    """Return ReFrame's backend: without accounts sacct, which "slurm" asks, always fails."""
    accounting = cluster.slurm.traits.accounting if cluster.slurm else ""
    if keeps_accounts(accounting) is False:
        note = f"no accounts: AccountingStorageType = {accounting}"
        return Entry(key="scheduler", value="squeue", note=note)
    return Entry(key="scheduler", value="slurm")


def _oversubscribed(head: Host, node: Host | None, partition: Partition) -> Iterator[Entry]:
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


def _local_table(head: Host, fabric: str, stacks: Sequence[str]) -> TomlTable:
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
