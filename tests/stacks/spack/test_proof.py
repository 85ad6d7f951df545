"""Which MPI a program loads: told apart by path, by name, by family and by version."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fabricproof.core.errors import UnavailableError
from fabricproof.stacks.spack.proof import Package, is_below, programs_of, prove_linkage
from fabricproof.stacks.spack.tool import Spack
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


def package(name: str, version: str, prefix: Path) -> Package:
    return Package(
        name=name, version=version, spec=f"{name}@{version}", digest="x", prefix=str(prefix)
    )


def prove(
    tmp_path: Path, prefix: Path, name: str = "openmpi", version: str = "5.0.11", python: str = ""
) -> str:
    """Prove the programs ``osu`` and ``imb`` below ``tmp_path``."""
    environment = {**os.environ, "SPACK_PYTHON": python or sys.executable}
    environment.pop("LD_LIBRARY_PATH", None)
    spack = Spack(program=Path("spack"), label="1.1", environment=environment)
    return prove_linkage("mine", packages(tmp_path, name, version, prefix), spack)


def packages(tmp_path: Path, name: str, version: str, prefix: Path) -> dict[str, Package]:
    suites = {suite: package(suite, "1", tmp_path / suite) for suite in ("osu", "imb")}
    return {"mpi": package(name, version, prefix), **suites}


def compile_(*arguments: str | Path) -> None:
    subprocess.run([str(GCC), *map(str, arguments)], check=True, timeout=60)


def library(folder: Path, said: str, soname: str = "libmpi.so.40") -> Path:
    """Compile an MPI library that only says its name, or is mute."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "mpi.c"
    source.write_text(SOURCE % said if said else "int x;\n")
    compile_("-shared", "-fPIC", f"-Wl,-soname,{soname}", source, "-o", folder / soname)
    return folder / soname


def programs(tmp_path: Path, osu: list[Path], imb: list[Path], *, run_path: bool = True) -> None:
    """Compile the two programs, linked with these libraries."""
    places = programs_of(packages(tmp_path, "openmpi", "1", tmp_path))
    source = tmp_path / "main.c"
    source.write_text("int main(void) { return 0; }\n")
    for path, libraries in zip(places, (osu, imb), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        paths = [f"-Wl,-rpath,{each.parent}" for each in libraries if run_path]
        compile_(source, "-Wl,--no-as-needed", *libraries, *paths, "-o", path)


@needs_gcc
def test_programs_of_the_right_mpi_are_proven_with_its_library(tmp_path: Path):
    lib = library(tmp_path / "real" / "lib", SAID["openmpi"].format("5.0.11"))
    (tmp_path / "opt").symlink_to(tmp_path / "real")
    programs(tmp_path, [lib], [lib])
    assert prove(tmp_path, tmp_path / "real") == str(lib)
    assert prove(tmp_path, tmp_path / "opt") == str(lib), "its prefix is reached by a link"
    with pytest.raises(UnavailableError, match=f"another MPI.*got {lib}"):
        prove(tmp_path, tmp_path / "elsewhere")


@needs_gcc
def test_two_mpis_below_one_prefix_are_told_apart_by_what_the_library_says(tmp_path: Path):
    # As below /usr: mpich was declared, mpicc is an alternatives link to Open MPI's.
    lib = library(tmp_path / "usr" / "lib", SAID["openmpi"].format("4.1.4"))
    programs(tmp_path, [lib], [lib])
    with pytest.raises(UnavailableError, match=r"another MPI.*mpich 4\.0\.2.*Open MPI v4\.1\.4"):
        prove(tmp_path, tmp_path / "usr", "mpich", "4.0.2")


@needs_gcc
def test_each_program_is_asked_and_one_that_loads_two_is_refused(tmp_path: Path):
    right = library(tmp_path / "usr" / "lib", SAID["openmpi"].format("5.0.11"))
    other = library(tmp_path / "usr" / "b", SAID["mpich"].format("4.0"), "libmpich.so.12")
    programs(tmp_path, [right], [other])
    with pytest.raises(UnavailableError, match=r"^\S+IMB-MPI1: .*MPICH Version"):
        prove(tmp_path, tmp_path / "usr")
    programs(tmp_path, [right, other], [right])
    with pytest.raises(UnavailableError, match=r"libmpich\.so\.12 and \S+libmpi\.so\.40"):
        prove(tmp_path, tmp_path / "usr")


@needs_gcc
def test_a_program_must_find_its_library_by_itself_and_must_have_one(tmp_path: Path):
    lib = library(tmp_path / "mpi", SAID["openmpi"].format("5.0.11"), "libmpi.so.77")
    programs(tmp_path, [lib], [lib], run_path=False)
    with pytest.raises(UnavailableError, match=r"do not find it.*got not found"):
        prove(tmp_path, tmp_path / "mpi")
    programs(tmp_path, [], [])
    with pytest.raises(UnavailableError, match=r"got none"):
        prove(tmp_path, tmp_path / "mpi")


@needs_gcc
def test_a_library_that_cannot_be_asked_is_not_believed(tmp_path: Path):
    lib = library(tmp_path / "mpi", "")
    programs(tmp_path, [lib], [lib])
    with pytest.raises(UnavailableError, match="no answer"):
        prove(tmp_path, tmp_path / "mpi")


RECORDED_LDD = """\
\tlinux-vdso.so.1 (0x00007fd389fe8000)
\tlibmpi_cxx.so.40 => PREFIX/lib/libmpi_cxx.so.40 (0x00007fd389b00000)
\tlibmpi.so.40 => PREFIX/lib/libmpi.so.40 (0x00007fd389a00000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007fd389ecf000)
\tlibopen-pal.so.80 => PREFIX/lib/libopen-pal.so.80 (0x00007fd3896df000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007fd389fea000)
"""


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
    (tmp_path / "ldd.out").write_text(RECORDED_LDD.replace("PREFIX", str(tmp_path)))
    (tmp_path / "said.out").write_text(SAID[name].format(says))
    executable(tmp_path / "bin" / "ldd", f"#!/bin/sh\ncat {tmp_path}/ldd.out\n")
    python = executable(tmp_path / "python", f"#!/bin/sh\ncat {tmp_path}/said.out\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    if is_it:
        found = prove(tmp_path, tmp_path, name, locked, str(python))
        assert found == f"{tmp_path}/lib/libmpi.so.40"
        return
    with pytest.raises(UnavailableError, match="another MPI"):
        prove(tmp_path, tmp_path, name, locked, str(python))


def test_a_library_is_its_prefixs_whatever_links_lead_there(tmp_path: Path) -> None:
    # oneAPI's lib/release/libmpi.so.12 is a link; a root of stacks may be one too.
    real = tmp_path / "lib" / "libmpi.so.12.0"
    lib = tmp_path / "oneapi" / "release" / "libmpi.so.12"
    for folder in (real.parent, lib.parent, tmp_path / "other"):
        folder.mkdir(parents=True)
    real.touch()
    lib.symlink_to(real)
    (tmp_path / "linked").symlink_to(tmp_path / "oneapi")
    assert is_below(lib, tmp_path / "linked")
    assert not is_below(lib, tmp_path / "other")
