"""What one machine says against itself: less than its parts can, and cards far from the ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, kw_only=True)
class Distance:
    """How far a card is from the CPUs of a rank.

    Attributes:
        part: ``interface ib0``, ``port mlx5_0:1``.
        numa_node: the card's.
        spread: the kernel's distances from the rank's NUMA nodes to it, sorted; none where it
            does not give them.
        is_far: some CPUs of the rank lie on another NUMA node.
    """

    part: str
    numa_node: int
    spread: tuple[int, ...]
    is_far: bool

    @property
    def place(self) -> str:
        """The card's NUMA node and its distance, for people."""
        word = "far" if self.is_far else "near"
        ends = dict.fromkeys((*self.spread[:1], *self.spread[-1:]))
        known = " to ".join(map(str, ends))
        said = f"{known} ({word})" if known else f"not known, {word}"
        return f"NUMA node {self.numa_node}: distance {said}"


def distances(machine: Machine, cpus: str) -> tuple[Distance, ...]:
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
        _distance(part, nodes, mine, place)
        for part, facts in machine.facts.items()
        if isinstance(place := facts.get("numa_node"), int) and place in nodes
    )


def _distance(
    part: str, nodes: Mapping[int, Mapping[str, Value]], mine: Iterable[int], place: int
) -> Distance:
    """Return how far a part on NUMA node ``place`` is from the NUMA nodes ``mine``."""
    order = sorted(nodes)
    found = set()
    for number in mine:
        row = [int(each) for each in str(nodes[number].get("distance", "")).split()]
        if len(row) == len(order):
            found.add(row[order.index(place)])
    is_far = max(found) > OWN_DISTANCE if found else place not in mine
    return Distance(part=part, numa_node=place, spread=tuple(sorted(found)), is_far=is_far)


def _list(text: Value | None) -> set[int]:
    """Return the numbers of a list as the kernel prints it; none for what is no list."""
    numbers: set[int] = set()
    for part in str("" if text is None else text).split(","):
        found = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if found:
            numbers.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return numbers
