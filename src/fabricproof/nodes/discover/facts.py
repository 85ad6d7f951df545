"""What a cluster showed of itself: frozen records, nothing guessed and nothing left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabricproof.site.scheduling import SlurmTraits


@dataclass(frozen=True, kw_only=True)
class SlotSeen:
    """A PCI function and what its link trained to.  None: the kernel did not say.

    Attributes:
        address: domain, bus, device and function, ``0000:81:00.1``.
        name: generation and width in force, as ``3.0x8``.
        best: the same at best, by what the card could do.
        max_payload_bytes: PCIe MaxPayload in force (DevCtl), in bytes.
    """

    address: str
    name: str | None = None
    best: str | None = None
    max_payload_bytes: int | None = None
    numa_node: int | None = None

    @property
    def card(self) -> str:
        """The address without its function: two ports of one card have the same."""
        return self.address.rpartition(".")[0]


@dataclass(frozen=True, kw_only=True)
class ShaperSeen:
    """A tc-tbf on an interface.

    Attributes:
        peak_bytes: the peak's bucket, what passes at once.
        queue_ms: how long a packet may wait in its queue at most, in ms; None where nobody says.
    """

    rate_bit_s: float
    burst_bytes: int
    peak_bit_s: float | None = None
    peak_bytes: int = 0
    queue_ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class InterfaceSeen:
    """A network interface.

    Attributes:
        best_mbit_s: the fastest mode that the port supports, in Mb/s; None where nothing says it.
        kind: ``ethernet``, ``ipoib``, ``loopback`` or ``other``.
        master: the bond or bridge it is part of.
        cxi: libfabric's name of the Slingshot device behind it, ``cxi0``.
        has_addresses: whether addresses could be asked for at all.
    """

    name: str
    is_up: bool
    speed_mbit_s: int | None = None
    best_mbit_s: int | None = None
    mtu: int | None = None
    kind: str = "ethernet"
    is_virtual: bool = False
    is_bond: bool = False
    is_bridge: bool = False
    master: str | None = None
    driver: str | None = None
    cxi: str | None = None
    firmware: str | None = None
    addresses: tuple[str, ...] = ()
    has_addresses: bool = True
    slot: SlotSeen | None = None
    shaper: ShaperSeen | None = None


@dataclass(frozen=True, kw_only=True)
class PortSeen:
    """A port of an HCA (a verbs device).

    Attributes:
        hca: the device, ``mlx5_0``.
        rate: as sysfs says it, ``200 Gb/sec (4X HDR)``.
        driver: ``mlx5_core``, ``hfi1``, ``efa`` ...
        board: its board id, or the type where there is none.
        netdev: the interface of a RoCE port.
        parent: the interface below a software device (rdma_rxe), empty where it does not say
            which; None for an HCA.
        mtu: active MTU in bytes, None where ibv_devinfo was not to be had.
    """

    hca: str
    port: int
    is_active: bool
    state: str = ""
    rate: str = ""
    layer: str = "InfiniBand"
    driver: str | None = None
    firmware: str | None = None
    board: str | None = None
    netdev: str | None = None
    parent: str | None = None
    mtu: int | None = None
    slot: SlotSeen | None = None

    @property
    def is_soft(self) -> bool:
        """Whether the kernel's software stands for the HCA: Soft-RoCE."""
        return self.parent is not None

    @property
    def kind(self) -> str:
        """What its fabric is: ``efa``, ``opa``, ``roce`` or ``ib``."""
        other = {"efa": "efa", "hfi1": "opa"}.get(self.driver or "")
        return other or ("roce" if self.layer == "Ethernet" else "ib")

    @property
    def name(self) -> str:
        """The port as a rail is named: ``mlx5_0:1``."""
        return f"{self.hca}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class ProgramSeen:
    """A program on PATH, with what it said of its version."""

    path: str
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class HostSeen:
    """One machine, as one run of ``look.sh`` showed it.

    Attributes:
        boot: the kernel's boot id; two nodes with one id are namespaces of one machine.
        system: operating system, kernel and architecture, for people.
        numa_cpus: NUMA node -> its CPUs, as a list the kernel prints.
        modules_system: as ReFrame names it; ``nomod`` where there is none.
        missing: tools that would have said more.
    """

    name: str
    boot: str = ""
    cpus: int | None = None
    system: str = ""
    numa_cpus: Mapping[str, str] = field(default_factory=dict)
    interfaces: tuple[InterfaceSeen, ...] = ()
    ports: tuple[PortSeen, ...] = ()
    modules: tuple[str, ...] = ()
    modules_system: str = "nomod"
    programs: Mapping[str, ProgramSeen] = field(default_factory=dict)
    pmi2_library: str | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PartitionSeen:
    """A partition, as sinfo lists it.

    Attributes:
        num_nodes: in all states.
        num_usable: nodes that are idle or busy, and not down or drained.
        cpus: of a node, the least; what Slurm gives away.
        limit_minutes: longest job, None for no limit.
    """

    name: str
    num_nodes: int
    num_usable: int
    cpus: int | None = None
    is_up: bool = True
    is_default: bool = False
    limit_minutes: int | None = None
    nodes: str = ""


@dataclass(frozen=True, kw_only=True)
class SlurmSeen:
    """Slurm, as its commands on the head node say it.

    Attributes:
        traits: what decides whether its partitions can be measured on.
    """

    version: str = ""
    sinfo: str = ""
    conf: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[PartitionSeen, ...] = ()
    topology: tuple[str, ...] = ()
    licenses: tuple[str, ...] = ()
    mpi_types: tuple[str, ...] = ()
    traits: SlurmTraits = field(default_factory=SlurmTraits)


@dataclass(frozen=True, kw_only=True)
class ClusterSeen:
    """All that was seen.

    Attributes:
        head: the machine that the command ran on.
        slurm: None where there is none, or where it does not answer.
        troubles: what could not be seen and why, one sentence each.
    """

    head: HostSeen
    slurm: SlurmSeen | None = None
    nodes: Mapping[str, HostSeen] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()
