"""The shape of a site's files, as pydantic models: what may stand there, with ranges and words.

``site.toml`` has partitions and stacks, ``fabric.toml`` the networks, ``references.toml`` what the
site expects beyond physics.  Unknown keys are refused: a typo must not become a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from fabricproof.site.texts import (
    Expanded,
    HostPattern,
    MailServer,
    Module,
    Name,
    Named,
    OneLine,
    Options,
    Path,
    PciAddress,
    Rail,
    ReframeName,
    Value,
    Variable,
    one_of,
)
from fabricproof.traffic.transports import Transport
from fabricproof.verdict.value import CURVE_TOLERANCE

Launcher = Literal["srun", "mpirun", "mpiexec"]
Words = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class RailSpec(_Model):
    """One rail: the interface, or the port of an HCA (``mlx5_0:1``), that carries it.

    ``link``, ``pcie`` and ``max_payload_bytes`` override the fabric's if this rail sits in another
    slot or on another kind of link (Gordon's rail 1 sits in a Gen2 riser).
    """

    interface: Rail
    """The rail's name in every record, and on each node that has no other name for it."""
    other_names: list[Rail] = Field(default_factory=list)
    """What some nodes call it instead: the first that a node has is taken there."""
    pci_address: PciAddress | None = None
    """Where the adapter sits on every node: then it is that device, whatever its name."""
    gpu: Annotated[int, Field(ge=0, le=63)] | None = None
    """Number of the GPU beside it, whose memory its legs use; None: the node's first one."""
    switches: list[Named] = Field(default_factory=list)
    """Names of those it is cabled to, ``*`` and ``?`` for any text."""
    link: Named | None = None
    pcie: Named | None = None
    max_payload_bytes: int | None = None

    def name_on(self, addresses: Mapping[str, str]) -> str:
        """Return the rail's name on a node: that at its PCI address, else its first name there.

        Args:
            addresses: PCI address of each interface and port of the node, empty if unknown.
        """
        _, colon, port = self.interface.partition(":")
        if self.pci_address:
            there = [
                name
                for name, address in addresses.items()
                if address.endswith(self.pci_address) and name.partition(":")[1:] == (colon, port)
            ]
        else:
            there = [name for name in (self.interface, *self.other_names) if name in addresses]
        return next(iter(there), self.interface)


class ShaperSpec(_Model):
    """A token bucket on every rail (tc-tbf, a cloud's shaper): see ``physics.Shaper``."""

    burst_bytes: Annotated[int, Field(ge=0)]
    peak_factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    instant_bytes: Annotated[int, Field(ge=0)] = 0


Stated = str | Annotated[list[str], Field(min_length=1)]
"""One text, or several of which any will do."""

#: facts of an inventory that :attr:`ExpectSpec.tuning` may state
TUNED = (
    "autonegotiation busy_poll coalescing connector governor huge_pages irq_cpus irqbalance "
    "irqs kernel locked_memory microcode netdev_max_backlog numa_balancing offloads options os "
    "pause queue_pairs_best queues rings rmem_max smt tcp_congestion_control tcp_mtu_probing "
    "tcp_rmem tcp_wmem transceiver turbo wmem_max"
)

#: facts in which :attr:`ExpectSpec.mixed` may let nodes be unlike
UNLIKE = "board driver driver_version fec firmware max_payload_bytes model pcie psid type"


class ExpectSpec(_Model):
    """What the cards of a fabric's rails are to be, beside link, MTU, slot and MaxPayload.

    Judged by preflight, on every node; what is not stated must be alike on all nodes of a job.
    """

    model: Stated | None = None
    """As lspci names it (``ConnectX-6``), or the HCA's type (``MT4123``)."""
    psid: Stated | None = None
    firmware: Stated | None = None
    driver: Stated | None = None
    driver_version: Stated | None = None
    numa_node: Annotated[int, Field(ge=0)] | None = None
    fec: Stated | None = None
    tuning: dict[Annotated[str, one_of(TUNED)], str | int] = Field(default_factory=dict)
    """Facts as ``fabricproof inventory show --json`` has them; of a list (``TSO, GRO``) each item
    must be there, and ``RX 1024`` of rings means that many of however many."""
    mixed: list[Annotated[str, one_of(UNLIKE)]] = Field(default_factory=list)
    """What may be unlike between nodes, because it is so on purpose."""
    not_told: list[Literal["rate", "state", "mtu"]] = Field(default_factory=list)
    """What no driver of these cards says (ENA's rate): then it is a note that nobody saw it."""


PerMillion = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False, strict=False)]


