"""Every node with every node: rounds of pairs, and whose fault a slow pair is."""

from __future__ import annotations

from fabricproof.pairs.fabric import (
    Leaves,
    Loads,
    leaves_by_name,
    leaves_of,
    load_of_flows,
    loads_of,
    natural,
)
from fabricproof.pairs.schedule import Order, Schedule, least_rounds

__all__ = [
    "Leaves",
    "Loads",
    "Order",
    "Schedule",
    "least_rounds",
    "leaves_by_name",
    "leaves_of",
    "load_of_flows",
    "loads_of",
    "natural",
]
