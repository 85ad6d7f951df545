"""What of a machine Spack need not build: ``spack/packages.yaml``.  Pure: facts in, text out.

An external without its headers cannot be built against, and an MPI in /usr is the distribution's
choice among several (the link mpicc may point to another): both are said and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from fabricproof.nodes.discover.draft import GUESS, printable
from fabricproof.nodes.discover.facts import HostSeen
from fabricproof.nodes.discover.stacks import version_of


@dataclass(frozen=True, kw_only=True)
class _Library:
    """A library that a stack may stand on."""

    package: str
    program: str
    header: str
    variants: str = ""
    check: str
    install: str


_LIBRARIES = (
    _Library(
        package="slurm",
        program="sinfo",
        header="slurm/slurm.h",
        check="sinfo --version",
        install="libslurm-dev, slurm-devel",
    ),
    _Library(
        package="pmix",
        program="pmix_info",
        header="pmix.h",
        check="pmix_info --version; srun --mpi=list",
        install="libpmix-dev, pmix-devel",
    ),
    _Library(
        package="ucx",
        program="ucx_info",
        header="ucp/api/ucp.h",
        variants=" +thread_multiple",
        check="ucx_info -v",
        install="libucx-dev, ucx-devel",
    ),
    _Library(
        package="libfabric",
        program="fi_info",
        header="rdma/fabric.h",
        check="fi_info --version; fi_info -l",
        install="libfabric-dev, libfabric-devel",
    ),
    _Library(
        package="rdma-core",
        program="rdma-core",
        header="infiniband/verbs.h",
        check="dpkg -l rdma-core, or rpm -q rdma-core",
        install="libibverbs-dev, rdma-core-devel",
    ),
)


def packages_yaml(host: HostSeen) -> str:
    """Return the text of ``packages.yaml`` for what ``host`` has.

    Args:
        host: the machine that Spack will build on, which must have what the nodes have.
    """
    body = [
        *_compiler(host),
        *_make(host),
        *(line for library in _LIBRARIES for line in _library(host, library)),
    ]
    has_any = any(not line.lstrip().startswith("#") for line in body)
    lines = [*_opening(host), "packages:" if has_any else "packages: {}", *body]
    return "".join(f"{printable(line)}\n" for line in lines)


def _opening(host: HostSeen) -> Iterator[str]:
    yield f"# What Spack need not build, as seen on {host.name}.  What stands here must be on the"
    yield "# nodes as well.  `spack external find --not-buildable` may know more."
    mpi = host.programs.get("mpicc")
    if mpi is not None:
        yield f"# No external: the MPI of {mpi.path}.  Declare it by its own prefix, and look after"
        yield "# a build whether `ldd osu_bw` names its library: /usr may hold several."


def _prefix(path: str) -> str:
    return str(PurePosixPath(path).parent.parent)


def _compiler(host: HostSeen) -> Iterator[str]:
    gcc = host.programs.get("gcc")
    if gcc is None or not gcc.said:
        yield f"  # no gcc on {host.name}: Spack needs a compiler"
        return
    paths = {
        "c": gcc.path,
        "cxx": getattr(host.programs.get("g++"), "path", None),
        "fortran": getattr(host.programs.get("gfortran"), "path", None),
    }
    languages = ",".join(
        word for word, key in (("c", "c"), ("c++", "cxx"), ("fortran", "fortran")) if paths[key]
    )
    yield "  gcc:"
    yield "    externals:"
    yield f"    - spec: gcc@{gcc.said} languages='{languages}'  # seen on {host.name}"
    yield f"      prefix: {_prefix(gcc.path)}"
    yield "      extra_attributes:"
    yield "        compilers:"
    for key, path in paths.items():
        if path:
            yield f"          {key}: {path}"


def _make(host: HostSeen) -> Iterator[str]:
    program = host.programs.get("make")
    if program is not None and "GNU Make" in program.said:
        yield "  gmake:"
        yield "    buildable: false"
        yield "    externals:"
        yield f"    - spec: gmake@{version_of(program.said)}  # seen on {host.name}"
        yield f"      prefix: {_prefix(program.path)}"


def _library(host: HostSeen, library: _Library) -> Iterator[str]:
    program = host.programs.get(library.program)
    prefix = host.headers.get(library.header)
    version = version_of(program.said) if program else "unknown"
    # A package's own release number is no part of the version that Spack compares.
    version = re.sub(r"[-~+].*", "", version)
    if prefix is not None and version != "unknown":
        yield f"  {library.package}:"
        yield "    buildable: false"
        yield "    externals:"
        note = f"{GUESS}variants not asked for; check with: {library.check}"
        yield f"    - spec: {library.package}@{version}{library.variants}  # {note}"
        yield f"      prefix: {prefix}"
    elif program is not None:
        yield f"  # {library.package} {version} ({program.path}): {library.header} is not"
        yield f"  # there ({library.install}), so that nothing can be built against it"
    elif prefix is not None:
        yield f"  # {library.package}: {library.header} is below {prefix}, its version is unknown;"
        yield f"  # check with: {library.check}"
