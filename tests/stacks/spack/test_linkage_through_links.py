"""A library below its prefix, whatever links lead there."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.stacks.spack.installation import proof
from fabricproof.stacks.spack.installation.record import Package


def _prove(prefix: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    program = prefix.parent / "osu_bw"
    program.touch()
    program.chmod(0o755)
    monkeypatch.setattr(proof, "_library", lambda *_: str(library))
    monkeypatch.setattr(proof, "_version", lambda *_: "Open MPI v5.0.11")
    mpi = Package(
        name="openmpi", version="5.0.11", spec="openmpi@5.0.11", digest="d", prefix=str(prefix)
    )
    return proof.prove_linkage([program], mpi, {}, Path("python"))


def test_a_linked_prefix_with_a_library_that_is_a_link_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # oneAPI's lib/release/libmpi.so.12 is a link; a root of stacks may be one too.
    real = tmp_path / "lib" / "libmpi.so.12.0"
    library = tmp_path / "oneapi" / "release" / "libmpi.so.12"
    for folder in (real.parent, library.parent):
        folder.mkdir(parents=True)
    real.touch()
    library.symlink_to(real)
    prefix = tmp_path / "linked"
    prefix.symlink_to(tmp_path / "oneapi")
    assert _prove(prefix, library, monkeypatch) == str(library)


def test_a_library_beside_a_linked_prefix_is_another_mpi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "elsewhere" / "libmpi.so.40"
    for folder in (library.parent, tmp_path / "mpi"):
        folder.mkdir()
    library.touch()
    prefix = tmp_path / "linked"
    prefix.symlink_to(tmp_path / "mpi")
    with pytest.raises(proof.UnavailableError, match="another MPI"):
        _prove(prefix, library, monkeypatch)
