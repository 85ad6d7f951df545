"""What one machine says against itself: less than its parts can, and cards far from the ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from fabricproof.core.errors import FabricproofError
from fabricproof.nodes.inventory.facts import Machine, Value
from fabricproof.nodes.inventory.subnet import ports_of, subnet_notes
from fabricproof.physics import find_slot
from fabricproof.physics.slots import Slot

#: what the kernel gives as the distance of a NUMA node to itself (ACPI specification, SLIT)
OWN_DISTANCE = 10


def notes(machine: Machine) -> tuple[str, ...]:
    """Return a sentence for each part that does less than it is able to, and on its subnets."""
    below = (
        f"{part}: {sentence}" for part, facts in machine.facts.items() for sentence in _below(facts)
    )
    return (*below, *subnet_notes(ports_of(machine)))


def _below(facts: Mapping[str, Value]) -> Iterator[str]:
    now, able = _slot(facts.get("pcie")), _slot(facts.get("pcie_best"))
    above = _slot(facts.get("pcie_best_of_slot"))
    if now and able and now.raw_mb_s < able.raw_mb_s:
        why = "the slot can no more" if above and above.raw_mb_s <= now.raw_mb_s else ""
        why = why or "narrow slot or riser, or the card sits badly"
        yield f"trained to {now.name}, the card is able to {able.name}: {why}"
    speed, best = facts.get("speed_mbit_s"), facts.get("speed_best_mbit_s")
    if isinstance(speed, int) and isinstance(best, int) and speed < best:
        yield f"link at {speed} of {best} Mb/s: cable, transceiver or the other end"


def _slot(name: Value | None) -> Slot | None:
    try:
        return find_slot(str(name)) if name else None
    except FabricproofError:
        return None


def distances(machine: Machine, cpus: str) -> tuple[str, ...]:
    """Return how far each card is from a rank that may run on ``cpus``, where that matters.

    Args:
        machine: the node.
        cpus: as the kernel lists them, ``0-3,8``; ``unknown`` says nothing.
    """
    nodes = {
        int(found[1]): facts
        for part, facts in machine.facts.items()
        if (found := re.fullmatch(r"numa node(\d+)", part))
    }
    mine = {number for number, facts in nodes.items() if _list(facts.get("cpus")) & _list(cpus)}
    if len(nodes) < 2 or not mine:
        return ()
    return tuple(
        f"{part} on NUMA node {place}: distance {_distance(nodes, mine, place)}"
        for part, facts in machine.facts.items()
        if isinstance(place := facts.get("numa_node"), int) and place in nodes
    )


def _distance(nodes: Mapping[int, Mapping[str, Value]], mine: Iterable[int], place: int) -> str:
    """Return the least and the most of the kernel's distances from ``mine`` to ``place``."""
    order = sorted(nodes)
    found = set()
    for number in mine:
        row = [int(each) for each in str(nodes[number].get("distance", "")).split()]
        if len(row) == len(order):
            found.add(row[order.index(place)])
    if not found:
        return f"not known, {'near' if place in mine else 'far'}"
    words = " to ".join(str(each) for each in sorted({min(found), max(found)}))
    return f"{words} ({'near' if max(found) <= OWN_DISTANCE else 'far'})"


def _list(text: Value | None) -> set[int]:
    """Return the numbers of a list as the kernel prints it; none for what is no list."""
    numbers: set[int] = set()
    for part in str("" if text is None else text).split(","):
        found = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if found:
            numbers.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return numbers
