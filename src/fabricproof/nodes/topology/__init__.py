"""Where the nodes hang: leaves, torus, hops between two, rails crossed, lists of hosts folded."""

from __future__ import annotations

from fabricproof.nodes.topology.cabling import Against, Astray, Cabling, Hanging, astray, cabling_of
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
    "Against",
    "Astray",
    "Cabling",
    "Hanging",
    "Pair",
    "Shape",
    "Topology",
    "astray",
    "cabling_of",
    "contiguous",
    "expand",
    "fold",
    "latency_words",
    "pairs_by_hops",
    "parse_topology",
    "spread",
    "torus_of",
]
