"""Which MPI stacks a machine has: provisioned, as modules, on PATH, or to be built.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabricproof.core.units import by_key
from fabricproof.nodes.discover.cluster import Host, Slurm
from fabricproof.nodes.discover.draft import guess, line, seen
from fabricproof.stacks.launch import OWN_LAUNCHER, SRUN_PMI
from fabricproof.stacks.wheels import WheelStack


@dataclass(frozen=True, kw_only=True)
class StackDraft:
    """One stack: its lines in site.toml, and whether OSU or IMB are known to be there."""

    name: str
    lines: tuple[str, ...]
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
    drafts = [_provisioned(each) for each in provisioned]
    known = {each.name for each in provisioned}
    modules = (each for each in host.modules if each.partition("/")[0] not in known)
    families = by_key((family, each) for each in modules if (family := family_of(each)))
    passed_over = []
    for family, found in families.items():
        newest = max(found, key=_newness)
        passed_over += [f"module {each}: an older {family}" for each in found if each != newest]
        drafts.append(_from_module(host, slurm, family, newest))
    if not drafts:
        drafts += _from_path(host, slurm)
    if not any(draft.has_programs for draft in drafts):
        drafts.append(_to_build({draft.name for draft in drafts}))
    return drafts, passed_over


def _provisioned(stack: WheelStack) -> StackDraft:
    lines = [
        line("name", stack.name, "installed by fabricproof stack install"),
        line("family", stack.family),
        line("version", stack.version),
        line("modules", [stack.name]),
        line("provisioned", True),
    ]
    if stack.family == "openmpi":
        # docs/stacks.md: over one connection btl/tcp carries one direction after the other.
        lines.append(
            line("environment", {"OMPI_MCA_btl_tcp_links": "2"}, "both directions at once")
        )
    return StackDraft(name=stack.name, lines=tuple(lines), has_programs=True)


def family_of(module: str) -> str | None:
    """Return the MPI family of a module's name, None if it is no MPI."""
    return next((family for family, pattern in _FAMILIES if pattern.search(module)), None)


def version_of(text: str) -> str:
    """Return the version in a module's name or a program's answer; ``unknown`` if none is."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return found[0] if found else "unknown"


def _newness(module: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version_of(module)))


def _from_module(host: Host, slurm: Slurm | None, family: str, module: str) -> StackDraft:
    suites = {}
    for suite, pattern in (("osu", _OSU), ("imb", _IMB)):
        if found := [each for each in host.modules if pattern.search(each)]:
            suites[suite] = max(found, key=_newness)
    modules, programs = [module, *suites.values()], dict.fromkeys(suites, "PATH")
    if family == "intelmpi":
        programs.setdefault("imb", "PATH")
    why = "no OSU or IMB seen for it: say where with suites, or take a stack that has them"
    check = "module spider osu; fabricproof stack install (wheels) or stack build"
    by_name = "by the module's name"
    listed = f"listed on {host.name}; a compiler may have to be loaded first"
    lines = [
        line("name", family, "" if programs else guess(why, f"{check} {family} (Spack)")),
        line("family", family, guess(by_name, "mpirun --version")),
        line("version", version_of(module), guess(by_name, f"module show {module}")),
        line("modules", modules, guess(listed, f"module spider {module}")),
        *_launcher(host, slurm, family),
    ]
    if programs:
        check = f"module load {' '.join(modules)}; command -v osu_bw IMB-MPI1"
        lines.append(line("suites", programs, guess("on PATH once loaded", check)))
    return StackDraft(name=family, lines=tuple(lines), has_programs=bool(programs))


def _launcher(host: Host, slurm: Slurm | None, family: str) -> Iterator[str]:
    """Yield a launcher of the family's own if srun does not speak its PMI."""
    pmi = SRUN_PMI[family]
    if slurm is None or not pmi:  # the scheduler's default
        return
    speaks = any(each == pmi or each.startswith(f"{pmi}_") for each in slurm.mpi_types)
    if slurm.mpi_types and not speaks:
        why = f"srun has no {pmi}, only {', '.join(slurm.mpi_types)}"
        yield line("launcher", OWN_LAUNCHER[family], guess(why, "srun --mpi=list"))
    elif family == "intelmpi" and not host.pmi2_library:
        why = f"no libpmi2 on {host.name}, which srun needs for Intel MPI"
        check = "ls /usr/lib*/libpmi2.so* /opt/slurm/lib/libpmi2.so*"
        yield line("launcher", "mpirun", guess(why, check))


def _from_path(host: Host, slurm: Slurm | None) -> Iterator[StackDraft]:
    """Yield the MPI that is on PATH without any module."""
    path, said = host.programs.get("mpirun") or host.programs.get("mpiexec") or ("", "")
    family = next((name for name, pattern in _ANSWERS if pattern.search(said)), None)
    if family is None:
        return
    known = (("osu", "osu_bw"), ("imb", "IMB-MPI1"))
    suites = {suite: "PATH" for suite, name in known if name in host.programs}
    name = f"{family}-system"
    lines = [
        line("name", name, seen(host.name, path)),
        line("family", family, seen(host.name, said)),
        line("version", version_of(said)),
        *_launcher(host, slurm, family),
        *([line("suites", suites, seen(host.name, "on PATH"))] if suites else []),
    ]
    yield StackDraft(name=name, lines=tuple(lines), has_programs=bool(suites))


def _to_build(taken: set[str]) -> StackDraft:
    name = "openmpi" if "openmpi" not in taken else "openmpi-spack"
    why = (
        "nothing here has OSU or IMB: Spack builds them with an Open MPI; or, from wheels, "
        "fabricproof stack install, then site init again"
    )
    lines = (
        line("name", name),
        line("family", "openmpi"),
        line("version", "5.0", guess("what Spack will choose", f"fabricproof stack lock {name}")),
        line("spack", "openmpi", guess(why, f"fabricproof stack build {name}")),
    )
    return StackDraft(name=name, lines=lines, has_programs=True)
