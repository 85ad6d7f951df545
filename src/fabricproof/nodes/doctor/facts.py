"""What was seen of a stack, its node and its scheduler, and how it is read from answers of probes.

None always means that the question was not answered; an empty tuple that the answer was "none".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from fabricproof.core.units import by_key
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.read import read_machine
from fabricproof.site.scheduling import SlurmTraits, read_traits
from fabricproof.stacks.stack import ResolvedStack


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One command, as a person would type it, and what it said on both streams.

    ``status`` is 124 if its time ran out, 127 if there is no such command.
    """

    command: str
    output: str
    status: int

    @property
    def fault(self) -> str:
        """Why it answered nothing, in words; empty if it ended well."""
        if self.status == 0:
            return ""
        words = {127: "no such command", 124: "did not answer in time"}
        lines = self.output.strip().splitlines()
        return words.get(self.status) or f"status {self.status}: {lines[-1] if lines else 'silent'}"

    @property
    def lines(self) -> list[str]:
        """What it said, line by line, without empty ones."""
        return [line.strip() for line in self.output.splitlines() if line.strip()]


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

    def loaded(self, begins: str) -> bool:
        """Tell whether a library whose name begins so is loaded."""
        return any(PurePosixPath(path).name.startswith(begins) for path in self.loads)


@dataclass(frozen=True, kw_only=True)
class MpiFacts:
    """What the MPI's own tools say of its build: Open MPI's components (``pml:ucx``), PMIx."""

    components: frozenset[str] | None = None
    configure: str | None = None
    pmix: str | None = None


@dataclass(frozen=True, kw_only=True)
class ProgramFacts:
    """What one program loads: its MPI library (None if it needs none), and what is not found."""

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
        machine: what it is made of, as an inventory has it.
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
        begin = "port "
        return {part.removeprefix(begin): parts[part] for part in parts if part.startswith(begin)}


@dataclass(frozen=True, kw_only=True)
class SlurmFacts:
    """Slurm, as far as it matters to an MPI.

    Attributes:
        mpi_types: plugins that ``srun --mpi=`` takes.
        pmix_versions: major versions of PMIx that it has plugins for.
        mpi_default: what srun takes if it is told nothing.
    """

    mpi_types: tuple[str, ...] | None = None
    pmix_versions: tuple[int, ...] = ()
    mpi_default: str | None = None
    traits: SlurmTraits = field(default_factory=SlurmTraits)
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class World:
    """What a real launch of two ranks gave; ``fault`` is None if it is what was asked for."""

    command: str
    num_ranks: int
    fault: str | None
    output: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that the rules judge.

    Attributes:
        slurm: None on a site without it.
        module: answer of ``module load``, None if no module is needed.
        launcher: answer of ``mpirun --version``.
        container: what the runtime said, and what was seen in the image; None without one.
        world: of ``--run``, None if it was not asked for.
        commands: probe -> the command that answered it.
    """

    subject: ResolvedStack
    library: LibraryFacts = LibraryFacts()
    mpi: MpiFacts = MpiFacts()
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


#: the MPI library by any family's name; not libmpi_cxx, libmpifort, libmpi_usempi...
_MPI_LIBRARY = re.compile(r"^libmpi(ch|_ilp64|_mt|_abi)?\.so")


def read_asker(answer: Answer) -> LibraryFacts:
    """Return what :mod:`.asker` printed; without its last line nothing that is absent is "none"."""
    split = (line.partition(": ") for line in answer.output.splitlines())
    said = by_key((key, value) for key, colon, value in split if colon)
    loads = tuple(said.get("loads", ()))
    fault = ""
    if "asked" not in said:
        fault = "; ".join(said.get("fault", ())) or answer.fault or "its answer was cut off"
    pairs = {
        key: tuple((words[0], words[1]) for value in said.get(key, ()) if (words := value.split()))
        for key in ("provider-domain", "ucx-transport")
    }
    return LibraryFacts(
        path=next((path for path in loads if _MPI_LIBRARY.match(path.rpartition("/")[2])), None),
        version=tuple(said["version"]) if "version" in said else None,
        loads=loads,
        verbs_in=tuple(said.get("verbs-in", ())),
        libfabric=said.get("libfabric", [None])[0],
        providers=tuple(said.get("provider", ())) if "libfabric" in said else None,
        domains=pairs["provider-domain"] if "libfabric" in said else None,
        pmix=next(iter(re.findall(r"PMIx v?(\d[\w.]*)", " ".join(said.get("pmix", ())))), None),
        ucx=said.get("ucx", [None])[0],
        ucx_modules=tuple(said.get("ucx-module", ())),
        transports=pairs["ucx-transport"] if "ucx-asked" in said else None,
        fault=fault,
        has_command=answer.status != 127,
    )


def read_ldd(path: str, answer: Answer) -> ProgramFacts:
    """Return what ``ldd`` says a program loads."""
    if answer.status and "=>" not in answer.output:
        return ProgramFacts(path=path, fault=answer.fault)
    mpi, missing = None, []
    for line in answer.lines:
        name, arrow, place = line.partition(" => ")
        if arrow and place.startswith("not found"):
            missing.append(name)
        elif arrow and _MPI_LIBRARY.match(name):
            mpi = place.rpartition(" (")[0] or place
    return ProgramFacts(path=path, mpi=mpi, missing=tuple(missing))


#: MPI family -> the words that it is known by, and its version; MVAPICH and Intel MPI speak of
#: MPICH too and stand before it
_FAMILIES: dict[str, tuple[str, str]] = {
    "openmpi": (r"Open MPI|open-?mpi", r"Open MPI\)?:?\s+v?(\d+(?:\.\d+)*\w*)"),
    "intelmpi": (r"Intel\(R\) MPI", r"(?:Library|Version)\s+(\d{4}(?:\.\d+)*)"),
    "mvapich2": (r"MVAPICH2\b", r"MVAPICH2\s+(?:Version\s*:?\s*)?(\d+(?:\.\d+)*\w*)"),
    "mvapich": (r"MVAPICH", r"MVAPICH\S*\s+(?:Version\s*:?\s*)?(\d+(?:\.\d+)*\w*)"),
    "craympich": (r"CRAY MPICH", r"CRAY MPICH version (\d+(?:\.\d+)*)"),
    "parastation": (r"ParaStation", r"ParaStation\s?MPI\s+v?(\d+(?:\.\d+)*\S*)"),
    "mpich": (r"MPICH", r"MPICH Version:\s*(\d+(?:\.\d+)*\w*)"),
}


def family_of(text: str) -> str | None:
    """Return the MPI family that a version string speaks of; None if none."""
    return next(
        (name for name, (words, _) in _FAMILIES.items() if re.search(words, text, re.I)), None
    )


def version_of(text: str) -> str | None:
    """Return the MPI's version in its version string; None if it has none."""
    family = family_of(text)
    match = re.search(_FAMILIES[family][1], text, re.I) if family else None
    return match[1] if match else None


