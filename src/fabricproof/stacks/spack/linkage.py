"""Prove that built programs load the MPI they were built for, and no other.

Two MPIs below one prefix are common (``/usr``), and then ``mpicc`` is a link that somebody else
turns: the build is clean, the name is right, and the programs are another MPI's.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from fabricproof.core.errors import UnavailableError
from fabricproof.stacks.spack.built import Package

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

    Args:
        programs: executables of the stack.
        mpi: the MPI that they must load.
        environment: variables; LD_LIBRARY_PATH is taken out, the programs must stand alone.
        python: an interpreter to ask the library its name with.

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
    asked = subprocess.run(
        ["ldd", str(program)],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    found = sorted({(match[1], match[2]) for match in _LIBRARY.finditer(asked.stdout)})
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
    asked = subprocess.run(
        [str(python), "-I", "-c", _ASK, library],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = [line.strip() for line in asked.stdout.splitlines() if line.strip()]
    return lines[0] if lines else f"no answer: {' '.join(asked.stderr.split())[-120:]}"


def _another(program: Path, mpi: Package, got: str) -> UnavailableError:
    return UnavailableError(
        "the programs were built with another MPI than the stack's",
        source=str(program),
        expected=f"{mpi.name} {mpi.version} below {mpi.prefix}",
        got=got,
        next_step="its mpicc is not its own: give the external a prefix whose bin/mpicc is, "
        "then fabricproof stack remove and build again",
    )
