"""The operations, and how their ranks lie on nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from fabricproof.core.errors import ConfigError


class Operation(StrEnum):
    """A collective operation of MPI (MPI 4.1, chapter 6); rooted ones have their root at rank 0.

    The message size S of each, as OSU and IMB count it, in bytes:
    bcast, reduce, allreduce: the vector; allgather, gather, scatter: one rank's block;
    alltoall: the block for one rank from one rank; reduce_scatter: the whole vector, of which
    each rank keeps a share; barrier: nothing.
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
        """Tell whether no rank can be done before every rank has begun."""
        return self not in _ROOTED


#: Operations in which some ranks wait for one rank only, or for none: the root of a broadcast or
#: a scatter and the leaves of a gather or a reduction are done when their buffer is free.
_ROOTED = frozenset({Operation.BCAST, Operation.REDUCE, Operation.GATHER, Operation.SCATTER})


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
            raise ConfigError(
                "impossible layout of ranks",
                expected="two ranks or more, one or more on each node",
                got=f"{self.num_ranks} ranks, {self.ranks_per_node} on each node",
            )

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


def share(total: int, part: int, parts: int) -> int:
    """Return the size of ``part`` of ``total`` cut into ``parts``, the first ones a byte longer."""
    return total // parts + (part < total % parts)


#: bytes of the largest element that the programs reduce (a float)
ELEMENT_BYTES = 4


def everyone_waits(operation: Operation, size: int, layout: RankLayout) -> bool:
    """Tell whether no rank can be done before every rank has begun, at this message size.

    Of a short vector of reduce_scatter some ranks get no element at all (OSU deals them out from
    rank 0), and need to wait for nobody.
    """
    if operation is Operation.REDUCE_SCATTER:
        return size >= ELEMENT_BYTES * layout.num_ranks
    return operation.waits_for_all and (size > 0 or operation is Operation.BARRIER)
