"""Whether a node is still what it was when its numbers were learnt.  Pure.

What somebody changes (a card, firmware, a driver, the kernel, an MTU, tuning) makes other numbers
right.  What a link comes to by itself does not: a link that trained down is what a baseline is
there to catch, and must not be excused by it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fabricproof.core.units import first_few
from fabricproof.nodes.inventory.facts import Value

Facts = Mapping[str, Mapping[str, Value]]

#: what a link or a slot came to: the fault itself, never an excuse for it
SYMPTOMS = frozenset(
    {
        *("state", "phys_state", "rate_gbit_s", "speed_mbit_s", "width"),
        *("lanes", "lane_speed", "link", "pcie", "fec"),
        *("shaped_to_mbit_s", "shaper_queue_bytes"),
    }
)

#: handed out anew by a subnet manager or by DHCP without anything being another
HANDED_OUT = frozenset({"addresses", "lid", "sm_lid"})


def lasting(facts: Facts) -> dict[str, dict[str, Value]]:
    """Return the facts that stay until somebody changes them, parts and names sorted."""
    return {
        part: {
            name: value
            for name, value in sorted(facts[part].items())
            if name not in SYMPTOMS | HANDED_OUT
        }
        for part in sorted(facts)
    }


def changes(then: Facts, now: Facts) -> list[str]:
    """Return each lasting fact that is another now: ``firmware of interface ib0 28.39 -> 28.41``.

    A fact that was known and is not known now is another.
    """
    first, second = lasting(then), lasting(now)
    found = []
    for part in sorted({*first, *second}):
        if part not in first or part not in second:
            found.append(f"{part} is {'gone' if part in first else 'new'}")
            continue
        where = "" if part in {"node", "tuning"} else f" of {part}"
        for fact in sorted({*first[part], *second[part]}):
            was, is_ = (each[part].get(fact, "not known") for each in (first, second))
            if was != is_:
                found.append(f"{fact}{where} {was} -> {is_}")
    return found


def why_changed(node: str, then: Facts | None, now: Facts | None) -> str:
    """Return why numbers of ``node`` no longer hold; empty if they do.

    ``then`` is None if nothing was learnt of the node, ``now`` if nobody saw it.
    """
    if then is None:
        return f"{node} was not in it"
    if now is None:
        return f"nobody saw what {node} is made of"
    found = changes(then, now)
    return f"{node}: {first_few(found, 3)}" if found else ""
