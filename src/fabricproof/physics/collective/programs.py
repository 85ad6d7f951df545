"""Which benchmark program measures which operation, and what its times are.

OSU 5.9 to 7.4: c/mpi/collective/{blocking,non_blocking}; mpi4py 4.1: demo/osu_*.py; IMB 2021.11:
src_c/IMB_{bcast,allreduce,...}.c.
"""

from __future__ import annotations

from dataclasses import dataclass

from fabricproof.physics.collective.floor import Statistic
from fabricproof.physics.collective.operation import Operation


@dataclass(frozen=True, kw_only=True)
class CollectiveProgram:
    """One program.

    Attributes:
        operation: what it measures.
        statistic: what it prints of the ranks' times.
        non_blocking: it prints overall, compute and pure communication times, and the overlap.
        has_size: it has messages at all; a barrier has none.
        share_sized: its size may be one rank's share where others print the whole vector.
    """

    operation: Operation
    statistic: Statistic
    non_blocking: bool = False
    has_size: bool = True
    share_sized: bool = False


#: the operations with a variant of unlike counts (``v``) or types (``w``); OSU and IMB give every
#: rank the same count there, so that bounds and models are those of the plain operation.
_VARIANTS = {
    Operation.ALLGATHER: ("", "v"),
    Operation.ALLTOALL: ("", "v", "w"),
    Operation.GATHER: ("", "v"),
    Operation.SCATTER: ("", "v"),
}

#: mpi4py's ports of collectives.
_PORTS = ("allgather", "alltoall", "alltoallv", "barrier", "bcast", "gather", "scatter")


def _program(
    operation: Operation, statistic: Statistic, *, non_blocking: bool, share_sized: bool = False
) -> CollectiveProgram:
    return CollectiveProgram(
        operation=operation,
        statistic=statistic,
        non_blocking=non_blocking,
        has_size=operation is not Operation.BARRIER,
        share_sized=share_sized,
    )


def _variants() -> dict[str, Operation]:
    return {
        f"{operation.value}{variant}": operation
        for operation in Operation
        for variant in _VARIANTS.get(operation, ("",))
    }


def _osu() -> dict[str, CollectiveProgram]:
    return {
        f"osu_{'i' if non_blocking else ''}{name}": _program(
            operation, Statistic.MEAN_OF_RANKS, non_blocking=non_blocking
        )
        for name, operation in _variants().items()
        for non_blocking in (False, True)
    }


def _ports() -> dict[str, CollectiveProgram]:
    known = _variants()
    return {
        f"osu_{name}": _program(known[name], Statistic.RANK_ZERO_STREAM, non_blocking=False)
        for name in _PORTS
    }


def _imb() -> dict[str, CollectiveProgram]:
    """IMB's names in lower case; its barrier times the whole stream (IMB_barrier.c).

    The vector of its Reduce_scatter was the printed size up to IMB 2018 and is the printed size
    for each rank since (IMB_reduce_scatter.c, ``IMB2018``).
    """
    found: dict[str, CollectiveProgram] = {}
    for name, operation in _variants().items():
        stream = operation is Operation.BARRIER
        sized = operation is Operation.REDUCE_SCATTER
        found[name] = _program(
            operation,
            Statistic.RANK_ZERO_STREAM if stream else Statistic.MEAN_OF_RANKS,
            non_blocking=False,
            share_sized=sized,
        )
        found[f"i{name}"] = _program(
            operation, Statistic.ONE_RANK, non_blocking=True, share_sized=sized
        )
        found[f"i{name}_pure"] = _program(
            operation,
            Statistic.RANK_ZERO_STREAM if stream else Statistic.MEAN_OF_RANKS,
            non_blocking=False,
            share_sized=sized,
        )
    return found


_BY_SUITE = {"osu": _osu(), "osu-mpi4py": _ports(), "imb": _imb()}


def collective_of(suite: str, program: str) -> CollectiveProgram | None:
    """Return what ``program`` of ``suite`` measures; None where it is no collective."""
    name = program.lower() if suite == "imb" else program
    return _BY_SUITE.get(suite, {}).get(name)
