"""Who measures with whom in which round: circle, leaf-wise and random orders.

Every order is a 1-factorisation: each pair stands in one round and only one, and nobody stands
twice in a round.  Rounds are made one at a time, so that 100,000 nodes cost memory for one round.

The circle method is Kirkman's (1847), the order of LinkTest.  The leaf-wise order is a circle over
leaves; within a pair of leaves, shift ``c`` pairs node i of one with node ``(c - i) mod K`` of the
other, so that all of a leaf's traffic in a round goes to one other leaf, and to each of its nodes
once: with static routing by destination no link between switches carries two flows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fabricproof.core.errors import ConfigError
from fabricproof.pairs.fabric import Leaves

Indices = npt.NDArray[np.int64]

#: A leaf-wise order over unequal leaves leaves out the places that nobody holds.  Where it would
#: take this many times the least number of rounds, a circle in the order of the leaves is taken.
MOST_ROUNDS_OVER_LEAST = 1.1


class Order(StrEnum):
    """The orders of rounds."""

    LEAFWISE = "leafwise"
    CIRCLE = "circle"
    RANDOM = "random"


def least_rounds(num_nodes: int) -> int:
    """Return the fewest rounds in which all pairs of ``num_nodes`` nodes meet once."""
    return max(num_nodes - 1 + num_nodes % 2, 0) if num_nodes > 1 else 0


def circle_round(num: int, number: int) -> Indices:
    """Return round ``number`` of the circle method over ``num`` places, as an array of pairs.

    With odd ``num`` one place has a bye: in round r, place r.

    ``number``: from 0, below :func:`least_rounds`.
    """
    turns = num - 1 + num % 2
    offsets = np.arange(1, (turns + 1) // 2)
    first, second = (number + offsets) % turns, (number - offsets) % turns
    pairs = np.stack([first, second], axis=1)
    if num % 2 == 0:
        pairs = np.concatenate([[[number % turns, turns]], pairs])
    return pairs.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Rounds in which each pair of nodes meets once.

    Attributes:
        leaves: where the nodes hang; of circle and random orders only the number counts.
    """

    order: Order
    leaves: Leaves
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse fewer than two nodes."""
        if self.leaves.num_nodes < 2:
            raise ConfigError(
                "no pair can be made", expected="two nodes or more", got=str(self.leaves.num_nodes)
            )

    @property
    def is_leafwise(self) -> bool:
        """Tell whether rounds go leaf by leaf; False where unequal leaves would cost too many."""
        least = least_rounds(self.leaves.num_nodes)
        return (
            self.order is Order.LEAFWISE
            and self.leaves.num_leaves > 1
            and self._grid.num_rounds <= MOST_ROUNDS_OVER_LEAST * least
        )

    @property
    def num_rounds(self) -> int:
        """Number of rounds: the least, or where leaf-wise has to, a few more."""
        return self._grid.num_rounds if self.is_leafwise else least_rounds(self.leaves.num_nodes)

    @property
    def num_cross_rounds(self) -> int:
        """Number of the first rounds, in which a leaf-wise order has pairs between leaves."""
        return self._grid.num_cross if self.is_leafwise else self.num_rounds

    def round(self, number: int) -> Indices:
        """Return the pairs of round ``number`` as an array of shape (pairs, 2) of node numbers."""
        if not 0 <= number < self.num_rounds:
            raise IndexError(number)
        if self.is_leafwise:
            return self._grid.round(number)
        num = self.leaves.num_nodes
        if self.order is Order.RANDOM:
            places, turns = self._shuffled
            return places[circle_round(num, int(turns[number]))]
        return self.leaves.by_leaf[circle_round(num, number)]

    def rounds(self) -> Iterator[Indices]:
        """Yield all rounds, one at a time."""
        for number in range(self.num_rounds):
            yield self.round(number)

    @cached_property
    def _shuffled(self) -> tuple[Indices, Indices]:
        random = np.random.default_rng(self.seed)
        num = self.leaves.num_nodes
        return random.permutation(num), random.permutation(least_rounds(num))

    @cached_property
    def _grid(self) -> _Grid:
        return _Grid(self.leaves)


class _Grid:
    """The leaf-wise order over places (leaf, slot); a place that nobody holds is a hole.

    With an even number of leaves: a circle over leaves times K shifts, then circles inside all
    leaves at once.  Where K is odd each inner round leaves one node a leaf idle; the last cross
    round is dealt out over these, so that N-1 rounds suffice.  With an odd number of leaves the
    leaf that has a bye works inside itself, and no inner rounds are left over.
    """

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self.size = int(leaves.sizes.max())
        self.places = leaves.places(self.size)
        self.turns = least_rounds(leaves.num_leaves)
        self.is_dealt = leaves.num_leaves % 2 == 0 and self.size % 2 == 1 and self.size > 1

    @property
    def num_cross(self) -> int:
        return self.turns * self.size - self.is_dealt

    @property
    def num_rounds(self) -> int:
        cross = self.turns * self.size
        if self.leaves.num_leaves % 2:
            return cross
        return cross + least_rounds(self.size) - self.is_dealt

    def round(self, number: int) -> Indices:
        if number >= self.num_cross:
            return self._inside_all(number - self.num_cross)
        turn, shift = divmod(number, self.size)
        parts = [self._between(turn, shift)]
        if self.leaves.num_leaves % 2 and shift < least_rounds(self.size):
            inner = circle_round(self.size, shift)
            parts.append(self.places[turn][inner])
        return self._held(np.concatenate(parts))

    def _between(self, turn: int, shift: int) -> Indices:
        """Return the pairs between leaves in a turn of the circle over leaves."""
        pairs = circle_round(self.leaves.num_leaves, turn)
        slots = np.arange(self.size)
        first = self.places[pairs[:, 0]]
        second = self.places[pairs[:, 1]][:, (shift - slots) % self.size]
        return np.stack([first.ravel(), second.ravel()], axis=1)

    def _inside_all(self, turn: int) -> Indices:
        """Return an inner round of every leaf, with the pairs of idle nodes that it can take."""
        inner = circle_round(self.size, turn)
        if not self.is_dealt:
            both = self.places[:, inner]
            return self._held(both.reshape(-1, 2))
        # Of each two leaves of the last turn, one runs its circle mirrored: then slot ``turn`` is
        # idle in one and slot ``shift - turn`` in the other, which are a pair of the round saved.
        shift = self.size - 1
        pairs = circle_round(self.leaves.num_leaves, self.turns - 1)
        mirrored = (shift - inner) % self.size
        idle = np.stack(
            [
                self.places[pairs[:, 0], turn],
                self.places[pairs[:, 1], (shift - turn) % self.size],
            ],
            axis=1,
        )
        parts = [
            self.places[pairs[:, 0]][:, inner].reshape(-1, 2),
            self.places[pairs[:, 1]][:, mirrored].reshape(-1, 2),
            idle,
        ]
        return self._held(np.concatenate(parts))

    @staticmethod
    def _held(pairs: Indices) -> Indices:
        """Leave out the pairs of a hole: its partner has a bye."""
        return pairs[(pairs >= 0).all(axis=1)]