class ErrorsSpec(_Model):
    """What may be lost or damaged on a fabric; what is not stated: defaults of docs/errors.md."""

    retransmitted_per_million_packets: PerMillion | None = None
    damaged_per_million_packets: PerMillion | None = None
    dropped_per_million_packets: PerMillion | None = None
    reordered_per_million_packets: PerMillion | None = None
    duplicated_per_million_packets: PerMillion | None = None
    bit_error_rate: Annotated[float, Field(gt=0, lt=1e-3, strict=False)] | None = None
    """Wrong bits of all bits, as the vendor or a standard states it (1e-12)."""
    origin: Words
    """Why so many are right."""


class FabricSpec(_Model):
    """One network under one manager, as the site declares it."""

    name: Name
    link: Named | None = None
    """None: no fabric at all (the memory of one machine); then nothing can be judged by it."""
    protocol: Named | None = None
    mtu: int | None = None
    pcie: Named | None = None
    max_payload_bytes: int | None = None
    rails: Annotated[list[RailSpec], Field(min_length=1)]
    rails_share_slot: bool = False
    flow_limit_gbit_s: Positive | None = None
    shaper: ShaperSpec | None = None
    capability_gbit_s: Positive | None = None
    """What the hosts are known to drive (one core's TCP), declared."""
    typical_latency_us: Positive | None = None
    """What a small message takes if far from hardware's (emulated nodes): sizes the effort, and
    judges nothing."""
    transport: Transport | None = None
    """For the stacks that have a choice and do not state their own."""
    description: str = ""
    expect: ExpectSpec | None = None
    errors: ErrorsSpec | None = None

    @property
    def full_packet_bytes(self) -> int:
        """Bytes of a full packet: the MTU, else the largest of what the fabric is.

        4096 of InfiniBand, RoCE (IBA specification vol. 1, 7.7.8), 1500 of Ethernet (IEEE 802.3).
        """
        over_verbs = any(":" in rail.interface for rail in self.rails)
        return self.mtu or (4096 if over_verbs else 1500)

    @property
    def error_limits(self) -> dict[str, float]:
        """What may be lost or damaged as the site states it, in events per million packets."""
        if self.errors is None:
            return {}
        stated = self.errors.model_dump(exclude={"origin", "bit_error_rate"}, exclude_none=True)
        limits = {name: float(limit) for name, limit in stated.items()}
        if self.errors.bit_error_rate is not None:
            # A wrong bit damages its packet; so few are two in one packet hardly ever.
            damaged = self.errors.bit_error_rate * 8 * self.full_packet_bytes * 1e6
            limits.setdefault("damaged_per_million_packets", damaged)
        return limits


class FabricFile(_Model):
    """``fabric.toml``."""

    fabrics: Annotated[list[FabricSpec], Field(min_length=1)]


#: what :attr:`ContainerSpec.runtime` may name in a word; what each means: ``stacks.container``
RUNTIMES = ("apptainer", "pyxis", "singularity")


class ContainerSpec(_Model):
    """The image that a stack's programs and its MPI are in, and what starts them there."""

    runtime: Options
    """One of :data:`RUNTIMES`, or a command of the site's own: ``{image}`` and ``{folder}`` (the
    job's, to be seen inside by the same path) stand in it."""
    image: Named
    """A path on the nodes, or a reference that the runtime fetches."""
    binds: list[Named] = Field(default_factory=list)
    """Folders of the node to be seen inside, ``PATH`` or ``PATH:INSIDE``."""
    options: list[Options] = Field(default_factory=list)
    """For the runtime, or for srun with ``pyxis``."""
    library: Path | None = None
    """The MPI library by its path in the image: a program that has another is INVALID."""


