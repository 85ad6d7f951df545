"""What a virtual cluster is to look like: pure data, names and addresses.

Addresses come from 198.18.0.0/15, which RFC 2544 sets aside for benchmarking networks; every
cluster uses the same ones, because none of them leaves its namespaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from vcluster.errors import ConfigError
from vcluster.rails.shaping import rate_label

DEFAULT_NODES = 4
DEFAULT_RAILS = 2
DEFAULT_LEAVES = 2
#: two cores carry it on two rails beside the ranks that send; 1 Gb/s needs more of them.
DEFAULT_RATE_BIT_S = 200 * 10**6
DEFAULT_MTU = 1500
DEFAULT_CPUS = 4
#: what nodes are: namespaces of this machine, or virtual machines with a Soft-RoCE device per rail
NAMESPACES, RDMA = "namespaces", "rdma"
KINDS = (NAMESPACES, RDMA)
#: Of the kind rdma: an emulated core carries some 300 Mb/s of verbs in all where nothing else runs,
#: so that two rails of this rate are kept by their shapers and not by the emulation.  Slower ones
#: hold what rxe has under way (64 packets of a connection) so long that it is sent again.
RDMA_NODES, RDMA_RATE_BIT_S = 2, 80 * 10**6
#: room for a path MTU of 4096 bytes and RoCEv2's headers (drivers/infiniband/sw/rxe/rxe.h)
RDMA_MTU = 4200
#: a guest at rest takes 200 MB, its file system in memory included; ranks of MPI some hundred more
RDMA_MEMORY_MB = 1280
MAX_NODES = 64
MAX_RAILS = 8
#: 198.18.0.0/24 is the management network, 198.19.<rail>.0/24 each rail.
HEAD_ADDRESS = "198.18.0.1"
_FIRST_NODE_HOST = 10
#: what a node hides behind file systems of its own, so no share may contain it.
PRIVATE_FOLDERS = ("/tmp", "/dev/shm", "/run")  # noqa: S108 (mount points, not files)

#: what a guest lives on: the machine's own in their place would be another release's, or none
_GUESTS_OWN = frozenset(
    {"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/sbin", "/sys"}
    | {"/usr", "/usr/bin", "/usr/lib", "/usr/sbin", "/usr/share", "/var", "/var/lib"}
)


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What somebody asks of a cluster; None where anything will do.

    Attributes:
        nodes: number of compute nodes.
        rails: number of rails.
        leaves: number of leaf switches of each rail.
        uplink_bit_s: line rate between a leaf and the spine, each way.
        rate_bit_s: line rate of the rails that ``rail_rates_bit_s`` does not name.
        mtu: of the rails, in bytes.
        shares: folders that every node must see.
        kind: one of :data:`KINDS`.
        acceleration: ``kvm`` or ``tcg`` for guests; None: the fastest that works.
        accounting: whether Slurm keeps accounts, with slurmdbd and MariaDB.
        slurm: lines of ``slurm.conf`` as another site has them.
    """

    nodes: int | None = None
    rails: int | None = None
    leaves: int | None = None
    uplink_bit_s: int | None = None
    rate_bit_s: int | None = None
    rail_rates_bit_s: Mapping[int, int] = field(default_factory=dict)
    mtu: int | None = None
    cpus: int | None = None
    shares: tuple[str, ...] = ()
    kind: str | None = None
    memory_mb: int | None = None
    acceleration: str | None = None
    accounting: bool | None = None
    slurm: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Node:
    """One compute node.

    Attributes:
        index: from 1.
        leaf: the leaf switch it hangs on, from 1.
    """

    index: int
    leaf: int

    @property
    def name(self) -> str:
        """Host name, and the node's name in Slurm."""
        return f"vc{self.index}"

    @property
    def management_address(self) -> str:
        """IPv4 address of ``mgmt0``; Slurm talks over it."""
        return f"198.18.0.{_FIRST_NODE_HOST + self.index}"

    def rail_address(self, rail: int) -> str:
        """Return the IPv4 address of ``rail<rail>``."""
        return f"198.19.{rail}.{_FIRST_NODE_HOST + self.index}"

    def management_port(self) -> str:
        """Return the name of the switch's end of the management cable."""
        return f"{self.name}m"

    def rail_port(self, rail: int) -> str:
        """Return the name of the switch's end of a rail's cable."""
        return f"{self.name}r{rail}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A whole virtual cluster.

    Attributes:
        name: tells clusters of one machine apart; short, as it is part of socket paths.
        node_count: compute nodes, 2 to 64; they hang on the leaves in order, as evenly as can be.
        rail_rates_bit_s: line rate of each rail, so also how many rails there are (1 to 8).
        mtu: of the rails, 576 to 9000 bytes.
        cpus: CPUs that Slurm may give away per node, whatever the machine has.
        memory_mb: memory that Slurm may give away per node; of a guest, all it has.
        shares: folders that look the same from every node.
        kind: one of :data:`KINDS`.
        acceleration: what guests must run with; None: the fastest that works.
        accounting: slurmdbd and MariaDB run; else ``accounting_storage/none``, as on many a small
            cluster.
        slurm: lines of ``slurm.conf`` in front of its nodes and partition.
        leaf_count: leaf switches of each rail, at most one a node.
        uplink_bit_s: line rate of the link between a leaf and the spine, each way; None where
            nothing limits it.
    """

    name: str
    node_count: int
    rail_rates_bit_s: tuple[int, ...]
    mtu: int
    cpus: int
    memory_mb: int
    shares: tuple[str, ...]
    kind: str = NAMESPACES
    acceleration: str | None = None
    accounting: bool = True
    slurm: tuple[str, ...] = ()
    leaf_count: int = DEFAULT_LEAVES
    uplink_bit_s: int | None = None

    def __post_init__(self) -> None:
        _within("number of nodes", self.node_count, 2, MAX_NODES)
        _within("number of rails", len(self.rail_rates_bit_s), 1, MAX_RAILS)
        _within("number of leaves", self.leaf_count, 1, self.node_count)
        _within("MTU", self.mtu, 576, 9000)
        _within("number of CPUs of a node", self.cpus, 1, 1024)
        for share in self.shares:
            _check_share(share)
        for line in self.slurm:
            _check_slurm_line(line)
        if self.kind == RDMA:
            _check_guests(self)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All compute nodes, in order."""
        least, larger = divmod(self.node_count, self.leaf_count)
        sizes = [least + (leaf <= larger) for leaf in self.leaves]
        hangs = [leaf for leaf, size in zip(self.leaves, sizes, strict=True) for _ in range(size)]
        return tuple(Node(index=index, leaf=leaf) for index, leaf in enumerate(hangs, 1))

    @property
    def leaves(self) -> range:
        """Numbers of the leaf switches, from 1."""
        return range(1, self.leaf_count + 1)

    @property
    def rails(self) -> range:
        """Indices of the rails, from 0."""
        return range(len(self.rail_rates_bit_s))

    def node(self, name: str) -> Node:
        """Return the compute node of that name.

        Raises:
            ConfigError: there is none.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise ConfigError(
            f"cluster {self.name!r} has no such node",
            expected=f"one of {self.nodes[0].name} to {self.nodes[-1].name}",
            got=repr(name),
        )

    def rail(self, interface: str) -> int:
        """Return the index of the rail whose interface is named ``rail<index>``.

        Raises:
            ConfigError: there is none.
        """
        names = [f"rail{rail}" for rail in self.rails]
        if interface not in names:
            raise ConfigError(
                f"cluster {self.name!r} has no such rail",
                expected=f"one of {', '.join(names)}",
                got=repr(interface),
            )
        return names.index(interface)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain data for the state file."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """Return the plan that :meth:`as_json` wrote, but for what only another version knows."""
        known = {each.name: data[each.name] for each in fields(cls) if each.name in data}
        tuples = {key: tuple(value) for key, value in known.items() if isinstance(value, list)}
        return cls(**{**known, **tuples})


def _within(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(f"wrong {what}", expected=f"{low} to {high}", got=str(value))


def _check_share(share: str) -> None:
    path = Path(share)
    hidden = [Path(folder) for folder in PRIVATE_FOLDERS]
    if not path.is_absolute() or any(path == other or path in other.parents for other in hidden):
        raise ConfigError(
            "cannot share this folder with the nodes",
            expected=f"an absolute path that does not contain {', '.join(PRIVATE_FOLDERS)}, "
            "which each node has for itself",
            got=repr(share),
        )


def _check_slurm_line(line: str) -> None:
    if not re.fullmatch(r"[A-Za-z]+=[^\n]+", line):
        raise ConfigError(
            "not a line of slurm.conf",
            expected="KEY=VALUE on one line, as PrivateData=jobs",
            got=repr(line),
        )


def _check_guests(plan: Plan) -> None:
    _within("memory of a guest in MB", plan.memory_mb, 512, 2**20)
    system = [share for share in plan.shares if share in _GUESTS_OWN]
    if system:
        raise ConfigError(
            "cannot share this folder with guests",
            expected="a folder that a guest does not have itself",
            got=repr(system[0]),
        )
    spaced = [share for share in plan.shares if any(char in share for char in " ,'\"\\\n")]
    if spaced:
        raise ConfigError(
            "cannot share this folder with guests",
            expected="a path without spaces, commas, quotes and backslashes (QEMU's options)",
            got=repr(spaced[0]),
        )


def make_plan(name: str, wishes: Wishes, machine_memory_mb: int) -> Plan:
    """Return a plan with every wish, and the default where there is none.

    Raises:
        ConfigError: a wish is out of range, or names a rail that there will not be.
    """
    kind = wishes.kind or NAMESPACES
    guests = kind == RDMA
    nodes = wishes.nodes or (RDMA_NODES if guests else DEFAULT_NODES)
    if not guests and (wishes.memory_mb or wishes.acceleration):
        raise ConfigError(
            "only guests have memory and acceleration of their own",
            expected="--memory and --accel with --kind rdma only",
            got=f"kind {kind}",
        )
    rails = range(wishes.rails or DEFAULT_RAILS)
    for rail in wishes.rail_rates_bit_s:
        _within("rail with a rate of its own", rail, 0, rails[-1])
    rate = wishes.rate_bit_s or (RDMA_RATE_BIT_S if guests else DEFAULT_RATE_BIT_S)
    share_mb = max(machine_memory_mb // nodes, 64)
    return Plan(
        name=name,
        node_count=nodes,
        rail_rates_bit_s=tuple(wishes.rail_rates_bit_s.get(rail, rate) for rail in rails),
        mtu=wishes.mtu or (RDMA_MTU if guests else DEFAULT_MTU),
        cpus=wishes.cpus or DEFAULT_CPUS,
        memory_mb=(wishes.memory_mb or RDMA_MEMORY_MB) if guests else share_mb,
        shares=wishes.shares,
        kind=kind,
        acceleration=wishes.acceleration,
        accounting=wishes.accounting is not False,
        slurm=wishes.slurm,
        leaf_count=DEFAULT_LEAVES if wishes.leaves is None else wishes.leaves,
        uplink_bit_s=wishes.uplink_bit_s,
    )


def _wished(plan: Plan) -> dict[str, Any]:
    """Return what would have to be wished for to get the plan, but for rates and folders."""
    return {
        "kind": plan.kind,
        "memory_mb": plan.memory_mb if plan.kind == RDMA else None,
        "acceleration": plan.acceleration,
        "nodes": plan.node_count,
        "rails": len(plan.rail_rates_bit_s),
        "leaves": plan.leaf_count,
        "uplink_bit_s": plan.uplink_bit_s,
        "mtu": plan.mtu,
        "cpus": plan.cpus,
        "accounting": plan.accounting,
    }


def inherit(wishes: Wishes, plan: Plan) -> Wishes:
    """Return the wishes, completed from a plan: a broken cluster comes back as it was."""
    left_open = {key: has for key, has in _wished(plan).items() if getattr(wishes, key) is None}
    rails = wishes.rails or len(plan.rail_rates_bit_s)
    planned = {} if wishes.rate_bit_s else dict(enumerate(plan.rail_rates_bit_s[:rails]))
    return replace(
        wishes,
        **left_open,
        rail_rates_bit_s={**planned, **wishes.rail_rates_bit_s},
        shares=tuple(dict.fromkeys(plan.shares + wishes.shares)),
        slurm=wishes.slurm or plan.slurm,
    )


#: how a wish is called that the running cluster does not meet
_WORDS = {
    "memory_mb": "memory of a guest in MB",
    "mtu": "MTU",
    "cpus": "CPUs",
    "uplink_bit_s": "uplinks in bit/s",
}


def unmet(plan: Plan, wishes: Wishes) -> str | None:
    """Return the first wish about the hardware that a plan does not meet, in words."""
    rates, named = plan.rail_rates_bit_s, wishes.rail_rates_bit_s
    if wishes.kind is not None and wishes.kind != plan.kind:
        return f"kind {wishes.kind}"
    others = [rate for rail, rate in enumerate(rates) if rail not in named]
    if wishes.rate_bit_s and any(rate != wishes.rate_bit_s for rate in others):
        return f"rate {rate_label(wishes.rate_bit_s)}"
    for rail, rate in named.items():
        if rail >= len(rates) or rates[rail] != rate:
            return f"rail {rail} at {rate_label(rate)}"
    if wishes.slurm and wishes.slurm != plan.slurm:
        return f"in slurm.conf {'; '.join(wishes.slurm)}"
    for key, has in _wished(plan).items():
        wish = getattr(wishes, key)
        if wish is not None and wish != has:
            said = ("yes" if wish else "no") if isinstance(wish, bool) else wish
            return f"{_WORDS.get(key, key)} {said}"
    return None