_COMPONENT = re.compile(r"^mca:(\w+):([\w-]+):version:", re.M)
_CONFIGURE = re.compile(
    r"^(?:config:cli|MPICH configure|MPICH[^:]* configure|.*Configure.*?):\s*(.*)", re.M
)
_PMIX_FULL = re.compile(r"^pmix:version:full:(\S+)", re.M)


def read_mpi(*answers: Answer | None) -> MpiFacts:
    """Return what ``ompi_info --parsable``, ``pmix_info`` or ``mpichversion`` say of the build."""
    text = "\n".join(each.output for each in answers if each is not None and each.status == 0)
    configure, pmix = _CONFIGURE.search(text), _PMIX_FULL.search(text)
    return MpiFacts(
        components=frozenset(map(":".join, _COMPONENT.findall(text))) or None,
        configure=configure and configure[1],
        pmix=pmix and pmix[1],
    )


def read_look(answer: Answer | None, host: str, rails: Collection[str]) -> Machine | None:
    """Return the machine that ``look.py`` showed with these rails; None if it showed nothing."""
    machine = read_machine(answer.output if answer else "", host, rails)
    # Whether a rail exists does not hang on addresses here: sysfs was read, and rails are kept.
    troubles = tuple(each for each in machine.troubles if each.tool != "ip")
    return replace(machine, troubles=troubles) if machine.facts else None


def read_node(
    answers: Mapping[str, Answer], *, is_node: bool, rails: Collection[str] = ()
) -> NodeFacts:
    """Return what the probes ``host``, ``uid``, ``memlock``, ``look`` ... answered."""
    said = {name: each.output.strip() for name, each in answers.items() if each.status == 0}
    host, limit, pmi = said.get("host", "?"), said.get("memlock", ""), answers.get("pmi")
    libraries = None
    if pmi is not None and pmi.status != 124:
        libraries = tuple(dict.fromkeys(line for line in pmi.lines if line.startswith("/")))
    environment = answers.get("environment")
    variables = (line.partition("=") for line in (environment.lines if environment else ()))
    return NodeFacts(
        host=host,
        is_node=is_node,
        uid=int(said["uid"]) if said.get("uid", "").isdigit() else None,
        memlock_kib=-1 if limit == "unlimited" else int(limit) if limit.isdigit() else None,
        machine=read_look(answers.get("look"), host, rails),
        pmi_libraries=libraries,
        environment={
            name: value for name, sign, value in variables if sign and name.isidentifier()
        },
    )


#: ``srun: MPI types are...`` before 20.11, ``MPI plugin types are...`` since 21.08.
_LIST_HEAD = re.compile(r"MPI (?:plugin )?types are")
_PMIX_PLUGIN = re.compile(r"\bpmix_v(\d+)\b")


def read_slurm(mpi_list: Answer, config: Answer, partitions: Answer | None = None) -> SlurmFacts:
    """Return what the commands say; a silent Slurm is a fault, not "no plugins"."""
    if not _LIST_HEAD.search(mpi_list.output):
        reason = mpi_list.fault or "srun --mpi=list says something else"
        return SlurmFacts(fault=config.fault or reason)
    lines = (line.removeprefix("srun: ") for line in mpi_list.lines)
    told = [each.output if each and each.status == 0 else "" for each in (config, partitions)]
    default = re.search(r"^MpiDefault\s*=\s*(.*)$", told[0], re.M)
    return SlurmFacts(
        mpi_types=tuple(line for line in lines if re.fullmatch(r"[\w-]+", line)),
        pmix_versions=tuple(sorted({int(each) for each in _PMIX_PLUGIN.findall(mpi_list.output)})),
        mpi_default=default[1] if default else None,
        traits=read_traits(*told),
        fault=config.fault,
    )


def effective_type(options: tuple[str, ...], default: str | None) -> str | None:
    """Return the plugin that srun will take: the last ``--mpi=`` wins, else ``MpiDefault``."""
    chosen = default
    for option, following in zip(options, (*options, "")[1:], strict=True):
        if option.startswith("--mpi="):
            chosen = option.removeprefix("--mpi=")
        elif option == "--mpi":
            chosen = following
    return chosen
