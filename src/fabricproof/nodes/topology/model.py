"""Where the nodes hang: switches between them, pairs worth measuring, the cost of a switch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import zip_longest
from typing import NoReturn, TypeVar

from fabricproof.core.errors import ConfigError, ParseError
from fabricproof.core.hostlist import expand
from fabricproof.core.units import by_key

_Key = TypeVar("_Key")


def steps_from(graph: Mapping[_Key, Iterable[_Key]], starts: Iterable[_Key]) -> dict[_Key, int]:
    """Return how far each vertex that can be reached is from the nearest of ``starts``."""
    far = dict.fromkeys(starts, 0)
    waiting = deque(far)
    while waiting:
        here = waiting.popleft()
        for there in graph[here]:
            if there not in far:
                far[there] = far[here] + 1
                waiting.append(there)
    return far


class Shape(StrEnum):
    """How Slurm describes the network (``TopologyPlugin``)."""

    FLAT = "flat"
    """Slurm knows nothing of it: no node is nearer than another."""
    TREE = "tree"
    BLOCK = "block"


@dataclass(frozen=True, kw_only=True)
class SwitchGroup:
    """A switch of a tree, or a block: the nodes below it and, in a tree, the switches below it.

    Attributes:
        level: 0 for a leaf switch; in block topologies 0 for a base block, 1 above it.
        nodes: every node below it, in Slurm's order.
        children: names of the switches right below it, none for a leaf.
        block_size: how many nodes the block is made for (BlockSize); 0 of a switch, and where
            Slurm does not say.
    """

    name: str
    level: int
    nodes: tuple[str, ...]
    children: tuple[str, ...] = ()
    block_size: int = 0

    @property
    def rank(self) -> int:
        """How large it is among its kind: its block size, else the number of its nodes."""
        return self.block_size or len(self.nodes)


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The network as the scheduler is told it is; wires may be otherwise, so it is no proof."""

    shape: Shape
    groups: tuple[SwitchGroup, ...] = ()

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Every node that the topology places, each once, in Slurm's order."""
        return tuple(dict.fromkeys(node for group in self.groups for node in group.nodes))

    @cached_property
    def _leaf_of(self) -> Mapping[str, SwitchGroup]:
        """Return the lowest group of each node."""
        found: dict[str, SwitchGroup] = {}
        for group in sorted(self.groups, key=lambda each: (-each.level, -each.rank)):
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

    def leaf(self, node: str) -> str:
        """Return the leaf switch or block of ``node``.

        Raises:
            ConfigError: the topology does not hold the node.
        """
        self._check(node)
        return self._leaf_of[node].name

    def hops(self, one: str, other: str) -> int | None:
        """Return how many switches a message from ``one`` to ``other`` crosses; at least 1.

        In a tree these are the switches on the shortest way: 1 on the same leaf, 3 over one
        spine.  In block topologies Slurm tells no switches: 1 within a base block, one more for
        each size of block that must be left.  None where no way is known: nothing connects them,
        or Slurm is flat.

        Raises:
            ConfigError: the topology does not hold a node, or both are the same.
        """
        if one == other:
            raise ConfigError("a pair needs two nodes", got=one)
        if self.shape is Shape.FLAT:
            return None
        self._check(one)
        self._check(other)
        if self.shape is Shape.BLOCK:
            return self._block_hops(one, other)
        return self._switches_between(self._leaf_of[one].name, self._leaf_of[other].name)

    def _check(self, node: str) -> None:
        if node not in self._leaf_of:
            raise ConfigError(
                "Slurm's topology does not hold this node",
                expected=f"one of its {len(self.nodes)} nodes",
                got=node,
                next_step="topology.conf: add it, or scontrol reconfigure",
            )

    def _block_hops(self, one: str, other: str) -> int:
        sizes = sorted({group.rank for group in self.groups})
        both = [group.rank for group in self.groups if {one, other} <= {*group.nodes}]
        return 1 + (sizes.index(min(both)) if both else len(sizes))

    @cached_property
    def _far(self) -> dict[str, Mapping[str, int]]:
        """Hold how far the others are from each group that was asked about."""
        return {}

    def _switches_between(self, start: str, end: str) -> int | None:
        if start not in self._far:
            self._far[start] = steps_from(self._neighbours, [start])
        steps = self._far[start].get(end)
        return None if steps is None else steps + 1


