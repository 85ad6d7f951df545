"""Pretends to be ``fabricproof stack build``: writes the record of a build, or fails.

pretended_build.py STACK [again]
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from fabricproof.stacks.environment import StackEnvironment, stacks_root
from fabricproof.stacks.spack.environment import layout_for
from fabricproof.stacks.spack.proof import Built, Package, write_built

HERE = Path(__file__).parent


def make_built(stack: str, root: Path, *, digest: str = "a" * 64, version: str = "5.0") -> Built:
    """Return the record of a build below ``root``, and put its pretended programs there."""
    programs = root / "osu" / "libexec" / "osu-micro-benchmarks" / "mpi" / "pt2pt"
    for source, target in (
        (HERE / "bin" / "osu_bw", programs / "osu_bw"),
        (HERE / "bin" / "mpirun", root / "mpi" / "bin" / "mpirun"),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():  # a job may start it now: "Text file busy" for who writes there
            shutil.copy(source, target)
    return Built(
        stack=stack,
        inputs="",
        mpi=_package("openmpi", version, root / "mpi"),
        programs={"osu": _package("osu-micro-benchmarks", "7.2", root / "osu")},
        module=f"openmpi/{version}",
        module_path=str(root / "modules"),
        lock_digest=digest,
        compiler="gcc@12.2.0",
        target="x86_64_v3",
        spack="1.1.1",
        library=str(root / "mpi" / "lib" / "libmpi.so.40"),
        library_digest="",
        environment=StackEnvironment(prepend={"PATH": str(root / "mpi" / "bin")}),
    )


def _package(name: str, version: str, prefix: Path) -> Package:
    return Package(
        name=name, version=version, spec=f"{name}@{version}", digest="d" * 32, prefix=str(prefix)
    )


def _main(stack: str, *again: str) -> None:
    with (stacks_root() / "builds.txt").open("a") as file:
        file.write(f"{stack}\n")
    if stack == "bad":
        sys.stderr.write(
            "==> Installing osu-micro-benchmarks\n==> Error: make: *** [all] Error 2\n"
        )
        sys.exit(
            "fabricproof: osu-micro-benchmarks was not built: expected mpicc; next: read the log"
        )
    digest = "b" * 64 if again else "a" * 64
    layout = layout_for("builds", Path("site"))
    write_built(layout.built(stack), make_built(stack, stacks_root() / stack, digest=digest))


if __name__ == "__main__":
    _main(*sys.argv[1:])
