"""Lay the Intel MPI wheels out as oneAPI does, so that Spack can take them for a vendor's MPI.

Spack's ``intel-oneapi-mpi`` expects ``PREFIX/mpi/<major.minor>/{bin,lib,include,env/vars.sh}``,
with ``lib/release`` from before 2021.11 still looked into for the libraries; the wheels put all
into one prefix and leave a placeholder where their wrappers' prefix belongs.
"""

from __future__ import annotations

import shutil
from pathlib import Path

#: what Intel's installer replaces in the compiler wrappers.
_PLACEHOLDERS = ("I_MPI_SUBSTITUTE_INSTALLDIR", "__EXEC_PREFIX_TO_BE_FILLED_AT_INSTALL_TIME__")


def lay_out(prefix: Path, release: str, final: Path) -> Path:
    """Write ``prefix/oneapi/mpi/RELEASE`` beside the wheels' own files; return that folder.

    Args:
        prefix: where the wheels were unpacked.
        release: major and minor version, ``2021.18``.
        final: the prefix that ``prefix`` is renamed to afterwards; the texts name that one.
    """
    tree = prefix / "oneapi" / "mpi" / release
    named = final / "oneapi" / "mpi" / release
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "env").mkdir(parents=True)
    (tree / "lib").mkdir()
    for folder in ("include", "etc", "opt"):
        if (prefix / folder).is_dir():
            (tree / folder).symlink_to(Path("../../..") / folder)
    for path in sorted((prefix / "lib").iterdir()):
        (tree / "lib" / path.name).symlink_to(Path("../../../../lib") / path.name)
    (tree / "lib" / "release").symlink_to(".")
    shutil.copytree(prefix / "bin", tree / "bin", symlinks=True)
    for path in (tree / "bin").iterdir():
        _fill_in(path, str(named))
    (tree / "env" / "vars.sh").write_text(_vars(named), encoding="utf-8")
    return tree


def _fill_in(path: Path, prefix: str) -> None:
    """Replace the placeholders in a script; programs have none and stay as they are."""
    if path.is_symlink() or not path.is_file() or path.read_bytes()[:2] != b"#!":
        return
    text = path.read_text(encoding="utf-8")
    for placeholder in _PLACEHOLDERS:
        text = text.replace(placeholder, prefix)
    path.write_text(text, encoding="utf-8")


def _vars(prefix: Path) -> str:
    return f"""\
# Sourced by Spack, as Intel's own env/vars.sh is.
export I_MPI_ROOT="{prefix}"
export PATH="{prefix}/bin:$PATH"
export LD_LIBRARY_PATH="{prefix}/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export FI_PROVIDER_PATH="{prefix}/lib"
"""
