"""What was seen of a stack, its node and its scheduler, before anything runs.

None always means that the question was not answered; an empty tuple that the answer was "none".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.site.scheduling import SlurmTraits
from fabricproof.stacks.stack import ResolvedStack


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One command and what it said.

    Attributes:
        command: as a person would type it.
        output: standard output and standard error.
        status: exit status; 124 where its time ran out, 127 where there is no such command.
    """

    command: str
    output: str
    status: int

    @property
    def fault(self) -> str:
        """Why it answered nothing, in words; empty where it ended well."""
        if self.status == 0:
            return ""
        words = {127: "no such command", 124: "did not answer in time"}
        lines = self.output.strip().splitlines()
        return words.get(self.status) or f"status {self.status}: {lines[-1] if lines else 'silent'}"


@dataclass(frozen=True, kw_only=True)
class LibraryFacts:
    """What the MPI library says of itself, asked by :mod:`.asker`.

    Attributes:
        version: its version string (``MPI_Get_library_version``), line by line.
        providers: libfabric's, whether or not they have a device here.
        domains: (provider, device) pairs that libfabric offers here.
        ucx_modules: loadable transports: ``ib``, ``cma``, ``rdmacm``.
        transports: (transport, device) pairs that UCX offers here.
        verbs_in: libraries (``ucx``, ``libfabric``) that were built with verbs.
        has_command: whether the command that asks it is there.
    """

    path: str | None = None
    verbs_in: tuple[str, ...] = ()
    version: tuple[str, ...] | None = None
    loads: tuple[str, ...] = ()
    libfabric: str | None = None
    providers: tuple[str, ...] | None = None
    domains: tuple[tuple[str, str], ...] | None = None
    pmix: str | None = None
    ucx: str | None = None
    ucx_modules: tuple[str, ...] = ()
    transports: tuple[tuple[str, str], ...] | None = None
    fault: str = ""
    has_command: bool = True

    def loaded(self, begins: str) -> str | None:
        """Return the path of the loaded library whose name begins so, None where none does."""
        return next(
            (path for path in self.loads if PurePosixPath(path).name.startswith(begins)), None
        )


@dataclass(frozen=True, kw_only=True)
class MpiFacts:
    """What the MPI's own tools say of how it was built.

    Attributes:
        components: Open MPI's, as ``pml:ucx``; None for other families, or where not answered.
        pmix: version of the PMIx that Open MPI brings or was built against.
    """

    components: frozenset[str] | None = None
    configure: str | None = None
    pmix: str | None = None


@dataclass(frozen=True, kw_only=True)
class WrapperFacts:
    """The compiler wrapper that comes first."""

    path: str
    real: str
    alternatives: bool = False
    family: str | None = None


@dataclass(frozen=True, kw_only=True)
class ProgramFacts:
    """What one program of the stack loads.

    Attributes:
        mpi: the MPI library that the loader finds, None where it needs none.
        missing: libraries that the loader does not find.
    """

    path: str
    mpi: str | None = None
    missing: tuple[str, ...] = ()
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """The machine on which everything was seen.

    Attributes:
        is_node: it is one on which jobs run, not only a login node.
        memlock_kib: locked memory that a process may have; -1 is unlimited.
        machine: what it is made of, as an inventory has it; None where it did not say.
        environment: variables of MPIs and transports that are set before the stack's own.
    """

    host: str = "?"
    is_node: bool = False
    uid: int | None = None
    memlock_kib: int | None = None
    machine: Machine | None = None
    pmi_libraries: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def ports(self) -> dict[str, Mapping[str, Value]]:
        """Ports of HCAs and of software devices that were seen, by name: ``mlx5_0:1``."""
        parts = self.machine.facts if self.machine else {}
        return {
            part.removeprefix("port "): facts
            for part, facts in parts.items()
            if part.startswith("port ")
        }


@dataclass(frozen=True, kw_only=True)
class SlurmFacts:
    """Slurm, as far as it matters to an MPI.

    Attributes:
        mpi_types: plugins that ``srun --mpi=`` takes.
        pmix_versions: major versions of PMIx that it has plugins for.
        mpi_default: what srun takes where it is told nothing.
    """

    mpi_types: tuple[str, ...] | None = None
    pmix_versions: tuple[int, ...] = ()
    mpi_default: str | None = None
    traits: SlurmTraits = field(default_factory=SlurmTraits)
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class World:
    """What a real launch of two ranks gave.

    Attributes:
        fault: what is wrong with it; None where it is the launch that was asked for.
        output: its end.
    """

    command: str
    num_ranks: int
    fault: str | None
    output: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that the rules judge.

    Attributes:
        slurm: None on a site without it.
        module: answer of ``module load``, None where no module is needed.
        launcher: answer of ``mpirun --version``.
        container: what the runtime said, and what was seen in the image; None without one.
        world: of ``--run``, None where it was not asked for.
    """

    subject: ResolvedStack
    library: LibraryFacts = LibraryFacts()
    mpi: MpiFacts = MpiFacts()
    wrapper: WrapperFacts | None = None
    programs: tuple[ProgramFacts, ...] = ()
    node: NodeFacts = NodeFacts()
    slurm: SlurmFacts | None = None
    module: Answer | None = None
    launcher: Answer | None = None
    container: Answer | None = None
    world: World | None = None
    commands: Mapping[str, str] = field(default_factory=dict)

    def seen_by(self, *probes: str) -> str:
        """Return the commands that answered these probes, for people."""
        return "; ".join(self.commands[name] for name in probes if name in self.commands)
