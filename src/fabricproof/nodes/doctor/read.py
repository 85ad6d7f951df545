"""Read what a stack, a node and Slurm say of themselves: answers of probes in, facts out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from fabricproof.core.units import by_key
from fabricproof.nodes.doctor.facts import (
    Answer,
    LibraryFacts,
    MpiFacts,
    NodeFacts,
    ProgramFacts,
    SlurmFacts,
    WrapperFacts,
)
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.read import read_machine
from fabricproof.site.scheduling import read_traits

#: the MPI library by any family's name; not libmpi_cxx, libmpifort, libmpi_usempi...
_MPI_LIBRARY = re.compile(r"^libmpi(ch|_ilp64|_mt|_abi)?\.so")


def _pairs(lines: Iterable[str]) -> list[tuple[str, str]]:
    split = (line.partition(": ") for line in lines)
    return [(key, value) for key, colon, value in split if colon]


def _two(value: str) -> tuple[str, str]:
    first, _, rest = value.partition(" ")
    return first, rest.partition(" ")[0]


def read_asker(answer: Answer) -> LibraryFacts:
    """Return what :mod:`.asker` printed; without its last line nothing that is absent is "none"."""
    said = by_key(_pairs(answer.output.splitlines()))
    loads = tuple(said.get("loads", ()))
    fault = "; ".join(said.get("fault", ())) if "asked" not in said else ""
    if "asked" not in said and not fault:
        fault = answer.fault or "its answer was cut off"
    has_fabric, has_ucx = "libfabric" in said, "ucx-asked" in said
    domains = tuple(_two(value) for value in said.get("provider-domain", ()))
    transports = tuple(_two(value) for value in said.get("ucx-transport", ()))
    return LibraryFacts(
        path=next((path for path in loads if _MPI_LIBRARY.match(path.rpartition("/")[2])), None),
        version=tuple(said["version"]) if "version" in said else None,
        loads=loads,
        verbs_in=tuple(said.get("verbs-in", ())),
        libfabric=said.get("libfabric", [None])[0],
        providers=tuple(said.get("provider", ())) if has_fabric else None,
        domains=domains if has_fabric else None,
        pmix=next(iter(re.findall(r"PMIx v?(\d[\w.]*)", " ".join(said.get("pmix", ())))), None),
        ucx=said.get("ucx", [None])[0],
        ucx_modules=tuple(said.get("ucx-module", ())),
        transports=transports if has_ucx else None,
        fault=fault,
        has_command=answer.status != 127,
    )


def read_ldd(path: str, answer: Answer) -> ProgramFacts:
    """Return what ``ldd`` says a program loads."""
    if answer.status and "=>" not in answer.output:
        return ProgramFacts(path=path, fault=answer.fault)
    mpi, missing = None, []
    for line in answer.output.splitlines():
        name, arrow, place = line.strip().partition(" => ")
        if arrow and place.startswith("not found"):
            missing.append(name)
        elif arrow and _MPI_LIBRARY.match(name):
            mpi = place.rpartition(" (")[0] or place
    return ProgramFacts(path=path, mpi=mpi, missing=tuple(missing))


_COMPONENT = re.compile(r"^mca:(\w+):([\w-]+):version:")
_CONFIGURE = re.compile(
    r"^(?:config:cli|MPICH configure|MPICH[^:]* configure|.*Configure.*?):\s*(.*)"
)
#: a path alone on its line; Open MPI's wrapper begins its answer with its own path, too.
_LINK = re.compile(r"^/\S*$")
_PMIX_FULL = re.compile(r"^pmix:version:full:(\S+)", re.M)

_FAMILIES = {
    "openmpi": re.compile(r"Open MPI|open-?mpi", re.I),
    "intelmpi": re.compile(r"Intel\(R\) MPI", re.I),
    "mvapich2": re.compile(r"MVAPICH2\b", re.I),
    "mvapich": re.compile(r"MVAPICH", re.I),
    "craympich": re.compile(r"CRAY MPICH", re.I),
    "parastation": re.compile(r"ParaStation", re.I),
    "mpich": re.compile(r"MPICH", re.I),
}
_VERSION = {
    "openmpi": re.compile(r"Open MPI\)?:?\s+v?(\d+(?:\.\d+)*\w*)"),
    "intelmpi": re.compile(r"(?:Library|Version)\s+(\d{4}(?:\.\d+)*)"),
    "mvapich": re.compile(r"MVAPICH\S*\s+(?:Version\s*:?\s*)?(\d+(?:\.\d+)*\w*)", re.I),
    "mvapich2": re.compile(r"MVAPICH2\s+(?:Version\s*:?\s*)?(\d+(?:\.\d+)*\w*)", re.I),
    "craympich": re.compile(r"CRAY MPICH version (\d+(?:\.\d+)*)", re.I),
    "parastation": re.compile(r"ParaStation\s?MPI\s+v?(\d+(?:\.\d+)*\S*)", re.I),
    "mpich": re.compile(r"MPICH Version:\s*(\d+(?:\.\d+)*\w*)"),
}


def family_of(text: str) -> str | None:
    """Return the MPI family that a version string or a compiler line speaks of; None if none.

    MVAPICH and Intel MPI speak of MPICH too and are looked for before it.
    """
    return next((name for name, words in _FAMILIES.items() if words.search(text)), None)


def version_of(text: str) -> str | None:
    """Return the MPI's version in its version string; None where it has none."""
    family = family_of(text)
    match = _VERSION[family].search(text) if family else None
    return match[1] if match else None


