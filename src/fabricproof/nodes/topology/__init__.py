"""Where the nodes hang: leaves, torus, hops between two, and lists of hosts folded and unfolded."""

from __future__ import annotations

from fabricproof.nodes.topology.model import (
    Pair,
    Shape,
    Topology,
    contiguous,
    latency_words,
    pairs_by_hops,
    spread,
)
from fabricproof.nodes.topology.text import expand, fold, parse_topology, torus_of

__all__ = [
    "Pair",
    "Shape",
    "Topology",
    "contiguous",
    "expand",
    "fold",
    "latency_words",
    "pairs_by_hops",
    "parse_topology",
    "spread",
    "torus_of",
]
