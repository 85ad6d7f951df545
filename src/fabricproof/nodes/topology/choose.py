"""Which nodes to measure: pairs at every distance, and sets that sit together or apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from fabricproof.nodes.topology.model import Shape, Topology

#: A pair at every distance is looked for from this many nodes; on a machine of thousands the
#: first ones see every distance that there is, but for a leaf that hangs in a place of its own.
MAX_HUBS = 64


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two nodes and the switches between them."""

    nodes: tuple[str, str]
    hops: int


def pairs_by_hops(
    topology: Topology, nodes: Sequence[str], *, max_nodes: int | None = None
) -> tuple[Pair, ...]:
    """Return one pair for every distance between ``nodes``, the nearest first.

    All pairs share their first node, the one that sees most distances (the first of equals), so
    that few nodes are needed.  Where ``max_nodes`` (at least 2) allows fewer than all distances,
    the nearest and the farthest are kept.

    Args:
        topology: as Slurm tells it.
        nodes: what may be measured; nodes that the topology does not hold are left out.
        max_nodes: nodes that may be used in all.
    """
    placed = [node for node in nodes if node in {*topology.nodes}]
    best: dict[int, Pair] = {}
    for hub in placed[:MAX_HUBS]:
        seen = _distances(topology, hub, placed)
        if len(seen) > len(best):
            best = seen
    hops = sorted(best)
    if max_nodes is not None and len(hops) > max_nodes - 1:
        kept = max(max_nodes - 1, 1)
        hops = hops[:1] if kept == 1 else [*hops[: kept - 1], hops[-1]]
    return tuple(best[count] for count in hops)


def _distances(topology: Topology, hub: str, nodes: Sequence[str]) -> dict[int, Pair]:
    found: dict[int, Pair] = {}
    for node in nodes:
        hops = topology.hops(hub, node) if node != hub else None
        if hops is not None and hops not in found:
            found[hops] = Pair(nodes=(hub, node), hops=hops)
    return found


def contiguous(topology: Topology, nodes: Sequence[str], count: int) -> tuple[str, ...]:
    """Return ``count`` of ``nodes`` under as few leaves as possible; all where there are fewer.

    Full leaves go first; within a leaf the order is that of ``nodes``.
    """
    by_leaf = sorted(_by_leaf(topology, nodes), key=len, reverse=True)
    return tuple(node for leaf in by_leaf for node in leaf)[:count]


def spread(topology: Topology, nodes: Sequence[str], count: int) -> tuple[str, ...]:
    """Return ``count`` of ``nodes`` under as many leaves as possible, one of each in turn."""
    in_turn = (node for turn in zip_longest(*_by_leaf(topology, nodes)) for node in turn)
    return tuple(node for node in in_turn if node is not None)[:count]


def _by_leaf(topology: Topology, nodes: Sequence[str]) -> list[list[str]]:
    if topology.shape is Shape.FLAT:
        return [list(nodes)]
    leaves: dict[str, list[str]] = {}
    for node in nodes:
        leaves.setdefault(topology.leaf(node), []).append(node)
    return list(leaves.values())


def words(topology: Topology, pair: Pair) -> str:
    """Return where the pair sits, for a person: ``vc1 and vc3, 3 switches (leaf1 to leaf2)``."""
    one, other = pair.nodes
    here, there = topology.leaf(one), topology.leaf(other)
    unit = "step of blocks" if topology.shape is Shape.BLOCK else "switch"
    plural = "steps of blocks" if topology.shape is Shape.BLOCK else "switches"
    where = f"both on {here}" if here == there else f"{here} to {there}"
    return f"{one} and {other}, {pair.hops} {unit if pair.hops == 1 else plural} ({where})"
