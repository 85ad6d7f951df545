"""Cut-set bounds: the payload that every algorithm must carry into and out of each node.

Draw a line around a node.  What its ranks must know at the end and cannot compute from what they
had, must cross the line inwards; what the others must know and only this node had, outwards.
This is the counting argument of E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn, "Collective
communication: theory, practice, and experience", Concurrency and Computation 19 (2007) 1749-1783,
section 3 (lower bounds), there for one rank on each node, here for a node's ranks together.

The bounds are for contents that nothing is known of: an operation whose payload is compressed on
its way may carry less.  Switches that reduce or multiply packets on their way (in-network
computing) are covered: the line is drawn at the node.
"""

from __future__ import annotations

from dataclasses import dataclass

from fabricproof.physics.collective.operation import Operation, RankLayout, share


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
    return tuple(_node(operation, size, layout, node) for node in range(layout.num_nodes))


def _node(operation: Operation, size: int, layout: RankLayout, node: int) -> NodeBytes:
    """Return the bound of one node.

    bcast: the root's node sends S once, every other node receives S.
    reduce: every other node sends S (its partial result), the root's node receives S.
    allreduce: every node does both: its partial result must out, the sum of the others in.
    gather, scatter: the blocks of a node's ranks cross once.
    allgather: a node's own blocks must out once (a switch may multiply them), the others' in.
    alltoall: each pair of ranks has a block of its own.
    reduce_scatter: the partial result of the others' shares must out, of its own shares in.
    """
    here = len(layout.ranks_of(node))
    away = layout.num_ranks - here
    is_root = node == 0
    match operation:
        case Operation.BCAST:
            sent, received = (size, 0) if is_root else (0, size)
        case Operation.REDUCE:
            sent, received = (0, size) if is_root else (size, 0)
        case Operation.ALLREDUCE:
            sent, received = size, size
        case Operation.GATHER:
            sent, received = (0, away * size) if is_root else (here * size, 0)
        case Operation.SCATTER:
            sent, received = (away * size, 0) if is_root else (0, here * size)
        case Operation.ALLGATHER:
            sent, received = here * size, away * size
        case Operation.ALLTOALL:
            sent = received = here * away * size
        case Operation.REDUCE_SCATTER:
            ranks = layout.ranks_of(node)
            received = sum(share(size, rank, layout.num_ranks) for rank in ranks)
            sent = size - received
        case Operation.BARRIER:
            sent = received = 0
    return NodeBytes(sent=sent, received=received)
