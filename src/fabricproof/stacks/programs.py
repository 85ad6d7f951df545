"""Where the programs of a suite are in a stack of ``fabricproof stack install``."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from fabricproof.benchmarks.catalogue import program_of
from fabricproof.stacks.catalog import Stack
from fabricproof.stacks.environment import ports_folder, stack_python
from fabricproof.stacks.workload import PORT_RUNNER, imb_binary

#: the stack whose wheel carries the IMB binaries.
IMB_HOME = "intelmpi"

#: families whose MPI has the binary interface that those binaries were linked for: libmpi.so.12
#: of the MPICH ABI Compatibility Initiative.
_MPICH_ABI = frozenset({"intelmpi", "mpich", "mvapich"})


@dataclass(frozen=True, kw_only=True)
class Located:
    """A program, or why there is none.

    Attributes:
        argv: how it is called, None where the stack does not have it.
        reason: why not; empty where it is there.
        lost: the stack should have it: its installation is what is missing, nothing to skip over.
    """

    argv: tuple[str, ...] | None
    reason: str = ""
    lost: bool = False


def _absent(reason: str) -> Located:
    return Located(argv=None, reason=reason)


def _lost(stack: Stack) -> Located:
    reason = f"{stack.name} is not installed: fabricproof stack install {stack.name}"
    return Located(argv=None, reason=reason, lost=True)


def locate(stack: Stack, root: Path, suite: str, program: str) -> Located:
    """Return how ``program`` of ``suite`` is called in ``stack``, installed below ``root``.

    Args:
        stack: of the catalogue.
        root: where the stacks are installed.
        suite: ``osu-mpi4py``, ``imb`` or ``osu``.
        program: ``osu_bw``, ``PingPong``, ``P2P/PingPong``, ``Unidir_put`` ...
    """
    if suite == "osu-mpi4py":
        return _locate_port(stack, root, program)
    if suite == "imb":
        return _locate_imb(stack, root, program)
    if suite == "hpcc":
        return _locate_hpcc(stack)
    return _absent(f"{stack.label} has no {suite} from wheels: build it with Spack")


def _locate_hpcc(stack: Stack) -> Located:
    """Return the distribution's hpcc, which is linked with the distribution's own Open MPI."""
    if not (stack.is_system and stack.family == "openmpi"):
        return _absent(f"the distribution's hpcc is linked with its own MPI, not {stack.label}")
    path = shutil.which("hpcc")
    if path is None:
        return _absent("no hpcc on this machine (Debian: hpcc)")
    return Located(argv=(path,))


def _locate_port(stack: Stack, root: Path, program: str) -> Located:
    prefix = root / stack.name
    row = program_of("osu-mpi4py", program)
    if row is None or not row.has_port:
        return _absent("mpi4py has no port of it")
    port = ports_folder(prefix) / f"{program}.py"
    if not port.is_file():
        return _lost(stack)
    # -E -s -P: nothing of the caller's Python gets in.
    return Located(argv=(str(stack_python(prefix)), "-EsP", str(PORT_RUNNER), str(port)))


def _locate_imb(stack: Stack, root: Path, program: str) -> Located:
    binary = imb_binary(program)
    if binary is None:
        return _absent(f"no IMB binary has {program}")
    if stack.family not in _MPICH_ABI:
        return _absent(
            f"the IMB binaries of the Intel MPI wheel do not run on {stack.label}: another ABI"
        )
    path = root / IMB_HOME / "bin" / binary
    if not path.is_file() and stack.name == IMB_HOME:
        return _lost(stack)
    if not path.is_file():
        return _absent(f"IMB comes with {IMB_HOME}: fabricproof stack install {IMB_HOME}")
    return Located(argv=(str(path), program.rpartition("/")[2]))
