"""Where the nodes hang: leaves, hops between two, rails crossed."""

from __future__ import annotations

from fabricproof.nodes.topology.cabling import Against, Astray, Cabling, Hanging, astray, cabling_of
from fabricproof.nodes.topology.model import (
    Pair,
    Shape,
    Topology,
    contiguous,
    pairs_by_hops,
    parse_topology,
    spread,
    steps_from,
)

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
    "pairs_by_hops",
    "parse_topology",
    "spread",
    "steps_from",
]
