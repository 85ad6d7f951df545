"""Who can be at fault for low pairs, and how many of a suspect's rows are low.

A suspect is a node, one rail of it, its transmit or receive side, a leaf or its way to the others,
or a round (others' traffic at one time: nobody's fault).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.matrix import Flags, Indices, Matrix, Numbers, Values

#: the side of a row at one of its ends: it says nothing of the direction, or both ends are on one
#: leaf
TRANSMIT, RECEIVE, EITHER, INSIDE = range(4)

#: all rails, or all sides
ALL = -1


class SuspectKind(StrEnum):
    """What may be at fault."""

    NODE = "node"
    RAIL = "rail"
    LEAF = "leaf"
    UPLINK = "uplink"
    PAIR = "pair"
    ROUND = "round"


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """One that may be at fault; numbers are those of the matrix.

    Attributes:
        kind: NODE, also for one rail of it; LEAF or ROUND.
        rail: number or ALL.
        side: TRANSMIT, RECEIVE or ALL.
        across: of a leaf, whether only pairs with other leaves are meant.
    """

    kind: SuspectKind
    number: int
    rail: int = ALL
    side: int = ALL
    across: bool = False

    @property
    def place(self) -> tuple[SuspectKind, int]:
        """What it is, whichever of its parts: suspects of one place do not compete."""
        return self.kind, self.number

    @property
    def columns(self) -> list[int]:
        """The sides of rows that it would make low."""
        if self.side != ALL:
            return [self.side, EITHER]
        every = [TRANSMIT, RECEIVE, EITHER]
        return every if self.kind is SuspectKind.NODE or self.across else [*every, INSIDE]

    def rows(self, matrix: Matrix, leaves: Leaves | None) -> Flags:
        """Tell which rows the suspect would make low."""
        if self.kind is SuspectKind.ROUND:
            return np.asarray(matrix.round == self.number)
        first: Numbers | Indices = matrix.source
        second: Numbers | Indices = matrix.destination
        counts: Flags = np.ones(len(matrix), dtype=bool)
        if self.kind is SuspectKind.LEAF:
            assert leaves is not None, "a leaf is suspect if leaves are known"
            first, second = leaves.leaf_of[first], leaves.leaf_of[second]
            if self.across:
                counts = np.asarray(first != second)
        sends, receives = first == self.number, second == self.number
        if self.side == TRANSMIT:
            counts &= sends | (receives & matrix.both_ways)
        elif self.side == RECEIVE:
            counts &= receives | (sends & matrix.both_ways)
        else:
            counts &= sends | receives
        return counts if self.rail == ALL else counts & (matrix.rail == self.rail)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sheet:
    """Suspects of one sort: rows measured and low of each, by number, or by number and rail."""

    example: Suspect
    measured: Values
    low: Values

    def suspect_at(self, index: int) -> Suspect:
        """Return the suspect at a flat index."""
        if self.low.ndim == 1:
            return replace(self.example, number=index)
        number, rail = divmod(index, self.low.shape[1])
        return replace(self.example, number=number, rail=rail)


class Tally:
    """Counts of rows by place, rail and side, corrected as rows are explained."""

    def __init__(self, matrix: Matrix, leaves: Leaves | None) -> None:
        self._matrix, self._leaves = matrix, leaves
        sides = len(matrix.rails), 4
        self.nodes = np.zeros((len(matrix.nodes), *sides))
        self.leaves = np.zeros((leaves.num_leaves if leaves else 0, *sides))
        self.rounds = np.zeros(int(matrix.round.max(initial=-1)) + 1)

    def add(self, rows: Flags | Indices, sign: int = 1) -> None:
        """Count ``rows``, or with ``sign`` -1 take them back."""
        every = self._matrix
        source, destination, rail = every.source[rows], every.destination[rows], every.rail[rows]
        both = every.both_ways[rows]
        sends, receives = np.where(both, EITHER, TRANSMIT), np.where(both, EITHER, RECEIVE)
        _count(self.nodes, sign, source, rail, sends)
        _count(self.nodes, sign, destination, rail, receives)
        if len(self.rounds):
            rounds = every.round[rows]
            _count(self.rounds, sign, rounds[rounds >= 0])
        if self._leaves is not None:
            first, second = self._leaves.leaf_of[source], self._leaves.leaf_of[destination]
            across = first != second
            _count(self.leaves, sign, first, rail, np.where(across, sends, INSIDE))
            _count(self.leaves, sign, second[across], rail[across], receives[across])

    def of(self, suspect: Suspect) -> float:
        """Return how many counted rows a suspect would make low."""
        if suspect.kind is SuspectKind.ROUND:
            return float(self.rounds[suspect.number])
        cells = self.nodes if suspect.kind is SuspectKind.NODE else self.leaves
        cells = cells[suspect.number][:, suspect.columns]
        return float((cells if suspect.rail == ALL else cells[suspect.rail]).sum())


def _count(into: Values, sign: int, *at: Numbers | Indices) -> None:
    flat = np.ravel_multi_index(at, into.shape) if len(at) > 1 else at[0]
    if len(flat) * 20 < into.size:
        np.add.at(into.reshape(-1), flat, sign)
    else:
        into += sign * np.bincount(flat, minlength=into.size).reshape(into.shape)


#: the sorts of suspects of a place; of equally good ones the first is taken
_SORTS = {
    SuspectKind.NODE: [
        Suspect(kind=SuspectKind.NODE, number=0, side=side) for side in (ALL, TRANSMIT, RECEIVE)
    ],
    SuspectKind.LEAF: [
        *(
            Suspect(kind=SuspectKind.LEAF, number=0, side=side, across=True)
            for side in (ALL, TRANSMIT, RECEIVE)
        ),
        Suspect(kind=SuspectKind.LEAF, number=0),
    ],
}


def sheets(measured: Tally, low: Tally) -> Iterator[Sheet]:
    """Yield all suspects, sort by sort: those over all rails before those over one."""
    for kind, sorts in _SORTS.items():
        of_kind = [
            each.nodes if kind is SuspectKind.NODE else each.leaves for each in (measured, low)
        ]
        if not len(of_kind[0]):
            continue
        single = []
        for example in sorts:
            cells = [each[..., example.columns].sum(axis=-1) for each in of_kind]
            single.append(Sheet(example=example, measured=cells[0], low=cells[1]))
        if of_kind[0].shape[1] > 1:
            for each in single:
                over_all = each.measured.sum(axis=-1), each.low.sum(axis=-1)
                yield replace(each, measured=over_all[0], low=over_all[1])
        yield from single
    if len(measured.rounds):
        example = Suspect(kind=SuspectKind.ROUND, number=0)
        yield Sheet(example=example, measured=measured.rounds, low=low.rounds)
