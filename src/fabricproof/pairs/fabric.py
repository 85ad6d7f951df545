"""Where the nodes hang, the way of a pair through leaves and spines, and the load of each link.

The model is a two-level tree with static routing by destination: what goes to the i-th node of a
leaf takes spine ``i mod S`` (d-mod-k, Zahavi 2012; OpenSM's ``ftree`` and ``updn`` do the like).
With adaptive routing nobody knows the spine: then ``num_spines`` is 0 and links have no names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fabricproof.core.errors import ConfigError
from fabricproof.core.units import counted, first_few, natural

Indices = npt.NDArray[np.int64]
AnyIndices = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Leaves:
    """The leaf of each node, and the spines above.

    Attributes:
        leaf_of: node number -> leaf number.
        num_spines: spines that each leaf has one uplink to, in each direction; 0: not known, or
            the routing is adaptive.
    """

    names: tuple[str, ...]
    leaf_of: Indices
    num_spines: int = 0

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.leaf_of)

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return len(self.names)

    @cached_property
    def sizes(self) -> Indices:
        """Nodes of each leaf."""
        return np.bincount(self.leaf_of, minlength=self.num_leaves)

    @cached_property
    def by_leaf(self) -> Indices:
        """Node numbers in the order of their leaves."""
        return np.argsort(self.leaf_of, kind="stable")

    @cached_property
    def slot_of(self) -> Indices:
        """Each node's place within its leaf, from 0."""
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        slots = np.empty(self.num_nodes, dtype=np.int64)
        slots[self.by_leaf] = np.arange(self.num_nodes) - np.repeat(starts, self.sizes)
        return slots

    def places(self, size: int) -> Indices:
        """Return the node number at (leaf, slot), -1 where nobody is."""
        found = np.full((self.num_leaves, size), -1, dtype=np.int64)
        found[self.leaf_of, self.slot_of] = np.arange(self.num_nodes)
        return found

    def spine(self, destination: AnyIndices) -> Indices:
        """Return the spine that traffic to each destination takes; needs ``num_spines``."""
        return self.slot_of[destination] % max(self.num_spines, 1)

    def crosses(self, source: AnyIndices, destination: AnyIndices) -> npt.NDArray[np.bool_]:
        """Tell of which flows the ends hang on unlike leaves."""
        return np.asarray(self.leaf_of[source] != self.leaf_of[destination])


#: of spines, and of nodes on a leaf: more than any network has
MOST = 1_000_000


def _check_spines(num_spines: int) -> None:
    if not 0 <= num_spines <= MOST:
        raise ConfigError("impossible spines", expected=f"0 to {MOST}", got=str(num_spines))


def leaves_of(num_nodes: int, per_leaf: int, num_spines: int = 0) -> Leaves:
    """Return ``num_nodes`` nodes in order on leaves of ``per_leaf``; the last may be smaller.

    Raises:
        ConfigError: a number that cannot be.
    """
    _check_spines(num_spines)
    if num_nodes < 1 or not 1 <= per_leaf <= MOST:
        raise ConfigError(
            "impossible leaves",
            expected=f"one node or more, and on a leaf 1 to {MOST}",
            got=f"{num_nodes} nodes, {per_leaf} a leaf, {num_spines} spines",
        )
    leaf_of = np.arange(num_nodes, dtype=np.int64) // per_leaf
    names = tuple(f"leaf{number}" for number in range(int(leaf_of[-1]) + 1))
    return Leaves(names=names, leaf_of=leaf_of, num_spines=num_spines)


def leaves_by_name(nodes: Sequence[str], leaf_of: Mapping[str, str], num_spines: int = 0) -> Leaves:
    """Return the leaves of ``nodes``, in their order.

    Raises:
        ConfigError: a node has no leaf.
    """
    _check_spines(num_spines)
    absent = [node for node in nodes if node not in leaf_of]
    if absent:
        raise ConfigError(
            f"{counted(len(absent), 'node')} without a leaf",
            expected="every node of the matrix on a leaf",
            got=first_few(absent, 5),
        )
    names = tuple(sorted({leaf_of[node] for node in nodes}, key=natural))
    number = {name: index for index, name in enumerate(names)}
    return Leaves(
        names=names,
        leaf_of=np.array([number[leaf_of[node]] for node in nodes], dtype=np.int64),
        num_spines=num_spines,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Loads:
    """Flows on every directed link in one round.

    Attributes:
        transmit: node to leaf, by node.
        receive: leaf to node, by node.
        up: leaf to spine, shape (leaves, spines).
        down: spine to leaf, shape (leaves, spines).
    """

    transmit: Indices
    receive: Indices
    up: Indices
    down: Indices

    @property
    def most_between_switches(self) -> int:
        """Flows on the busiest link between two switches."""
        return int(max(self.up.max(initial=0), self.down.max(initial=0)))


def _flows(pairs: Indices, *, both_ways: bool) -> tuple[Indices, Indices]:
    if not both_ways:
        return pairs[:, 0], pairs[:, 1]
    return np.concatenate([pairs[:, 0], pairs[:, 1]]), np.concatenate([pairs[:, 1], pairs[:, 0]])


def loads_of(pairs: Indices, leaves: Leaves, *, both_ways: bool = True) -> Loads:
    """Return the flows on every directed link when ``pairs`` measure at once.

    Args:
        pairs: shape (pairs, 2) of node numbers.
        leaves: with the number of spines; without, all uplinks of a leaf count as one.
        both_ways: each pair sends in both directions at once; else the first to the second.
    """
    source, destination = _flows(pairs, both_ways=both_ways)
    num, spines = leaves.num_nodes, max(leaves.num_spines, 1)
    crossing = leaves.crosses(source, destination)
    spine = leaves.spine(destination)[crossing]
    shape = (leaves.num_leaves, spines)

    def count(leaf: Indices) -> Indices:
        return np.bincount(leaf * spines + spine, minlength=shape[0] * spines).reshape(shape)

    return Loads(
        transmit=np.bincount(source, minlength=num),
        receive=np.bincount(destination, minlength=num),
        up=count(leaves.leaf_of[source[crossing]]),
        down=count(leaves.leaf_of[destination[crossing]]),
    )


def load_of_flows(
    source: AnyIndices, destination: AnyIndices, loads: Loads, leaves: Leaves
) -> Indices:
    """Return the flows on the busiest link of each flow's way, itself included."""
    found = np.maximum(loads.transmit[source], loads.receive[destination])
    if leaves.num_spines == 0:
        return found
    spine = leaves.spine(destination)
    between = np.maximum(
        loads.up[leaves.leaf_of[source], spine], loads.down[leaves.leaf_of[destination], spine]
    )
    return np.where(leaves.crosses(source, destination), np.maximum(found, between), found)


def spread_of_flows(
    source: AnyIndices, destination: AnyIndices, loads: Loads, leaves: Leaves
) -> npt.NDArray[np.float64]:
    """Return the flows of each uplink on the way of each flow, were all uplinks of a leaf one.

    So it is where routing spreads flows (adaptive routing, link aggregation), and 1 at least.
    """
    up, down = (each.sum(axis=1) / max(leaves.num_spines, 1) for each in (loads.up, loads.down))
    between = np.maximum(up[leaves.leaf_of[source]], down[leaves.leaf_of[destination]])
    found = np.where(leaves.crosses(source, destination), between, 1.0)
    return np.asarray(np.maximum(found, 1.0), dtype=np.float64)
