"""Which way a quantity is better, from its name, its unit and its bounds."""

from __future__ import annotations

#: the tool's own setting, of all that it says of a run; what it measured beside (retransmits,
#: bytes moved, the MTU that TCP found) is a result and tells no two quantities apart.
SETTINGS = (
    "binary",
    "datatype",
    "group",
    "mode",
    "num_pairs",
    "num_processes",
    "protocol",
    "streams",
    "synchronization",
    "threads",
    "window_creation",
    "window_size",
)

HIGHER = frozenset({"MB/s", "MiB/s", "1/s"})
LOWER = frozenset({"us", "ms"})


def better(unit: str, lower: float | None, upper: float | None) -> int:
    """Return 1 where more is better, -1 where less is, 0 where nobody can say.

    A ratio (``x``) is better on the side that has no bound.  Link states, rates and counts are
    facts: the inventory compares them.

    Args:
        unit: of the quantity.
        lower: smallest accepted value.
        upper: largest accepted value.
    """
    if unit in HIGHER:
        return 1
    if unit in LOWER:
        return -1
    if unit == "x" and (lower is None) != (upper is None):
        return 1 if upper is None else -1
    return 0
