"""Which MPI a program loads: told apart by path, by name, by family and by version."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fabricproof.core.errors import UnavailableError
from fabricproof.stacks.spack.installation.proof import prove_linkage
from fabricproof.stacks.spack.installation.record import Package
from pretended_spack import executable

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="needs gcc on PATH")

SAID = {
    "openmpi": "Open MPI v{}, package: Open MPI user@host Distribution",
    "mpich": "MPICH Version:      {}",
    "intel-oneapi-mpi": "Intel(R) MPI Library {} for Linux* OS",
    "mvapich": "MVAPICH Version       :\t{}",
}

SOURCE = """\
#include <string.h>
int MPI_Get_library_version(char *text, int *size)
{ strcpy(text, "%s"); *size = strlen(text); return 0; }
"""


def package(prefix: Path, *, name: str = "openmpi", version: str = "5.0.11") -> Package:
    return Package(
        name=name, version=version, spec=f"{name}@{version}", digest="x", prefix=str(prefix)
    )


def prove(programs: list[Path], mpi: Package, **variables: str) -> str:
    return prove_linkage(programs, mpi, {**os.environ, **variables}, Path(sys.executable))


def library(folder: Path, said: str, soname: str = "libmpi.so.40") -> Path:
    """Compile an MPI library that only says its name."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "mpi.c"
    source.write_text(SOURCE % said)
    target = folder / soname
    compile_(["-shared", "-fPIC", f"-Wl,-soname,{soname}", source, "-o", target])
    return target


def compile_(arguments: list[str | Path]) -> None:
    subprocess.run([str(GCC), *map(str, arguments)], check=True, timeout=60)


