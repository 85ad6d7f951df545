"""What Spack has installed of a lock, which MPI its programs load, and two ranks of it.

Two MPIs below one prefix are common (``/usr``), and then ``mpicc`` is a link that somebody else
turns: the build is clean, the name is right, and the programs are another MPI's.  So what programs
load is proved before anybody relies on it.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import FabricproofError, UnavailableError
from fabricproof.core.group import run_group
from fabricproof.stacks.environment import answer_of, shell_line
from fabricproof.stacks.spack.environment.compose import SUITES, Environment
from fabricproof.stacks.spack.environment.lock import Lock
from fabricproof.stacks.spack.installation.record import Package
from fabricproof.stacks.spack.tool import Spack

_FORMAT = "{name}\x1f{version}\x1f{hash}\x1f{prefix}\x1f{variants}"


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The packages of a stack that matter to us."""

    mpi: Package
    programs: Mapping[str, Package]
    compiler: str
    target: str


def read_contents(environment: Environment, lock: Lock, spack: Spack) -> Contents:
    """Return what of ``lock`` is installed.

    Raises:
        UnavailableError: a package that was asked for is not installed.
    """
    answer = spack.call(["-e", str(environment.folder), "find", "--format", _FORMAT])
    found = dict(_rows(answer.output, lock))
    wanted = {"mpi": environment.mpi, **SUITES, **{name: name for name in environment.tools}}
    missing = sorted(name for name in wanted.values() if name not in found)
    if answer.status or missing:
        raise UnavailableError(
            "Spack installed less than was asked for",
            expected=", ".join(sorted(wanted.values())),
            got=f"without {', '.join(missing)}" if missing else answer.output.strip()[-200:],
            next_step=f"fabricproof stack build {environment.stack.name}   # goes on from there",
        )
    target = lock.find(SUITES["osu"])
    assert target is not None
    return Contents(
        mpi=found[wanted.pop("mpi")],
        programs={key: found[name] for key, name in wanted.items()},
        compiler=_compiler(lock),
        target=_target(target[1]),
    )


def _rows(output: str, lock: Lock) -> list[tuple[str, Package]]:
    rows = []
    for line in output.splitlines():
        fields = line.strip().split("\x1f")
        if len(fields) != 5:
            continue
        name, version, digest, prefix, variants = fields
        spec = lock.specs.get(digest)
        if spec is None or not Path(prefix).is_dir():
            continue
        package = Package(
            name=name,
            version=version,
            spec=" ".join(f"{name}@{version}{variants}".split()),
            digest=digest,
            prefix=prefix,
            external=bool(spec.get("external")),
        )
        rows.append((name, package))
    return rows


def _compiler(lock: Lock) -> str:
    """Return the compiler of OSU's programs, which is the stack's for our purpose."""
    osu = lock.find(SUITES["osu"])
    assert osu is not None
    for dependency in osu[1].get("dependencies", []):
        if "c" in dependency.get("parameters", {}).get("virtuals", ()):
            spec = lock.specs[dependency["hash"]]
            return f"{spec['name']}@{spec['version']}"
    return "unknown"


def _target(spec: Mapping[str, Any]) -> str:
    target = spec["arch"]["target"]
    return str(target["name"] if isinstance(target, dict) else target)


def core_compilers(lock: Lock) -> list[str]:
    """Return the compilers of the lock, which are all "core" to Lmod: MPI is the only level."""
    used = {
        dependency["hash"]
        for spec in lock.specs.values()
        for dependency in spec.get("dependencies", [])
        if {"c", "cxx", "fortran"} & set(dependency.get("parameters", {}).get("virtuals", ()))
    }
    return sorted(f"{lock.specs[each]['name']}@{lock.specs[each]['version']}" for each in used)


#: the MPI library as the loader knows it: libmpi.so.40 (Open MPI 3 to 5), libmpi.so.12 (the MPICH
#: ABI), libmpich.so.12 (Debian's MPICH).
_LIBRARY = re.compile(r"^\s*(libmpi(?:ch)?\.so\.\d+) => (not found|\S+)", re.MULTILINE)

_NUMBER = re.compile(r"\d+(?:\.\d+)+")

#: words in MPI_Get_library_version of each package, the telling one first.
_WORDS: Mapping[str, str] = {
    "openmpi": "Open MPI",
    "mpich": "MPICH Version",
    "intel-oneapi-mpi": "Intel(R) MPI Library",
    "mvapich": "MVAPICH",
}

_ASK = (
    "import ctypes, sys; text = ctypes.create_string_buffer(8192); size = ctypes.c_int(); "
    "mpi = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL); "
    "mpi.MPI_Get_library_version(text, ctypes.byref(size)); print(text.value.decode())"
)


def prove_linkage(
    programs: Iterable[Path], mpi: Package, environment: Mapping[str, str], python: Path
) -> str:
    """Return the one MPI library that all ``programs`` load.

    LD_LIBRARY_PATH is taken out of ``environment``, the programs must stand alone; ``python`` asks
    the library its name.

    Raises:
        UnavailableError: a program is missing, loads no MPI or another one.
    """
    quiet = {name: value for name, value in environment.items() if name != "LD_LIBRARY_PATH"}
    libraries = {}
    for program in programs:
        if not os.access(program, os.X_OK):
            raise UnavailableError(
                "a program of the stack is missing",
                expected=str(program),
                got="nothing there",
                next_step="Spack takes it for installed: fabricproof stack remove and build again",
            )
        libraries[_library(program, mpi, quiet)] = program
    for library, program in libraries.items():
        if not is_below(Path(library), Path(mpi.prefix)):
            raise _another(program, mpi, library)
        said = _version(library, quiet, python)
        if _WORDS[mpi.name] not in said or not _is_version(said, mpi):
            raise _another(program, mpi, f"{library} ({said})")
    return next(iter(libraries))


