"""Which MPI stacks a machine has: provisioned, as modules, on PATH, or to be built.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabricproof.core.units import by_key
from fabricproof.nodes.discover.cluster import Host, Slurm
from fabricproof.nodes.discover.draft import Entry, guess, seen
from fabricproof.stacks.launch import OWN_LAUNCHER, SRUN_PMI
from fabricproof.stacks.wheels import WheelStack


@dataclass(frozen=True, kw_only=True)
class StackDraft:
    """One stack.

    Attributes:
        entries: its lines in site.toml, name included.
        has_programs: whether OSU or IMB are known to be there.
    """

    name: str
    entries: tuple[Entry, ...]
    has_programs: bool


#: what module files and folders of the families are called: Lmod and EasyBuild names, Debian's and
#: Red Hat's, OpenHPC's (openmpi4), Intel's, NVIDIA's (hpcx) and Cray's
_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("mvapich2", re.compile(r"mvapich2(?!/[3-9])|mvapich[^/]*/2\.", re.IGNORECASE)),
    ("mvapich", re.compile(r"mvapich", re.IGNORECASE)),
    ("craympich", re.compile(r"(?:^|/)cray-mpich", re.IGNORECASE)),
    ("parastation", re.compile(r"(?:^|/)(?:psmpi|parastation-?mpi)\b", re.IGNORECASE)),
    ("intelmpi", re.compile(r"(?:^|/)(?:impi|intel-?mpi|intel-oneapi-mpi)\b", re.IGNORECASE)),
    ("mpich", re.compile(r"(?:^|/)mpich", re.IGNORECASE)),
    ("openmpi", re.compile(r"(?:^|/)(?:openmpi|ompi|hpcx)", re.IGNORECASE)),
)
_OSU = re.compile(r"(?:^|/)(?:osu-micro-benchmarks|omb|osu)\b", re.IGNORECASE)
_IMB = re.compile(r"(?:^|/)(?:intel-mpi-benchmarks|imb)\b", re.IGNORECASE)

#: what mpirun --version says
_ANSWERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("openmpi", re.compile(r"Open MPI|OpenRTE|prterun", re.IGNORECASE)),
    ("intelmpi", re.compile(r"Intel\(R\) MPI", re.IGNORECASE)),
    ("mpich", re.compile(r"HYDRA|mpich|Version:", re.IGNORECASE)),
)


def find_stacks(
    host: Host, slurm: Slurm | None, provisioned: Sequence[WheelStack]
) -> tuple[list[StackDraft], list[str]]:
    """Return the stacks that a node has, at least one, and sentences on what was passed over."""
    passed_over: list[str] = []
    drafts = [_provisioned(each) for each in provisioned]
    drafts += _from_modules(host, slurm, {each.name for each in provisioned}, passed_over)
    if not drafts:
        drafts += _from_path(host, slurm)
    if not any(draft.has_programs for draft in drafts):
        drafts.append(_to_build({draft.name for draft in drafts}))
    return drafts, passed_over


def _provisioned(stack: WheelStack) -> StackDraft:
    entries = [
        Entry(key="name", value=stack.name, note="installed by fabricproof stack install"),
        Entry(key="family", value=stack.family),
        Entry(key="version", value=stack.version),
        Entry(key="modules", value=[stack.name]),
        Entry(key="provisioned", value=True),
    ]
    if stack.family == "openmpi":
        # docs/stacks.md: over one connection btl/tcp carries one direction after the other.
        links = {"OMPI_MCA_btl_tcp_links": "2"}
        entries.append(Entry(key="environment", value=links, note="both directions at once"))
    return StackDraft(name=stack.name, entries=tuple(entries), has_programs=True)


def family_of(module: str) -> str | None:
    """Return the MPI family of a module's name, None where it is no MPI."""
    return next((family for family, pattern in _FAMILIES if pattern.search(module)), None)