def program(path: Path, *libraries: Path, run_path: Path | None = None) -> Path:
    """Compile a program that is linked with ``libraries``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text("int main(void) { return 0; }\n")
    paths = [f"-Wl,-rpath,{run_path}"] if run_path else []
    compile_([source, "-Wl,--no-as-needed", *libraries, *paths, "-o", path])
    return path


@needs_gcc
def test_a_program_of_the_right_mpi_is_proven_with_its_library(tmp_path: Path):
    lib = library(tmp_path / "mpi" / "lib", SAID["openmpi"].format("5.0.11"))
    one = program(tmp_path / "a", lib, run_path=lib.parent)
    two = program(tmp_path / "b", lib, run_path=lib.parent)
    assert prove([one, two], package(tmp_path / "mpi")) == str(lib)


@needs_gcc
def test_two_mpis_below_one_prefix_are_told_apart_by_what_the_library_says(tmp_path: Path):
    # As below /usr: mpich was declared, mpicc is an alternatives link to Open MPI's.
    lib = library(tmp_path / "usr" / "lib", SAID["openmpi"].format("4.1.4"))
    one = program(tmp_path / "a", lib, run_path=lib.parent)
    with pytest.raises(UnavailableError, match=r"another MPI.*mpich 4\.0\.2.*Open MPI v4\.1\.4"):
        prove([one], package(tmp_path / "usr", name="mpich", version="4.0.2"))


@needs_gcc
def test_the_second_program_is_asked_too(tmp_path: Path):
    right = library(tmp_path / "usr" / "lib" / "a", SAID["openmpi"].format("5.0.11"))
    other = library(tmp_path / "usr" / "lib" / "b", SAID["mpich"].format("4.0"), "libmpich.so.12")
    one = program(tmp_path / "a", right, run_path=right.parent)
    two = program(tmp_path / "b", other, run_path=other.parent)
    with pytest.raises(UnavailableError, match=r"^\S+/b: .*MPICH Version"):
        prove([one, two], package(tmp_path / "usr"))


@needs_gcc
def test_a_program_that_loads_two_mpis_is_refused(tmp_path: Path):
    right = library(tmp_path / "usr" / "lib", SAID["openmpi"].format("5.0.11"))
    other = library(tmp_path / "usr" / "lib", SAID["mpich"].format("4.0"), "libmpich.so.12")
    one = program(tmp_path / "a", right, other, run_path=right.parent)
    with pytest.raises(UnavailableError, match=r"libmpi\.so\.40 and \S+libmpich\.so\.12"):
        prove([one], package(tmp_path / "usr"))


@needs_gcc
def test_a_library_that_is_reached_by_a_link_belongs_to_its_prefix(tmp_path: Path):
    lib = library(tmp_path / "real" / "lib", SAID["openmpi"].format("5.0.11"))
    (tmp_path / "opt").symlink_to(tmp_path / "real")
    one = program(tmp_path / "a", lib, run_path=lib.parent)
    assert prove([one], package(tmp_path / "opt")) == str(lib)


@needs_gcc
def test_a_library_elsewhere_is_another_mpi(tmp_path: Path):
    lib = library(tmp_path / "other" / "lib", SAID["openmpi"].format("5.0.11"))
    one = program(tmp_path / "a", lib, run_path=lib.parent)
    (tmp_path / "mpi").mkdir()
    with pytest.raises(UnavailableError, match=f"another MPI.*got {lib}"):
        prove([one], package(tmp_path / "mpi"))


@needs_gcc
def test_a_program_must_find_its_library_without_the_callers_search_path(tmp_path: Path):
    lib = library(tmp_path / "mpi" / "lib", SAID["openmpi"].format("5.0.11"), "libmpi.so.77")
    one = program(tmp_path / "a", lib)
    with pytest.raises(UnavailableError, match=r"does not find.*libmpi\.so\.77 => not found"):
        prove([one], package(tmp_path / "mpi"), LD_LIBRARY_PATH=str(lib.parent))


@needs_gcc
def test_a_program_without_mpi_is_refused(tmp_path: Path):
    with pytest.raises(UnavailableError, match="expected libmpi in ldd, got none"):
        prove([program(tmp_path / "a")], package(tmp_path))


@needs_gcc
def test_a_library_that_cannot_be_asked_is_not_believed(tmp_path: Path):
    folder = tmp_path / "lib"
    folder.mkdir()
    (folder / "x.c").write_text("int x;\n")
    lib = folder / "libmpi.so.40"
    compile_(["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40", folder / "x.c", "-o", lib])
    one = program(tmp_path / "a", lib, run_path=folder)
    with pytest.raises(UnavailableError, match="no answer"):
        prove([one], package(tmp_path))


def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ldd: str, said: str) -> Path:
    """Put an ``ldd`` and a Python in place that print what is recorded."""
    (tmp_path / "ldd.out").write_text(ldd.replace("PREFIX", str(tmp_path)))
    (tmp_path / "said.out").write_text(said)
    executable(tmp_path / "bin" / "ldd", f"#!/bin/sh\ncat {tmp_path}/ldd.out\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return executable(tmp_path / "python", f"#!/bin/sh\ncat {tmp_path}/said.out\n")


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize(
    ("locked", "says", "is_it"),
    [
        ("5.0.11", "5.0.11", True),
        ("5.0.11", "5.0", True),
        ("5.0", "5.0.11", True),
        ("5.0.0rc2", "5.0.0rc2", True),
        ("main", "6.1.0a1", True),
        ("5.0.11", "5.0.1", False),
        ("5.0.11", "4.1.4", False),
        ("4.1", "4.0.3", False),
    ],
)
def test_the_version_must_be_the_locks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    locked: str,
    says: str,
    *,
    is_it: bool,
):
    ldd = "\tlibmpi.so.12 => PREFIX/lib/libmpi.so.12 (0x7f)\n"
    python = pretend(tmp_path, monkeypatch, ldd, SAID[name].format(says))
    one = executable(tmp_path / "a", "")
    mpi = package(tmp_path, name=name, version=locked)
    if is_it:
        assert prove_linkage([one], mpi, os.environ, python) == f"{tmp_path}/lib/libmpi.so.12"
        return
    with pytest.raises(UnavailableError, match="another MPI"):
        prove_linkage([one], mpi, os.environ, python)


RECORDED_LDD = """\
\tlinux-vdso.so.1 (0x00007fd389fe8000)
\tlibmpi_cxx.so.40 => PREFIX/lib/libmpi_cxx.so.40 (0x00007fd389b00000)
\tlibmpi.so.40 => PREFIX/lib/libmpi.so.40 (0x00007fd389a00000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007fd389ecf000)
\tlibopen-pal.so.80 => PREFIX/lib/libopen-pal.so.80 (0x00007fd3896df000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007fd389fea000)
"""


def test_the_mpi_library_is_found_among_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    python = pretend(tmp_path, monkeypatch, RECORDED_LDD, SAID["openmpi"].format("5.0.11"))
    one = executable(tmp_path / "a", "")
    found = prove_linkage([one], package(tmp_path), os.environ, python)
    assert found == f"{tmp_path}/lib/libmpi.so.40"


def test_a_missing_program_is_named(tmp_path: Path):
    with pytest.raises(UnavailableError, match=r"is missing: expected \S+/gone"):
        prove([tmp_path / "gone"], package(tmp_path))


def test_a_program_that_may_not_be_run_is_none(tmp_path: Path):
    (tmp_path / "a").write_text("")
    with pytest.raises(UnavailableError, match="is missing"):
        prove([tmp_path / "a"], package(tmp_path))