def _is_version(said: str, mpi: Package) -> bool:
    """Tell whether a library that says ``said`` is the version that the lock has.

    One may say less than the other (2021.18 of 2021.18.1), none may say something else.  One that
    says no number at all cannot be held against it.
    """
    found = _NUMBER.search(said.partition(_WORDS[mpi.name])[2]), _NUMBER.match(mpi.version)
    says, locked = (match[0].split(".") if match else [] for match in found)
    return all(one == other for one, other in zip(says, locked, strict=False))


def is_below(library: Path, prefix: Path) -> bool:
    """Tell whether ``library`` is the prefix's, by the loader's path or by where links lead.

    The prefix may be reached by a link, and the library in it may be a link out of it.
    """
    real = prefix.resolve()
    found = (library.parent.resolve(), library.resolve())
    return library.is_relative_to(prefix) or any(place.is_relative_to(real) for place in found)


def _library(program: Path, mpi: Package, environment: Mapping[str, str]) -> str:
    answer = answer_of(["ldd", str(program)], environment, seconds=60)
    found = sorted({(match[1], match[2]) for match in _LIBRARY.finditer(answer.stdout)})
    if len(found) > 1:
        raise _another(program, mpi, " and ".join(path for _, path in found))
    if not found or found[0][1] == "not found":
        raise UnavailableError(
            "a built program does not find its MPI library",
            source=str(program),
            expected="libmpi in ldd",
            got=" => ".join(found[0]) if found else "none",
            next_step="the compiler wrapper of the MPI sets no run path: look at its mpicc -show",
        )
    return found[0][1]


def _version(library: str, environment: Mapping[str, str], python: Path) -> str:
    answer = answer_of([str(python), "-I", "-c", _ASK, library], environment, seconds=60)
    lines = [line.strip() for line in answer.stdout.splitlines() if line.strip()]
    return lines[0] if lines else f"no answer: {' '.join(answer.stderr.split())[-120:]}"


def _another(program: Path, mpi: Package, got: str) -> UnavailableError:
    return UnavailableError(
        "the programs were built with another MPI than the stack's",
        source=str(program),
        expected=f"{mpi.name} {mpi.version} below {mpi.prefix}",
        got=got,
        next_step="its mpicc is not its own: give the external a prefix whose bin/mpicc is, "
        "then fabricproof stack remove and build again",
    )


#: seconds after which two ranks on one node that have not ended never will.
PATIENCE_S = 120

#: the virtual cluster and many login containers are root; two ranks may meet one core.
_SETTINGS = (
    "OMPI_ALLOW_RUN_AS_ROOT=1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "PRTE_ALLOW_RUN_AS_ROOT=1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "OMPI_MCA_rmaps_base_oversubscribe=1",
    "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
)


def mpiexec(contents: Contents) -> Path | None:
    """Return the MPI's own launcher, None where it was built without one."""
    prefix = Path(contents.mpi.prefix)
    folders = [prefix / "bin", *sorted(prefix.glob("mpi/*/bin"))]
    names = ("mpiexec.hydra", "mpiexec", "mpirun")
    candidates = (folder / name for folder in folders for name in names)
    return next((path for path in candidates if path.exists()), None)


def smoke_test(
    environment: Environment, contents: Contents, spack: Spack, programs: Mapping[str, Path]
) -> str:
    """Run OSU's and IMB's smallest programs on two ranks of this machine; return what was seen.

    A benchmark that started as two worlds of one prints no table, so a table is the proof,
    together with a good end.

    Raises:
        UnavailableError: no table came out, or the ranks ended badly; the message has the end of
            what was printed.
    """
    launcher = mpiexec(contents)
    if launcher is None:
        return "not run: this MPI has no launcher of its own; the checks will start it with srun"
    commands = {
        "osu": [str(programs["osu"]), "-m", "1:8", "-i", "10", "-x", "1"],
        "imb": [str(programs["imb"]), "PingPong", "-iter", "10", "-msglog", "0:3"],
    }
    seen = []
    for suite, command in commands.items():
        status, output = _run(environment, spack, [str(launcher), "-n", "2", *command])
        try:
            table = parse_text(output, f"{suite} smoke test")[0] if status == 0 else None
        except FabricproofError:
            table = None
        if table is None:
            raise UnavailableError(
                f"the {suite} programs were built but do not run on two ranks",
                source=str(programs[suite]),
                expected="a table of a world of two",
                got=" ".join(output.split())[-300:] or f"no word, exit status {status}",
                next_step=f"fabricproof stack doctor {environment.stack.name}",
            )
        seen.append(f"{table.program} {len(table.rows)} sizes")
    return "two ranks: " + ", ".join(seen)


def _run(environment: Environment, spack: Spack, command: list[str]) -> tuple[int, str]:
    """Run ``command`` as after ``spack load``; return its exit status and both streams."""
    where = ["-e", str(environment.folder), "load", "--sh", environment.mpi, *SUITES.values()]
    load = shell_line([str(spack.program), *where])
    settings = " ".join(_SETTINGS)
    # Alone in its assignment: a load that fails would be an empty text to eval, which is well.
    loaded = f'loaded="$({load})" && eval "$loaded"'
    script = f"{loaded} && export {settings} && exec {shell_line(command)}"
    # Asked first: a launcher that is killed at once leaves its ranks behind.
    status, output, _ = run_group(
        ["bash", "-c", script], PATIENCE_S, environment=spack.environment, first=signal.SIGTERM
    )
    return (124, f"{output}\nno end after {PATIENCE_S} s") if status is None else (status, output)
