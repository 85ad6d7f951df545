"""The wheels of Intel MPI laid out as oneAPI: links that resolve, placeholders filled in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fabricproof.stacks.install import lay_out

SCRIPT = """\
#!/bin/sh
prefix="I_MPI_SUBSTITUTE_INSTALLDIR"
exec_prefix=__EXEC_PREFIX_TO_BE_FILLED_AT_INSTALL_TIME__
echo "$prefix"
"""


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    prefix = tmp_path / ".partial-intelmpi"
    for folder in ("bin", "lib/mpi", "include", "etc"):
        (prefix / folder).mkdir(parents=True)
    (prefix / "bin" / "mpicc").write_text(SCRIPT)
    (prefix / "bin" / "mpicc").chmod(0o755)
    (prefix / "bin" / "mpigcc").symlink_to("mpicc")
    (prefix / "bin" / "hydra").write_bytes(b"\x7fELF I_MPI_SUBSTITUTE_INSTALLDIR")
    (prefix / "lib" / "libmpi.so.12").write_text("library")
    (prefix / "include" / "mpi.h").write_text("header")
    return prefix


def test_everything_resolves_after_the_folder_has_its_final_name(wheels: Path, tmp_path: Path):
    final = tmp_path / "intelmpi"
    lay_out(wheels, "2021.18", final)
    wheels.rename(final)
    tree = final / "oneapi" / "mpi" / "2021.18"
    assert (tree / "lib" / "libmpi.so.12").read_text() == "library"
    assert (tree / "lib" / "release" / "libmpi.so.12").read_text() == "library"
    assert (tree / "lib" / "mpi").is_dir()
    assert (tree / "include" / "mpi.h").read_text() == "header"
    assert [path for path in tree.rglob("*") if not path.exists()] == []
    assert not (tree / "opt").exists()


def test_scripts_name_the_final_prefix_and_still_run(wheels: Path, tmp_path: Path):
    final = tmp_path / "intelmpi"
    tree = lay_out(wheels, "2021.18", final)
    named = final / "oneapi" / "mpi" / "2021.18"
    asked = subprocess.run([tree / "bin" / "mpicc"], capture_output=True, text=True, check=True)
    assert asked.stdout == f"{named}\n"
    assert "__EXEC_PREFIX" not in (tree / "bin" / "mpicc").read_text()
    assert (tree / "bin" / "mpigcc").readlink() == Path("mpicc")


def test_programs_and_the_wheels_own_files_stay_as_they_are(wheels: Path, tmp_path: Path):
    before = (wheels / "bin" / "hydra").read_bytes()
    tree = lay_out(wheels, "2021.18", tmp_path / "intelmpi")
    assert (tree / "bin" / "hydra").read_bytes() == before
    assert (wheels / "bin" / "mpicc").read_text() == SCRIPT


@pytest.mark.parametrize("folder", ["intelmpi", "intel mpi; $(exit) `exit` \" '"])
def test_the_variables_lead_to_the_tree_and_keep_what_was_there(
    folder: str, wheels: Path, tmp_path: Path
):
    final = tmp_path / folder
    tree = lay_out(wheels, "2021.18", final)
    named = final / "oneapi" / "mpi" / "2021.18"
    script = (
        '. "$1"/env/vars.sh; for each in I_MPI_ROOT LD_LIBRARY_PATH PATH; do echo "${!each}"; done'
    )
    asked = subprocess.run(
        ["bash", "-c", script, "bash", tree],
        env={"LD_LIBRARY_PATH": "/mine", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.splitlines() == [
        str(named),
        f"{named}/lib:/mine",
        f"{named}/bin:/usr/bin:/bin",
    ]


def test_laying_out_again_gives_the_same(wheels: Path, tmp_path: Path):
    final = tmp_path / "intelmpi"

    def listing() -> list[str]:
        tree = lay_out(wheels, "2021.18", final)
        return sorted(str(path.relative_to(tree)) for path in tree.rglob("*"))

    assert listing() == listing()
