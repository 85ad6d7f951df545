"""Which program of a stack measures: the C program before its port, and where it lies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fabricproof.core.errors import UnavailableError
from fabricproof.job.collective_commands import HPCC_BINARY
from fabricproof.job.commands import PEER_SUITES, find_tool
from fabricproof.site import PartitionSpec, StackSpec
from fabricproof.stacks.catalog import load_catalog, stacks_root
from fabricproof.stacks.programs import Located, locate
from fabricproof.stacks.spack import Built
from fabricproof.stacks.workload import imb_binary

#: the suites that every environment of ``spack-envs`` builds
SPACK_SUITES = ("osu", "imb")


def launcher_of(stack: StackSpec, partition: PartitionSpec) -> str:
    """Return the launcher of ``stack`` on ``partition``: its own, else the partition's."""
    return stack.launcher or partition.launcher


def choose_suite(
    stack: StackSpec, suite: str, program: str, built: Built | None = None, *, assumed: bool = False
) -> tuple[str | None, str]:
    """Return the suite of ``stack`` that has ``program``, the C programs before the ports.

    ``assumed``: take a stack of Spack that is not built as if it had everything (a dry run).

    Returns:
        The suite and an empty reason, or None and why there is none.

    Raises:
        UnavailableError: the stack should have the program and is not installed: that is a check
            that was due and is MISSING, none to skip.
    """
    name = printed_name(program)
    if name in stack.left_out:
        return None, f"left out by the site: {stack.left_out[name]}"
    reasons = []
    for candidate in (suite, f"{suite}-mpi4py") if suite == "osu" else (suite,):
        found = find_program(stack, candidate, program, built, assumed=assumed)
        if found.argv is not None:
            return candidate, ""
        if found.lost:
            raise UnavailableError(found.reason)
        reasons.append(found.reason)
    # Only the stacks of wheels have ports: elsewhere the C programs are what is not there.
    return None, reasons[-1 if stack.provisioned else 0]


def find_program(
    stack: StackSpec, suite: str, program: str, built: Built | None = None, *, assumed: bool = False
) -> Located:
    """Return how ``program`` is called in ``stack``: as provisioned, built, or declared."""
    if suite in PEER_SUITES:
        return find_tool(suite, program)
    if stack.provisioned and not has_own(stack, suite):
        return locate(load_catalog().find(stack.installed_as), stacks_root(), suite, program)
    return _built_or_declared(stack, suite, program, built, assumed=assumed)


def has_own(stack: StackSpec, suite: str) -> bool:
    """Tell whether a site names a folder of its own for a suite of a stack that wheels installed.

    One build of a suite against the MPI ABI (MPI 5.0) may serve several of them.
    """
    return stack.suites.get(suite, "provisioned") != "provisioned"


def _built_or_declared(
    stack: StackSpec, suite: str, program: str, built: Built | None, *, assumed: bool
) -> Located:
    name = _binary(suite, program)
    if name is None:
        return Located(argv=None, reason=f"no IMB binary has {program}")
    extra = (printed_name(program),) if suite == "imb" else ()
    if stack.spack is not None and suite not in stack.suites:
        found = locate_built(stack, suite, name, built, assumed=assumed)
        return replace(found, argv=(*found.argv, *extra)) if found.argv is not None else found
    folder = stack.suites.get(suite)
    if folder is None:
        return Located(argv=None, reason=f"stack {stack.name} has no suite {suite}{_bring(suite)}")
    if folder == "PATH":
        path = name
    elif stack.container is not None:
        path = str(Path(folder) / name)  # inside.sh looks into the image
    else:
        path = str(_search(Path(folder), name))
    return Located(argv=(path, *extra))


def installed_library(stack: StackSpec) -> str | None:
    """Return the MPI library of a stack that wheels installed; None of the system's, and of others.

    Where the system has its own is the loader's word on each node.
    """
    if not stack.provisioned:
        return None
    entry = load_catalog().find(stack.installed_as)
    return None if entry.is_system else str(stacks_root() / stack.installed_as / entry.library)


def _bring(suite: str) -> str:
    """Return how a site comes to a stack that has ``suite``."""
    if suite not in SPACK_SUITES:
        return ""
    return "; stacks that have it: fabricproof stack install (wheels), stack build (Spack)"


def _binary(suite: str, program: str) -> str | None:
    """Return the file that holds ``program``; None where no binary of IMB has it."""
    if suite == "hpcc":
        return HPCC_BINARY
    return program if suite != "imb" else imb_binary(program)


def locate_built(
    stack: StackSpec, suite: str, name: str, built: Built | None, *, assumed: bool = False
) -> Located:
    """Return where the program file ``name`` of ``suite`` is in a stack that Spack builds.

    What the build was told to leave out is absent; what it should have left there and did not,
    or what was removed since, is lost.
    """
    again = f"fabricproof stack build {stack.name}"
    if built is None and suite in SPACK_SUITES:
        reason = "" if assumed else f"{stack.name} is not built: {again}"
        return Located(argv=(name,) if assumed else None, reason=reason, lost=not assumed)
    if built is None or suite not in built.programs:
        return Located(argv=None, reason=f"stack {stack.name} is built without {suite}")
    path = _search(built.programs[suite].folder_of(suite), name)
    if path.is_file():
        return Located(argv=(str(path),))
    spec = built.programs[suite].spec
    if f"~{name.removeprefix('IMB-').lower()}" in spec or name.endswith(("_persistent", "-GPU")):
        return Located(argv=None, reason=f"stack {stack.name} is built without {name}: {spec}")
    return Located(argv=None, reason=f"{path} of {stack.name} is gone: {again}", lost=True)


def _search(folder: Path, name: str) -> Path:
    """Return ``name`` in ``folder`` or in the sub-folders that OSU's install has."""
    return next(
        (path for path in sorted(folder.glob(f"**/{name}")) if path.is_file()), folder / name
    )


def printed_name(program: str) -> str:
    """Return the name under which a benchmark prints its table: ``P2P/PingPong`` is PingPong."""
    return program.rpartition("/")[2]
