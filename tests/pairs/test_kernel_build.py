"""The kernel is one binary for all stacks that have the standard MPI ABI, else the stack's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabricproof.pairs.campaign.kernel import BUILD, BUILD_SCRIPT, KERNEL

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")

_HEADER = """
#ifdef MPI_ABI
#define MPI_ABI_VERSION {version}
#endif
int MPI_Init(int *, char ***);
"""

#: as MPICH's and Intel's: they write their own folder into what they link, and flags of their own
_WRAPPER = """#!/bin/bash
{first}
exec cc {flags} "$@" -I{prefix} -L{prefix} -Wl,-rpath,{prefix} -l{name} {more}
"""


@dataclass(frozen=True)
class Mpi:
    """An MPI that does nothing, below ``prefix``."""

    prefix: Path

    @classmethod
    def make(cls, prefix: Path, *, abi: bool = True, version: int = 1, more: str = "") -> Mpi:
        """Return one; ``version`` is what its header says of the ABI, ``more`` flags of a link."""
        prefix.mkdir()
        mpi = cls(prefix)
        (prefix / "mpi.h").write_text(_HEADER.format(version=version))
        mpi.library("libmpi.so.12")
        mpi.wrapper("mpicc", "mpi", more=more)
        if abi:
            mpi.library("libmpi_abi.so.1")
            mpi.wrapper("mpicc_abi", "mpi_abi", flags="-DMPI_ABI", more=more)
        return mpi

    def library(self, name: str) -> None:
        """Add a library; each says where it is, so that no two are alike."""
        source = f'const char *here = "{self.prefix}";int MPI_Init(int *a, char ***b) {{return 0;}}'
        made = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", name, "-x", "c", "-"]
        subprocess.run(made, input=source, text=True, cwd=self.prefix, check=True)
        (self.prefix / f"{name.partition('.')[0]}.so").symlink_to(name)

    def wrapper(
        self, command: str, name: str, *, flags: str = "", more: str = "", first: str = ""
    ) -> None:
        """Add a compiler wrapper; ``first`` is a line before all others."""
        path = self.prefix / command
        told = {"prefix": self.prefix, "name": name, "flags": flags, "more": more, "first": first}
        path.write_text(_WRAPPER.format(**told))
        path.chmod(0o755)


@dataclass(frozen=True)
class Built:
    """What a build left."""

    kind: str
    sha256: str
    log: str
    binary: bytes


def build(folder: Path, *found: Mpi, libraries: tuple[Mpi, ...] = ()) -> Built:
    """Build with what ``found`` brings first in PATH, and run what came of it."""
    folder.mkdir()
    shutil.copy(BUILD_SCRIPT, folder)
    guard = KERNEL.read_text().partition("#if defined STANDARD_ABI")[2].partition("#endif")[0]
    (folder / "kernel.c").write_text(
        f"#include <mpi.h>\n#if defined STANDARD_ABI{guard}#endif\n"
        "int main(int a, char **b) { return MPI_Init(&a, &b); }\n"
    )
    environment = {
        "PATH": ":".join([*(str(each.prefix) for each in found), os.environ["PATH"]]),
        "LD_LIBRARY_PATH": ":".join(str(each.prefix) for each in libraries or found),
    }
    subprocess.run(["bash", "-c", BUILD], cwd=folder, env=environment, check=False)
    subprocess.run(["./kernel"], cwd=folder, env=environment, check=True)
    kind, sha256 = (folder / "kernel.built").read_text().split()
    log = (folder / "build.log").read_text()
    return Built(kind, sha256, log, (folder / "kernel").read_bytes())


def test_two_stacks_with_the_abi_have_one_binary_without_their_folders(tmp_path: Path) -> None:
    one = build(tmp_path / "a", Mpi.make(tmp_path / "mpich"))
    other = build(tmp_path / "b", Mpi.make(tmp_path / "intel", more="-Wl,-z,now -ldl"))
    assert (one.kind, other.kind) == ("abi", "abi")
    assert one.sha256 == other.sha256
    assert str(tmp_path).encode() not in one.binary
    assert len(one.sha256) == 64


def test_a_wrapper_with_an_option_for_the_abi(tmp_path: Path) -> None:
    mpi = Mpi.make(tmp_path / "intel")
    (mpi.prefix / "mpicc_abi").rename(mpi.prefix / "its_own")
    asked = f"""case " $* " in *" -show "*) echo "cc -lmpi_abi"; exit ;; esac
[ "$1" != -mpi-abi ] || {{ shift; exec {mpi.prefix}/its_own "$@"; }}"""
    mpi.wrapper("mpicc", "mpi", first=asked)
    built = build(tmp_path / "a", mpi)
    assert built.kind == "abi"
    assert built.sha256 == build(tmp_path / "b", Mpi.make(tmp_path / "mpich")).sha256


def test_a_stack_without_the_abi_has_its_own(tmp_path: Path) -> None:
    built = build(tmp_path / "a", Mpi.make(tmp_path / "openmpi", abi=False))
    assert built.kind == "own"
    assert str(tmp_path / "openmpi").encode() in built.binary


def test_a_compiler_of_the_abi_that_does_not_work_leaves_the_own_and_says_so(
    tmp_path: Path,
) -> None:
    mpi = Mpi.make(tmp_path / "mpich")
    mpi.wrapper("mpicc_abi", "mpi_abi", first="echo no licence; exit 1")
    built = build(tmp_path / "a", mpi)
    assert built.kind == "broken"
    assert "no licence" in built.log
    assert str(mpi.prefix).encode() in built.binary


def test_a_header_that_is_none_of_the_abi_is_refused(tmp_path: Path) -> None:
    built = build(tmp_path / "a", Mpi.make(tmp_path / "mpich", version=-1))
    assert built.kind == "broken"
    assert "none of the standard MPI ABI" in built.log


def test_the_abi_of_another_mpi_is_not_this_stacks(tmp_path: Path) -> None:
    """A distribution's mpicc_abi behind the module of an MPI that has none."""
    other = Mpi.make(tmp_path / "mpich")
    built = build(tmp_path / "a", Mpi.make(tmp_path / "openmpi", abi=False), other)
    assert built.kind == "broken"
    assert f"{other.prefix}/libmpi_abi.so.1 would be loaded" in built.log


def test_a_library_that_no_environment_leads_to_is_found_by_the_wrappers_path_alone(
    tmp_path: Path,
) -> None:
    mpi = Mpi.make(tmp_path / "mpich")
    built = build(tmp_path / "a", mpi, libraries=(Mpi(tmp_path / "nowhere"),))
    assert built.kind == "broken"
    assert "no libmpi_abi.so.1 would be loaded" in built.log


def test_without_a_compiler_nothing_is_left(tmp_path: Path) -> None:
    mpi = Mpi.make(tmp_path / "mpich")
    mpi.wrapper("mpicc", "mpi", first="exit 1")
    for name in ("kernel", "kernel.built"):
        (tmp_path / name).touch()
    shutil.copy(BUILD_SCRIPT, tmp_path)
    search = {"PATH": f"{mpi.prefix}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", BUILD], cwd=tmp_path, env=search, check=False)
    assert not [name for name in ("kernel", "kernel.built") if (tmp_path / name).exists()]