class StackSpec(_Model):
    """One MPI stack: how it is loaded, started and where its programs are."""

    name: ReframeName
    family: Literal[
        "openmpi", "mpich", "intelmpi", "mvapich", "mvapich2", "craympich", "parastation"
    ]
    version: Named
    modules: list[Module] = Field(default_factory=list)
    launcher: Launcher | None = None
    """None: the partition's."""
    pmi: Literal["pmi1", "pmi2", "pmix", "pspmix", "cray_shasta", "default"] | None = None
    """What srun is told with ``--mpi=``; None: as the family needs it, ``default``: nothing, the
    scheduler's own.  ``pmi1``: an MPICH that was built without PMI-2 (``mpichversion``), whose
    lines are too short for UCX addresses."""
    launcher_options: list[Options] = Field(default_factory=list)
    transport: Transport | None = None
    """What carries this stack's messages, whatever the fabric says: so one MPI may stand in a site
    several times, over UCX's reliable connections, its datagrams, libfabric."""
    environment: dict[Variable, Value] = Field(default_factory=dict)
    """Set as they stand: no shell expands anything in them."""
    suites: dict[Named, Named] = Field(default_factory=dict)
    """suite (``osu``, ``osu-mpi4py``, ``imb``) -> folder of its programs, ``PATH`` if they are
    found by name, or ``provisioned`` for the stacks of ``fabricproof stack install``."""
    sharing_threshold: Annotated[str, StringConstraints(pattern=r"^\d+(B|KiB|MiB)$")] | None = None
    """The message size from which on several rails should carry more than one: judged by the checks
    over several rails; if not stated, what they see is only shown."""
    container: ContainerSpec | None = None
    """Then ``suites`` names folders in the image, and the modules bring the runtime."""
    one_rail: Words | None = None
    """Why this stack is measured over one rail at a time: what needs several is SKIPPED with it."""
    left_out: dict[Named, str] = Field(default_factory=dict)
    """program -> why it says nothing on this stack: it is SKIPPED with that reason."""
    provisioned: bool | Name = False
    """Installed by ``fabricproof stack install`` rather than by the site: ``true``, or the name in
    its catalogue if the site calls the stack otherwise (``"openmpi4"`` for ``openmpi4-ud``)."""
    spack: Name | None = None
    """The folder of ``spack-envs`` that ``fabricproof stack build`` builds this stack from; then
    its modules and its programs are known without ``modules`` and ``suites``."""
    mpi_spec: str | None = None
    """With ``spack``: what is required of the MPI, as a Spack spec (``openmpi@4.1``)."""
    options: list[Name] = Field(default_factory=list)
    """With ``spack``: files of ``spack-envs/options`` to build with (``cuda``, ``rocm``)."""
    reframe: dict[str, Any] = Field(default_factory=dict)
    """Keys of ReFrame's environment, as ReFrame spells them: ``prepare_cmds``, ``extras``."""

    @property
    def installed_as(self) -> str:
        """The stack's name in the catalogue of ``fabricproof stack install``."""
        return self.provisioned if isinstance(self.provisioned, str) else self.name

    @property
    def connections(self) -> int:
        """TCP connections that one pair of ranks opens on each rail (Open MPI's btl_tcp_links)."""
        stated = self.environment.get("OMPI_MCA_btl_tcp_links", "1")
        return int(stated) if self.family == "openmpi" and stated.isdecimal() else 1

    @property
    def speaks_pmi1(self) -> bool:
        """Whether the MPI has nothing newer than PMI-1 for srun; MPICH's wheel has not."""
        return self.pmi == "pmi1" or (bool(self.provisioned) and self.family == "mpich")


class GpuSpec(_Model):
    """The GPUs of each node of a partition.  Without such a table, nothing of GPUs runs."""

    kind: Literal["cuda", "rocm", "level-zero"]
    per_node: Annotated[int, Field(ge=1, le=64)] = 1
    pcie: Named | None = None
    """The slot of each GPU, ``5.0x16``: every byte of a buffer on it crosses that."""
    direct: bool | None = None
    """Whether an adapter reaches the memory of a GPU by itself (GPUDirect RDMA: ``nvidia_peermem``
    or dma-buf; ROCm: the amdgpu driver); None if unknown, and no bandwidth is promised."""
    stacks: list[Name] = Field(default_factory=list)
    """Stacks that take such buffers beside those that Spack builds with ``cuda`` or ``rocm``."""


def _each_once(numbers: list[int]) -> list[int]:
    if len(set(numbers)) != len(numbers):  # two legs of one name
        raise ValueError("each number once")
    return numbers


