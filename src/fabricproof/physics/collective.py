"""Collective operations: what every algorithm must move, and the least time it can print.

Cut-set bounds: draw a line around a node.  What its ranks must know at the end and cannot compute
from what they had, must cross the line inwards; what the others must know and only this node had,
outwards.  This is the counting argument of E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn,
"Collective communication: theory, practice, and experience", Concurrency and Computation 19 (2007)
1749-1783, section 3, there for one rank on each node, here for a node's ranks together.  Switches
that reduce or multiply packets on their way are covered: the line is drawn at the node.  A payload
that is compressed on its way may be less.

Least time: one rank's time has no floor, since a rank that comes last may find its data already
there, and the root of a broadcast is done when its buffer is free.  What binds is the mean over
the ranks, of operations in which every rank waits for all others; docs/physics.md has the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from fabricproof.core.errors import ConfigError


class Operation(StrEnum):
    """A collective operation of MPI (MPI 4.1, chapter 6); rooted ones have their root at rank 0.

    The message size S in bytes, as OSU and IMB count it, is the vector (bcast, reduce, allreduce,
    reduce_scatter) or the block of one rank (allgather, gather, scatter) or of one pair (alltoall).
    """

    BCAST = "bcast"
    REDUCE = "reduce"
    ALLREDUCE = "allreduce"
    ALLGATHER = "allgather"
    ALLTOALL = "alltoall"
    GATHER = "gather"
    SCATTER = "scatter"
    REDUCE_SCATTER = "reduce_scatter"
    BARRIER = "barrier"

    @property
    def waits_for_all(self) -> bool:
        """Whether no rank can be done before every rank has begun.

        The root of a broadcast or a scatter, and the leaves of a gather or a reduction, can.
        """
        return self not in {Operation.BCAST, Operation.REDUCE, Operation.GATHER, Operation.SCATTER}


@dataclass(frozen=True, kw_only=True)
class RankLayout:
    """Ranks in blocks on nodes: the first ``ranks_per_node`` on the first node, and so on.

    Attributes:
        num_ranks: at least 2.
        ranks_per_node: at least 1; the last node may have fewer.
    """

    num_ranks: int
    ranks_per_node: int = 1

    def __post_init__(self) -> None:
        """Refuse a layout that cannot be."""
        if self.num_ranks < 2 or self.ranks_per_node < 1:
            expected = "two ranks or more, one or more on each node"
            got = f"{self.num_ranks} ranks, {self.ranks_per_node} on each node"
            raise ConfigError("impossible layout of ranks", expected=expected, got=got)

    @property
    def num_nodes(self) -> int:
        """Number of nodes that hold ranks."""
        return -(-self.num_ranks // self.ranks_per_node)

    def node_of(self, rank: int) -> int:
        """Return the node of ``rank``, from 0."""
        return rank // self.ranks_per_node

    def ranks_of(self, node: int) -> range:
        """Return the ranks on ``node``."""
        first = node * self.ranks_per_node
        return range(first, min(first + self.ranks_per_node, self.num_ranks))

    def counts(self) -> Iterator[int]:
        """Yield the number of ranks of each node."""
        return (len(self.ranks_of(node)) for node in range(self.num_nodes))


#: bytes of the largest element that the programs reduce (a float)
_ELEMENT_BYTES = 4


def everyone_waits(operation: Operation, size: int, layout: RankLayout) -> bool:
    """Tell whether no rank can be done before every rank has begun, at this message size.

    Of a short vector of reduce_scatter some ranks get no element (OSU deals them out from rank 0).
    """
    if operation is Operation.REDUCE_SCATTER:
        return size >= _ELEMENT_BYTES * layout.num_ranks
    return operation.waits_for_all and (size > 0 or operation is Operation.BARRIER)


@dataclass(frozen=True, kw_only=True)
class NodeBytes:
    """Payload that must leave and enter one node, in bytes."""

    sent: int
    received: int

    def __add__(self, other: NodeBytes) -> NodeBytes:
        """Return the bytes of two runs."""
        return NodeBytes(sent=self.sent + other.sent, received=self.received + other.received)

    def times(self, repetitions: int) -> NodeBytes:
        """Return the bytes of ``repetitions`` runs."""
        return NodeBytes(sent=self.sent * repetitions, received=self.received * repetitions)


def least_bytes(operation: Operation, size: int, layout: RankLayout) -> tuple[NodeBytes, ...]:
    """Return what each node must send and receive for one operation, in order of the nodes.

    ``size`` is S in bytes, as :class:`Operation` counts it; root is rank 0.
    """
    if layout.num_nodes < 2:
        return (NodeBytes(sent=0, received=0),)
    return tuple(_node_bytes(operation, size, layout, node) for node in range(layout.num_nodes))


def _node_bytes(operation: Operation, size: int, layout: RankLayout, node: int) -> NodeBytes:
    here = len(layout.ranks_of(node))
    away = layout.num_ranks - here
    is_root = node == 0
    match operation:
        case Operation.BCAST:  # the root's node sends S once, every other node receives it
            sent, received = (size, 0) if is_root else (0, size)
        case Operation.REDUCE:  # every other node sends its partial result
            sent, received = (0, size) if is_root else (size, 0)
        case Operation.ALLREDUCE:  # its partial result must out, the sum of the others in
            sent, received = size, size
        case Operation.GATHER:  # the blocks of a node's ranks cross once
            sent, received = (0, away * size) if is_root else (here * size, 0)
        case Operation.SCATTER:
            sent, received = (away * size, 0) if is_root else (0, here * size)
        case Operation.ALLGATHER:  # its own blocks out once (a switch may multiply them)
            sent, received = here * size, away * size
        case Operation.ALLTOALL:  # each pair of ranks has a block of its own
            sent = received = here * away * size
        case Operation.REDUCE_SCATTER:  # its part of the others' shares out, of its own shares in
            share, longer = divmod(size, layout.num_ranks)  # the first shares are a byte longer
            received = sum(share + (rank < longer) for rank in layout.ranks_of(node))
            sent = size - received
        case Operation.BARRIER:
            sent = received = 0
    return NodeBytes(sent=sent, received=received)


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
    """What one node's path can do at its most generous, one way.

    ``latency_us`` is the least time of an empty message, ``transfer_us`` that of so many bytes.
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
    """Return the least value that the statistic can have, in us; None if nothing binds it.

    ``size`` is in bytes, as :class:`Operation` counts it; a stream has ``repetitions`` at least.
    """
    if layout.num_nodes < 2 or not everyone_waits(operation, size, layout):
        return None
    if statistic is Statistic.MEAN_OF_RANKS:
        return _mean_of_ranks(operation, size, layout, wire)
    if statistic is Statistic.RANK_ZERO_STREAM:
        # No rank can be more than one operation ahead: the first operation's data may be there
        # before the clock starts, and what the node's other ranks are due of the last may come
        # after it stops.
        node = least_bytes(operation, size, layout)[0]
        moved = wire.transfer_us(max(0, repetitions - 2) * max(node.sent, node.received))
        return max((repetitions - 1) * wire.latency_us, moved, 0.0) / repetitions
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
        blocks = [0 if operation is Operation.BARRIER else size] * away
    return sum(wire.latency_us + wire.transfer_us(block) for block in blocks) / layout.num_ranks
