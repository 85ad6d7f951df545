"""What Spack installed, which MPI its programs load, and the record of a build.

Two MPIs below one prefix are common (``/usr``), and then ``mpicc`` is a link that somebody else
turns: the build is clean, the name is right, and the programs are another MPI's.  So what programs
load is proven before anybody relies on it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.core.plain import typed
from fabricproof.core.records import read_json
from fabricproof.core.whole_file import write_whole
from fabricproof.stacks.environment import StackEnvironment, answer_of
from fabricproof.stacks.spack.environment import Environment, Lock
from fabricproof.stacks.spack.tool import Spack

#: of the record; another number makes the stack count as not built
FORMAT = 2

#: the program of each suite that stands for all of it
_PROGRAMS = {
    "osu": "libexec/osu-micro-benchmarks/mpi/pt2pt/osu_latency",
    "imb": "bin/IMB-MPI1",
}

#: what has Spack install again what somebody removed by hand: its database still has it
_ANEW = "fabricproof stack remove {0} && fabricproof stack build {0}"


@dataclass(frozen=True, kw_only=True)
class Package:
    """One concrete package: ``digest`` is Spack's hash, ``spec`` one line with its variants.

    ``external``: it is the site's own, Spack only uses it.
    """

    name: str
    version: str
    spec: str
    digest: str
    prefix: str
    external: bool = False

    def folder_of(self, suite: str) -> Path:
        """Return the folder that has the programs of ``suite``."""
        inside = "libexec/osu-micro-benchmarks" if suite == "osu" else "bin"
        return Path(self.prefix) / inside


@dataclass(frozen=True, kw_only=True)
class Built:
    """One stack as it stands on disk: a small file, written last, so that half a build is none.

    Attributes:
        inputs: the digest of all that decided its lock.
        lock_digest: the identity of the lock.
        programs: suite (``osu``, ``imb``) and tool (``iperf3``) -> the package that has it.
        library: the MPI library that the programs really load, absolute.
        library_digest: SHA-256 of that library's content: the site may replace it in place.
        environment: what Spack sets and puts in front to use the stack.
        module: what ``module load`` takes, after ``module use`` of ``module_path``.
    """

    stack: str
    inputs: str
    lock_digest: str
    mpi: Package
    programs: Mapping[str, Package]
    compiler: str
    target: str
    spack: str
    library: str
    library_digest: str
    environment: StackEnvironment
    module: str
    module_path: str


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_built(path: Path, built: Built) -> None:
    """Keep ``built``, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps({"format": FORMAT, **asdict(built)}, indent=1) + "\n")


def read_built(path: Path) -> Built | None:
    """Return what was built, None if nothing was or another version of us wrote it.

    Raises:
        ConfigError: the file is damaged.
    """
    try:
        data = read_json(path)
        return typed(Built, data) if data.pop("format") == FORMAT else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            "damaged record of a build",
            source=str(path),
            got=str(error) or type(error).__name__,
            next_step=f"fabricproof stack build {path.stem}   # writes it again",
        ) from None


def programs_of(packages: Mapping[str, Package]) -> list[Path]:
    """Return one program of each suite that stands for all of it."""
    return [Path(packages[suite].prefix) / inside for suite, inside in _PROGRAMS.items()]


def installed_packages(environment: Environment, lock: Lock, spack: Spack) -> dict[str, Package]:
    """Return what was asked for and is installed: ``mpi``, suites and tools -> package.

    Raises:
        UnavailableError: one of them is not, or its folder or program is gone.
    """
    words = ("find", "--format", "{name}\x1f{version}\x1f{hash}\x1f{prefix}\x1f{variants}")
    found = {}
    for line in spack.do(environment.folder, *words).splitlines():
        name, version, digest, prefix, variants = [*line.strip().split("\x1f"), *[""] * 4][:5]
        if digest in lock.specs and Path(prefix).is_dir():
            found[name] = Package(
                name=name,
                version=version,
                spec=" ".join(f"{name}@{version}{variants}".split()),
                digest=digest,
                prefix=prefix,
                external=bool(lock.specs[digest].get("external")),
            )
    packages = {key: found[name] for key, name in environment.packages.items() if name in found}
    missing = [name for name in environment.packages.values() if name not in found]
    if not missing:
        missing = [str(path) for path in programs_of(packages) if not path.is_file()]
    if missing:
        raise UnavailableError(
            "Spack takes for installed what is not there",
            expected=", ".join(missing),
            next_step=_ANEW.format(environment.stack.name),
        )
    return packages


#: the MPI library as the loader knows it: libmpi.so.40 (Open MPI 3 to 5), libmpi.so.12 (the MPICH
#: ABI), libmpich.so.12 (Debian's MPICH)
_LIBRARY = re.compile(r"^\s*libmpi(?:ch)?\.so\.\d+ => (not found|\S+)", re.MULTILINE)

#: words in MPI_Get_library_version of each package
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


def prove_linkage(stack: str, packages: Mapping[str, Package], spack: Spack) -> str:
    """Return the one MPI library that the programs of a stack load, without LD_LIBRARY_PATH.

    It must lie below the MPI's prefix, and say itself that it is this MPI in this version.

    Raises:
        UnavailableError: a program loads no MPI or another one.
    """
    mpi, loaded = packages["mpi"], {}
    for program in programs_of(packages):
        answer = answer_of(["ldd", str(program)], spack.environment, seconds=60)
        loaded[program] = " and ".join(sorted({*_LIBRARY.findall(answer.stdout)})) or "none"
    for program, library in loaded.items():
        said = ""
        if library.startswith("/") and " " not in library:
            command = [spack.environment["SPACK_PYTHON"], "-I", "-c", _ASK, library]
            answer = answer_of(command, spack.environment, seconds=60)
            said = " ".join((answer.stdout or f"no answer: {answer.stderr[-120:]}").split())
        if not is_below(Path(library), Path(mpi.prefix)) or not _is_of(mpi, said):
            raise UnavailableError(
                "the programs were built with another MPI than the stack's, or do not find it",
                source=str(program),
                expected=f"{mpi.name} {mpi.version} below {mpi.prefix}",
                got=f"{library} {said[:120]}".strip(),
                next_step="its mpicc (see mpicc -show) is not its own, or sets no run path: give "
                f"the external another prefix, then {_ANEW.format(stack)}",
            )
    return next(iter(loaded.values()))


def _is_of(mpi: Package, said: str) -> bool:
    """Tell whether a library that says ``said`` is the MPI and version that the lock has.

    One may say less than the other (2021.18 of 2021.18.1), none may say something else.  One that
    says no number at all cannot be held against it.
    """
    _, word, rest = said.partition(_WORDS[mpi.name])
    found = (re.search(r"\d+(?:\.\d+)+", rest), re.match(r"\d+(?:\.\d+)+", mpi.version))
    says, locked = (match[0].split(".") if match else [] for match in found)
    return bool(word) and all(one == other for one, other in zip(says, locked, strict=False))


def is_below(library: Path, prefix: Path) -> bool:
    """Tell whether ``library`` is the prefix's, by the loader's path or by where links lead.

    The prefix may be reached by a link, and the library in it may be a link out of it.
    """
    real = prefix.resolve()
    found = (library.parent.resolve(), library.resolve())
    return library.is_relative_to(prefix) or any(place.is_relative_to(real) for place in found)