class PartitionSpec(_Model):
    """One partition, as in Slurm and ReFrame."""

    name: ReframeName
    scheduler: Literal["slurm", "squeue", "local", "pbs", "flux", "lsf"] = "slurm"
    launcher: Launcher = "srun"
    access: list[Expanded] = Field(default_factory=list)
    """Options of sbatch; ``$VARIABLES`` are expanded when the file is read."""
    fabrics: Annotated[list[Name], Field(min_length=1)]
    stacks: Annotated[list[Name], Field(min_length=1)]
    python: Path | None = None
    """Python 3.11 or newer on the nodes; None: the one of this fabricproof, by the same path."""
    max_jobs: Annotated[int, Field(ge=1, le=1000)] = 8
    leg_seconds: Annotated[float, Field(gt=0, le=600)] = 2.0
    """Time budget of one measurement (one program over one path), in seconds."""
    leg_limit_seconds: Annotated[float, Field(ge=5, le=86400)] | None = None
    """A measurement that takes longer is ended; None: ten times ``leg_seconds``, at least 30 s."""
    job_minutes: Annotated[int, Field(ge=1, le=1440)] = 10
    queue_minutes: Annotated[int, Field(ge=1, le=10080)] = 60
    """How long a job may wait in the queue before it counts as MISSING."""
    max_message_size: str = "4MiB"
    num_nodes: Annotated[int, Field(ge=1, le=100_000)] = 2
    """Nodes that a check of many nodes (collectives, placement) takes at most."""
    ranks_per_node: Annotated[
        list[Annotated[int, Field(ge=1, le=4096)]], Field(min_length=1), AfterValidator(_each_once)
    ] = Field(default_factory=lambda: [1])
    """Numbers of ranks on a node that such a check tries, for example ``[1, 64]``."""
    collective_max_size: str = "1MiB"
    """Largest message of a collective: a rank's block if it has one for each other rank."""
    collective_factor: Annotated[float, Field(ge=1, le=1000)] = 3.0
    """How many times the best algorithm's modelled time a collective may take."""
    sweep_smallest: str = "4B"
    """Smallest message for which a sweep of algorithms judges; a barrier counts as nothing."""
    no_sweep: Words | None = None
    """Why algorithms are not compared here, in words for the report; None: they are."""
    no_pairs: Words | None = None
    """Why all nodes are not measured with each other here; None: they are."""
    pairs_without: str = ""
    """Nodes that are left out of that on purpose, as Slurm writes them: ``n[7-8]``."""
    curve_tolerance: Annotated[float, Field(ge=0, le=100)] = CURVE_TOLERANCE
    """How much longer than the model a message between the smallest and the largest may take."""
    oversubscribed: bool = False
    """More ranks than cores, or several nodes on one machine: let ranks yield."""
    look_seconds: Annotated[float, Field(ge=1, le=600)] = 5.0
    """How long a node may take to say what it is made of (its inventory)."""
    look_each_job: bool = True
    """Whether every job looks; if that costs too much (emulated nodes), preflight alone."""
    same_node: bool = False
    """Both ranks on one node on purpose (site ``local``): no fabric is proven there."""
    gpus: GpuSpec | None = None
    reframe: dict[str, Any] = Field(default_factory=dict)
    """Keys of ReFrame's partition, as ReFrame spells them: ``prepare_cmds``, ``modules``,
    ``env_vars``, ``resources``, ``features``, ``devices``, ``extras``, ``time_limit``."""

    @property
    def uses_slurm(self) -> bool:
        """Whether its jobs are Slurm's."""
        return self.scheduler in {"slurm", "squeue"}


class SiteSpec(_Model):
    """The ``[site]`` table."""

    name: ReframeName
    description: str = ""
    hostnames: list[HostPattern] = Field(default_factory=list)
    """Regular expressions, matched from the beginning as ReFrame does."""
    modules_system: Literal["lmod", "tmod4", "envmod", "nomod", "spack"] = "lmod"
    modules_init: Named | None = None
    """The file that defines ``module`` in a shell of batch jobs; the usual places if None."""
    module_paths: list[Named] = Field(default_factory=list)
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.10
    path: list[Named] = Field(default_factory=list)
    """Folders in front of PATH for the scheduler's commands; ``$VARIABLES`` are expanded."""
    environment: dict[Variable, Value] = Field(default_factory=dict)
    """Variables that the scheduler's commands need; ``$VARIABLES`` are expanded."""
    start_hint: str = ""
    """What to do when the scheduler does not answer."""
    baseline: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] | None = (
        None
    )
    """The baseline of ``baselines/`` that judges after physics and references; None: none."""