#: what Slurm says where it has no topology (scontrol, ``slurm_print_topo_info_msg``)
NO_TOPOLOGY = "No topology information available"

#: Forms (Slurm's source: ``_print_topo_record`` of topology/tree and topology/block, the former in
#: ``src/api/topo_info.c`` before 23.11; recorded from 22.05)::
#:
#:    SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=vc[1-2]
#:    SwitchName=spine Level=1 LinkSpeed=1 Nodes=vc[1-4] Switches=leaf[1-2]
#:    BlockName=b1 BlockIndex=0 Nodes=node[01-08] BlockSize=8
#:
#:    AggregatedBlock=b[1-2] BlockIndex=2 Nodes=node[01-16] BlockSize=16
_KEYS = {
    "SwitchName": frozenset({"Level", "LinkSpeed", "Nodes", "Switches"}),
    "BlockName": frozenset({"BlockIndex", "Nodes", "BlockSize"}),
    "AggregatedBlock": frozenset({"BlockIndex", "Nodes", "BlockSize"}),
}


def parse_topology(text: str, source: str = "scontrol show topology") -> Topology:
    """Read what ``scontrol show topology`` printed.

    Nothing, or Slurm's own sentence that there is none, is a flat topology.

    Raises:
        ParseError: a line of another form, a name twice, trees and blocks in one text, a switch
            below another that is not there, or a cut last line.
        ConfigError: a hostlist in it stands for too many names (:mod:`fabricproof.core.hostlist`).
    """
    groups: dict[str, SwitchGroup] = {}
    shapes: set[Shape] = set()

    def refuse(expected: str, got: str, number: int | None = None) -> NoReturn:
        what = "damaged topology"
        raise ParseError(what, source=source, line=number, expected=expected, got=repr(got[:80]))

    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or NO_TOPOLOGY in line:
            continue
        pairs = [word.partition("=") for word in line.split()]
        facts, head = {key: value for key, _, value in pairs}, pairs[0][0]
        known = _KEYS.get(head)
        if known is None or len(facts) != len(pairs) or not all(mark for _, mark, _ in pairs):
            refuse("SwitchName=... or BlockName=... with key=value", line, number)
        if not facts.keys() - {head} <= known or not facts[head]:
            refuse(f"{head}=NAME with {', '.join(sorted(known))}", line, number)
        numbers = {"Level": "1" if head == "AggregatedBlock" else "0", "BlockSize": "0"}
        numbers |= {key: facts[key] for key in numbers if key in facts}
        for key, value in numbers.items():
            if not value.isdecimal():
                refuse(f"a whole number as {key}", value, number)
        if facts[head] in groups:
            refuse("a name that was not there yet", line, number)
        shapes.add(Shape.TREE if head == "SwitchName" else Shape.BLOCK)
        groups[facts[head]] = SwitchGroup(
            name=facts[head],
            level=int(numbers["Level"]),
            nodes=expand(facts.get("Nodes", ""), source, number),
            children=expand(facts.get("Switches", ""), source, number),
            block_size=int(numbers["BlockSize"]),
        )
    if groups and not text.endswith("\n"):
        refuse("a newline at its end", text.splitlines()[-1])
    if len(shapes) > 1:
        refuse("a tree or blocks, not both", text)
    for group in groups.values():
        if lost := [child for child in group.children if child not in groups]:
            refuse(f"a line for each of the switches below {group.name}", ", ".join(lost))
    return Topology(shape=shapes.pop() if shapes else Shape.FLAT, groups=tuple(groups.values()))


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

    Nodes that the topology does not hold are left out; ``max_nodes`` may be used in all.
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
    return list(by_key((topology.leaf(node), node) for node in nodes).values())
