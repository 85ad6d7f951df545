"""A topology as Slurm knows it, and how many switches lie between two nodes of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from fabricproof.core.errors import ConfigError


class Shape(StrEnum):
    """How Slurm describes the network (``TopologyPlugin``)."""

    FLAT = "flat"
    """Slurm knows nothing of it: no node is nearer than another."""
    TREE = "tree"
    BLOCK = "block"
    TORUS = "3d torus"


@dataclass(frozen=True, kw_only=True)
class Group:
    """A switch of a tree, or a block: the nodes below it and, in a tree, the switches below it.

    Attributes:
        name: as Slurm gives it.
        level: 0 for a leaf switch; in block topologies 0 for a base block, 1 above it.
        nodes: every node below it, in Slurm's order.
        children: names of the switches right below it, none for a leaf.
    """

    name: str
    level: int
    nodes: tuple[str, ...]
    children: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The network as the scheduler is told it is; wires may be otherwise, so it is no proof.

    Attributes:
        shape: which kind.
        groups: switches or blocks, in Slurm's order.
        coordinates: place of each node in a torus, in steps along x, y and z.
    """

    shape: Shape
    groups: tuple[Group, ...] = ()
    coordinates: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Every node that the topology places, each once, in Slurm's order."""
        named = (node for group in self.groups for node in group.nodes)
        return tuple(dict.fromkeys((*self.coordinates, *named)))

    @cached_property
    def _leaf_of(self) -> Mapping[str, Group]:
        """Return the lowest group of each node."""
        found: dict[str, Group] = {}
        for group in sorted(self.groups, key=lambda each: (-each.level, -len(each.nodes))):
            found |= dict.fromkeys(group.nodes, group)
        return found

    @cached_property
    def _neighbours(self) -> Mapping[str, frozenset[str]]:
        links: dict[str, set[str]] = {group.name: set() for group in self.groups}
        for group in self.groups:
            for child in group.children:
                links[group.name].add(child)
                links.setdefault(child, set()).add(group.name)
        return {name: frozenset(others) for name, others in links.items()}

    @cached_property
    def size(self) -> tuple[int, int, int]:
        """How many places the torus has along x, y and z, from the coordinates that are used."""
        places = tuple(self.coordinates.values())
        x, y, z = zip(*places, strict=True) if places else ((0,), (0,), (0,))
        return (max(x) - min(x) + 1, max(y) - min(y) + 1, max(z) - min(z) + 1)

    def leaf(self, node: str) -> str:
        """Return the leaf switch, block or place of ``node``.

        Raises:
            ConfigError: the topology does not hold the node.
        """
        self._check(node)
        if self.shape is Shape.TORUS:
            return "x{} y{} z{}".format(*self.coordinates[node])
        return self._leaf_of[node].name

    def hops(self, one: str, other: str) -> int | None:
        """Return how many switches a message from ``one`` to ``other`` crosses; at least 1.

        In a tree these are the switches on the shortest way: 1 on the same leaf, 3 over one
        spine.  In a torus every place is a switch, so the steps and one more.  In block topologies
        Slurm tells no switches: 1 within a base block, one more for each size of block that must
        be left.  None where no way is known: nothing connects them, or Slurm is flat.

        Raises:
            ConfigError: the topology does not hold a node, or both are the same.
        """
        if one == other:
            raise ConfigError("a pair needs two nodes", got=one)
        if self.shape is Shape.FLAT:
            return None
        self._check(one)
        self._check(other)
        if self.shape is Shape.TORUS:
            return self._torus_hops(one, other)
        if self.shape is Shape.BLOCK:
            return self._block_hops(one, other)
        return self._switches_between(self._leaf_of[one].name, self._leaf_of[other].name)

    def _check(self, node: str) -> None:
        if node not in self.coordinates and node not in self._leaf_of:
            raise ConfigError(
                "Slurm's topology does not hold this node",
                expected=f"one of its {len(self.nodes)} nodes",
                got=node,
                next_step="topology.conf: add it, or scontrol reconfigure",
            )

    def _torus_hops(self, one: str, other: str) -> int:
        steps = 0
        pairs = zip(self.coordinates[one], self.coordinates[other], self.size, strict=True)
        for here, there, length in pairs:
            straight = abs(here - there)
            steps += min(straight, length - straight)
        return steps + 1

    def _block_hops(self, one: str, other: str) -> int:
        sizes = sorted({len(group.nodes) for group in self.groups})
        both = [len(group.nodes) for group in self.groups if {one, other} <= {*group.nodes}]
        return 1 + (sizes.index(min(both)) if both else len(sizes))

    def _switches_between(self, start: str, end: str) -> int | None:
        seen, waiting = {start}, deque([(start, 1)])
        while waiting:
            name, count = waiting.popleft()
            if name == end:
                return count
            for next_name in sorted(self._neighbours[name] - seen):
                seen.add(next_name)
                waiting.append((next_name, count + 1))
        return None