class NightSpec(_Model):
    """The ``[night]`` table: what ``fabricproof nightly`` runs, keeps, and tells whom."""

    tags: Annotated[list[Named], Field(min_length=1)] = Field(default_factory=lambda: ["nightly"])
    keep_days: Annotated[int, Field(ge=1, le=3650)] | None = None
    """Stage folders, outputs, logs and reports older than this are removed; None: kept."""
    confirm_checks: Annotated[int, Field(ge=0, le=1000)] = 36
    """Checks that are run again at most, in all, to confirm what is red."""
    confirm_minutes: Annotated[float, Field(ge=0, le=1440)] = 60.0
    """No further look begins after so many minutes of confirming."""
    flutter_nights: Annotated[int, Field(ge=3, le=365)] = 10
    """Nights over which flutters of one leg are counted: the third is red."""
    max_gap_hours: Annotated[float, Field(gt=0, le=8760)] = 30.0
    """A longer time between two nights is told: one did not run."""
    mail_to: list[
        Annotated[str, StringConstraints(pattern=r"^[^@\s,]+@[^@\s,]+$|^[a-z_][a-z0-9_-]*$")]
    ] = Field(default_factory=list)
    mail_from: OneLine | None = None
    smtp: MailServer | None = None
    """``host`` or ``host:port``; the machine's own sendmail or mail command if None."""
    webhook: Annotated[str, StringConstraints(pattern=r"^[A-Z_][A-Z0-9_]*$")] | None = None
    """Name of the environment variable that holds the URL; the URL itself is a secret."""
    html: str | None = None
    """With ``junit`` and ``prometheus``: files that ``fabricproof report`` writes afterwards."""
    junit: str | None = None
    prometheus: str | None = None


class SiteFile(_Model):
    """``site.toml``."""

    site: SiteSpec
    partitions: Annotated[list[PartitionSpec], Field(min_length=1)]
    stacks: Annotated[list[StackSpec], Field(min_length=1)]
    night: NightSpec = Field(default_factory=NightSpec)
    reframe: dict[str, Any] = Field(default_factory=dict)


#: the quantities that a reference of a fabric may have, as a pattern
OF_FABRICS = (
    r"(host_to_device_|device_to_host_|device_)?(bandwidth|latency)(_\d+(B|KiB|MiB|GiB))?"
    r"|device_busbw(_\d+(B|KiB|MiB|GiB))?|mpi_share"
)


class ReferenceSpec(_Model):
    """One expectation of the site: a quantity, where it holds, and why we believe it."""

    quantity: Named
    """As :data:`OF_FABRICS`, or a performance variable of ``check``.
    ``mpi_share``: what MPI is to carry of what TCP does below it, as ``0.9 x``."""
    value: str
    """Of a quantity of ``check`` in any unit."""
    tolerance: Annotated[float, Field(ge=0, le=10)] | None = None
    fabric: Name | None = None
    """Of all quantities but those of ``check``."""
    check: Named | None = None
    """A check of the site's own software, by its class; ``stack`` may be any environment."""
    partition: Name | None = None
    """With ``check``: where it holds; None: anywhere."""
    better: Literal["more", "less"] | None = None
    """With ``check``: which side of the value is good."""
    suite: Named | None = None
    program: Named | None = None
    stack: Name | None = None
    num_rails: Annotated[int, Field(ge=1)] | None = None
    hops: Annotated[int, Field(ge=1)] | None = None
    """Switches between the nodes of a pair, for the checks that choose pairs by them."""
    num_nodes: Annotated[int, Field(ge=1)] | None = None
    """With ``ranks_per_node``: the layout of a collective that it holds for; None: any."""
    ranks_per_node: Annotated[int, Field(ge=1)] | None = None
    stack_digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")] | None = None
    """The build it was measured with, as perflogs show it; no other is judged by it."""
    origin: Words


class ReferenceFile(_Model):
    """``references.toml``."""

    references: list[ReferenceSpec] = Field(default_factory=list)
