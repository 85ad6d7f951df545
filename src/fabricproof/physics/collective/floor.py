"""The least time that a printed mean can show: below it the operation did not take this path.

A rank's time alone has no floor: a rank that comes last may find its data already there, and the
root of a broadcast is done when its buffer is free.  What binds is the mean over the ranks, of
operations in which every rank waits for all others; docs/physics.md, Collectives, has the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fabricproof.physics.collective.bounds import least_bytes
from fabricproof.physics.collective.operation import Operation, RankLayout, everyone_waits


class Statistic(StrEnum):
    """What a program prints of its ranks' times."""

    MEAN_OF_RANKS = "mean over the ranks, each repetition timed by itself"
    """OSU (collective/blocking/*.c: MPI_Reduce of the timers, over the number of ranks), IMB-MPI1
    (t_avg); a barrier, if any, stands between the repetitions and outside the times."""
    RANK_ZERO_STREAM = "rank 0, all repetitions timed at once"
    """mpi4py's ports, and MPI_Barrier of IMB."""
    ONE_RANK = "one rank, each repetition timed by itself"
    """IMB-NBC prints the pure time of the rank that overlapped worst (IMB_output.c): no floor."""


@dataclass(frozen=True, kw_only=True)
class Wire:
    """What one node's path can do at its most generous.

    Attributes:
        latency_us: the least one-way time of an empty message, us.
        transfer_us: least time in which so many bytes pass one way, us.
    """

    latency_us: float
    transfer_us: Callable[[int], float]

    @classmethod
    def plain(cls, *, latency_us: float, rate_mb_s: float) -> Wire:
        """Return a wire without memory of ``rate_mb_s`` (bytes per us)."""
        return cls(latency_us=latency_us, transfer_us=lambda size: size / rate_mb_s)


#: Repetitions of a stream that nobody counted: our own runs make at least so many.
LEAST_REPETITIONS = 5


def least_mean_us(
    statistic: Statistic,
    operation: Operation,
    size: int,
    layout: RankLayout,
    wire: Wire,
    *,
    repetitions: int = LEAST_REPETITIONS,
) -> float | None:
    """Return the least value that the statistic can have, in us; None where nothing binds it.

    ``size`` is in bytes, as :class:`Operation` counts it; a stream has ``repetitions`` at the
    least.
    """
    if layout.num_nodes < 2 or not everyone_waits(operation, size, layout):
        return None
    if statistic is Statistic.MEAN_OF_RANKS:
        return _mean_of_ranks(operation, size, layout, wire)
    if statistic is Statistic.RANK_ZERO_STREAM:
        return _stream(operation, size, layout, wire, repetitions)
    return None


def _mean_of_ranks(operation: Operation, size: int, layout: RankLayout, wire: Wire) -> float:
    """Return the mean's floor: all ranks away from the last one's node wait for its data.

    The k-th of them that ends has waited a crossing and, where every rank is due data of its own
    from the last one (alltoall, reduce_scatter), for k blocks to leave that node.  The node with
    most ranks leaves fewest to wait.
    """
    away = layout.num_ranks - max(layout.counts())
    if operation is Operation.ALLTOALL:
        blocks = [size * k for k in range(1, away + 1)]
    elif operation is Operation.REDUCE_SCATTER:
        blocks = [size // layout.num_ranks * k for k in range(1, away + 1)]
    else:
        blocks = [_block_of_one(operation, size)] * away
    waited = sum(wire.latency_us + wire.transfer_us(block) for block in blocks)
    return waited / layout.num_ranks


def _block_of_one(operation: Operation, size: int) -> int:
    """Return what any other rank must learn from one rank, in bytes."""
    return 0 if operation is Operation.BARRIER else size


def _stream(
    operation: Operation, size: int, layout: RankLayout, wire: Wire, repetitions: int
) -> float:
    """Return the floor of a stream's mean: no rank can be more than one operation ahead.

    The first operation's data may be there before the clock starts; of the last one's, what the
    other ranks of the node still wait for may come after it stops.
    """
    node = least_bytes(operation, size, layout)[0]
    counted = max(0, repetitions - 2)
    crossings = max(0, repetitions - 1) * wire.latency_us
    moved = wire.transfer_us(counted * max(node.sent, node.received))
    return max(crossings, moved) / repetitions
