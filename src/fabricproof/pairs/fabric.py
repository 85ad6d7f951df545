"""Where the nodes hang: the leaf switch of each."""

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
    """The leaf of each node."""

    names: tuple[str, ...]
    leaf_of: Indices

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

    def places(self, size: int) -> Indices:
        """Return the node number at (leaf, slot), -1 where nobody is."""
        starts = np.cumsum(self.sizes) - self.sizes
        leaf = self.leaf_of[self.by_leaf]
        found = np.full((self.num_leaves, size), -1, dtype=np.int64)
        found[leaf, np.arange(self.num_nodes) - starts[leaf]] = self.by_leaf
        return found

    def crosses(self, source: AnyIndices, destination: AnyIndices) -> npt.NDArray[np.bool_]:
        """Tell of which flows the ends hang on unlike leaves."""
        return np.asarray(self.leaf_of[source] != self.leaf_of[destination])


def leaves_of(num_nodes: int, per_leaf: int) -> Leaves:
    """Return ``num_nodes`` nodes in order on leaves of ``per_leaf``; the last may be smaller."""
    leaf_of = np.arange(num_nodes, dtype=np.int64) // per_leaf
    names = tuple(f"leaf{number}" for number in range(int(leaf_of[-1]) + 1))
    return Leaves(names=names, leaf_of=leaf_of)


def leaves_by_name(nodes: Sequence[str], leaf_of: Mapping[str, str]) -> Leaves:
    """Return the leaves of ``nodes``, in their order."""
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
        names=names, leaf_of=np.array([number[leaf_of[node]] for node in nodes], dtype=np.int64)
    )