def read_mpi(*answers: Answer | None) -> MpiFacts:
    """Return what ``ompi_info --parsable``, ``pmix_info`` or ``mpichversion`` say of the build."""
    texts = [each.output for each in answers if each is not None and each.status == 0]
    lines = [line for text in texts for line in text.splitlines()]
    components = frozenset(
        f"{match[1]}:{match[2]}" for line in lines if (match := _COMPONENT.match(line))
    )
    configure = next((match[1] for line in lines if (match := _CONFIGURE.match(line))), None)
    pmix = next((match[1] for text in texts if (match := _PMIX_FULL.search(text))), None)
    return MpiFacts(components=components or None, configure=configure, pmix=pmix)


def read_wrapper(answer: Answer | None) -> WrapperFacts | None:
    """Return the wrapper: its path, its links followed, each a line, then what it says it is.

    None where no ``mpicc`` is on PATH.
    """
    if answer is None or not answer.output.startswith("/"):
        return None
    path, *rest = answer.output.splitlines()
    links = [line for line in rest if _LINK.match(line)]
    told = "\n".join(line for line in rest if not _LINK.match(line))
    real = links[-1] if links else path
    family = family_of(told) or family_of(real.rpartition("/")[2])
    return WrapperFacts(
        path=path,
        real=real,
        alternatives=any(link.startswith("/etc/alternatives/") for link in links),
        family=family,
    )


def read_look(answer: Answer | None, host: str, rails: Collection[str]) -> Machine | None:
    """Return the machine that ``look.sh`` showed with these rails; None where it showed nothing."""
    if answer is None:
        return None
    # An answer comes without its last line feed; of a look that was cut off that line may be half.
    ending = "" if answer.status else "\n"
    machine = read_machine(answer.output + ending, host, rails)
    # Whether a rail exists does not hang on addresses here: sysfs was read, and rails are kept.
    troubles = tuple(each for each in machine.troubles if each.tool != "ip")
    return replace(machine, troubles=troubles) if machine.facts else None


def read_node(
    answers: Mapping[str, Answer], *, is_node: bool, rails: Collection[str] = ()
) -> NodeFacts:
    """Return what the probes ``host``, ``uid``, ``memlock``, ``look`` ... answered."""
    told, uid, memlock = (answers.get(name) for name in ("host", "uid", "memlock"))
    host = told.output.strip() if told and told.status == 0 else "?"
    limit = memlock.output.strip() if memlock and memlock.status == 0 else ""
    pmi, environment = answers.get("pmi"), answers.get("environment")
    libraries = None
    if pmi is not None and pmi.status != 124:
        found = (line.strip() for line in pmi.output.splitlines())
        libraries = tuple(dict.fromkeys(line for line in found if line.startswith("/")))
    variables = (
        line.partition("=") for line in (environment.output if environment else "").splitlines()
    )
    return NodeFacts(
        host=host,
        is_node=is_node,
        uid=int(uid.output) if uid and uid.output.strip().isdigit() else None,
        memlock_kib=-1 if limit == "unlimited" else int(limit) if limit.isdigit() else None,
        machine=read_look(answers.get("look"), host, rails),
        pmi_libraries=libraries,
        environment={
            name: value for name, sign, value in variables if sign and name.isidentifier()
        },
    )


#: ``srun: MPI types are...`` before 20.11, ``MPI plugin types are...`` since 21.08.
_LIST_HEAD = re.compile(r"MPI (?:plugin )?types are")
_PMIX_VERSIONS = re.compile(r"pmix plugin versions available:\s*(.*)")
_PMIX_PLUGIN = re.compile(r"^pmix_v(\d+)$")
_SETTING = re.compile(r"^(\w+)\s*=\s*(.*)$", re.M)


def read_slurm(mpi_list: Answer, config: Answer, partitions: Answer | None = None) -> SlurmFacts:
    """Return what the commands say; a silent Slurm is a fault, not "no plugins"."""
    listed = mpi_list.output.splitlines()
    if not any(_LIST_HEAD.search(line) for line in listed):
        reason = mpi_list.fault or "srun --mpi=list says something else"
        return SlurmFacts(fault=config.fault or reason)
    words, versions = _types(listed)
    versions |= {int(match[1]) for word in words if (match := _PMIX_PLUGIN.match(word))}
    settings = dict(_SETTING.findall(config.output)) if config.status == 0 else {}
    return SlurmFacts(
        mpi_types=tuple(words),
        pmix_versions=tuple(sorted(versions)),
        mpi_default=settings.get("MpiDefault"),
        traits=read_traits(_output(config), _output(partitions)),
        fault=config.fault,
    )


def _output(answer: Answer | None) -> str:
    return answer.output if answer is not None and answer.status == 0 else ""


def _types(lines: list[str]) -> tuple[list[str], set[int]]:
    words: list[str] = []
    versions: set[int] = set()
    for line in (line.strip().removeprefix("srun: ") for line in lines):
        special = _PMIX_VERSIONS.search(line)
        if special:
            names = re.split(r"[,\s]+", special[1].strip())
            versions |= {int(match[1]) for name in names if (match := _PMIX_PLUGIN.match(name))}
        elif re.fullmatch(r"[\w-]+", line):
            words.append(line)
    return words, versions


def effective_type(options: tuple[str, ...], default: str | None) -> str | None:
    """Return the plugin that srun will take: the last ``--mpi=`` wins, else ``MpiDefault``."""
    chosen = default
    for option, following in zip(options, (*options, "")[1:], strict=True):
        if option.startswith("--mpi="):
            chosen = option.removeprefix("--mpi=")
        elif option == "--mpi":
            chosen = following
    return chosen