def version_of(text: str) -> str:
    """Return the version in a module's name or a program's answer; ``unknown`` where none is."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return found[0] if found else "unknown"


def _newness(module: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version_of(module)))


def _from_modules(
    host: Host, slurm: Slurm | None, known: set[str], passed_over: list[str]
) -> Iterator[StackDraft]:
    """Yield one stack for each family that has modules, the newest; say which were passed over."""
    by_family = by_key(
        (family, module)
        for module in host.modules
        if (family := family_of(module)) is not None and module.partition("/")[0] not in known
    )
    for family, modules in by_family.items():
        newest = max(modules, key=_newness)
        passed_over += [f"module {each}: an older {family}" for each in modules if each != newest]
        yield _from_module(host, slurm, family, newest)


def _from_module(host: Host, slurm: Slurm | None, family: str, module: str) -> StackDraft:
    suites = {
        suite: found
        for suite, pattern in (("osu", _OSU), ("imb", _IMB))
        if (found := _newest_matching(host.modules, pattern))
    }
    programs = dict.fromkeys(suites, "PATH")
    if family == "intelmpi":
        programs.setdefault("imb", "PATH")
    version = version_of(module)
    entries = [
        Entry(key="name", value=family, note="" if programs else _no_programs(family)),
        Entry(key="family", value=family, note=guess("by the module's name", "mpirun --version")),
        Entry(
            key="version",
            value=version,
            note=guess("by the module's name", f"module show {module}"),
        ),
        Entry(
            key="modules",
            value=[module, *suites.values()],
            note=guess(
                f"listed on {host.name}; a compiler may have to be loaded first",
                f"module spider {module}",
            ),
        ),
        *_launch_entries(host, slurm, family),
    ]
    if programs:
        check = f"module load {' '.join([module, *suites.values()])}; command -v osu_bw IMB-MPI1"
        entries.append(
            Entry(key="suites", value=programs, note=guess("on PATH once loaded", check))
        )
    return StackDraft(name=family, entries=tuple(entries), has_programs=bool(programs))


def _no_programs(name: str) -> str:
    why = "no OSU or IMB seen for it: say where with suites, or take a stack that has them"
    check = f"module spider osu; fabricproof stack install (wheels) or stack build {name} (Spack)"
    return guess(why, check)


def _newest_matching(modules: Iterable[str], pattern: re.Pattern[str]) -> str | None:
    found = [module for module in modules if pattern.search(module)]
    return max(found, key=_newness) if found else None


def _launch_entries(host: Host, slurm: Slurm | None, family: str) -> Iterator[Entry]:
    """Yield a launcher of the family's own where srun does not speak its PMI."""
    if slurm is None:
        return
    pmi = SRUN_PMI[family]
    if not pmi:  # the scheduler's default
        return
    speaks = any(each == pmi or each.startswith(f"{pmi}_") for each in slurm.mpi_types)
    if slurm.mpi_types and not speaks:
        why = f"srun has no {pmi}, only {', '.join(slurm.mpi_types)}"
        own = OWN_LAUNCHER[family]
        yield Entry(key="launcher", value=own, note=guess(why, "srun --mpi=list"))
    elif family == "intelmpi" and not host.pmi2_library:
        why = f"no libpmi2 on {host.name}, which srun needs for Intel MPI"
        note = guess(why, "ls /usr/lib*/libpmi2.so* /opt/slurm/lib/libpmi2.so*")
        yield Entry(key="launcher", value="mpirun", note=note)


def _from_path(host: Host, slurm: Slurm | None) -> Iterator[StackDraft]:
    """Yield the MPI that is on PATH without any module."""
    program = host.programs.get("mpirun") or host.programs.get("mpiexec")
    if program is None:
        return
    path, said = program
    family = next((name for name, pattern in _ANSWERS if pattern.search(said)), None)
    if family is None:
        return
    suites = {
        suite: "PATH"
        for suite, name in (("osu", "osu_bw"), ("imb", "IMB-MPI1"))
        if name in host.programs
    }
    entries = [
        Entry(key="name", value=f"{family}-system", note=seen(host.name, path)),
        Entry(key="family", value=family, note=seen(host.name, said)),
        Entry(key="version", value=version_of(said)),
        *_launch_entries(host, slurm, family),
    ]
    if suites:
        entries.append(Entry(key="suites", value=suites, note=seen(host.name, "on PATH")))
    yield StackDraft(name=f"{family}-system", entries=tuple(entries), has_programs=bool(suites))


def _to_build(taken: set[str]) -> StackDraft:
    name = "openmpi" if "openmpi" not in taken else "openmpi-spack"
    why = (
        "nothing here has OSU or IMB: Spack builds them with an Open MPI; or, from wheels, "
        "fabricproof stack install, then site init again"
    )
    entries = (
        Entry(key="name", value=name),
        Entry(key="family", value="openmpi"),
        Entry(
            key="version",
            value="5.0",
            note=guess("what Spack will choose", f"fabricproof stack lock {name}"),
        ),
        Entry(key="spack", value="openmpi", note=guess(why, f"fabricproof stack build {name}")),
    )
    return StackDraft(name=name, entries=entries, has_programs=True)
