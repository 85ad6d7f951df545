"""Who can be at fault for low pairs, and how many of a suspect's pairs are low.

A suspect is a node, one rail of it, its transmit or receive side, a leaf or its way to the others,
or a round (others' traffic at one time: nobody's fault).  Counts are kept
for all suspects at once and corrected as rows are explained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from fabricproof.pairs.fabric import Leaves

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Values = npt.NDArray[np.float64]

#: sides of a row at one of its ends
TRANSMIT, RECEIVE, EITHER = 0, 1, 2

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


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Rows of a matrix, each low or not.

    Attributes:
        both_ways: whether the row says nothing of the direction.
        round: number, -1 where none is named.
        low: whether the value is below what a healthy pair has, and no load explains it.
        like: number of those it was held against; the rate of chance is that of its like.
    """

    source: npt.NDArray[np.int32]
    destination: npt.NDArray[np.int32]
    both_ways: Flags
    rail: npt.NDArray[np.int32]
    round: npt.NDArray[np.int32]
    low: Flags
    like: npt.NDArray[np.int32]
    num_nodes: int
    num_rails: int
    leaves: Leaves | None = None


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """One that may be at fault; numbers are those of the evidence, ALL where it is all of them.

    Attributes:
        kind: NODE also for one rail of it; LEAF or ROUND.
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

    def rows(self, evidence: Evidence) -> Flags:
        """Tell which rows the suspect would make low."""
        if self.kind is SuspectKind.ROUND:
            return np.asarray(evidence.round == self.number)
        at_source, at_destination = self._ends(evidence)
        if self.side == TRANSMIT:
            found = at_source | (at_destination & evidence.both_ways)
        elif self.side == RECEIVE:
            found = at_destination | (at_source & evidence.both_ways)
        else:
            found = at_source | at_destination
        return found if self.rail == ALL else found & (evidence.rail == self.rail)

    def _ends(self, evidence: Evidence) -> tuple[Flags, Flags]:
        source, destination = evidence.source, evidence.destination
        if self.kind is SuspectKind.NODE:
            return source == self.number, destination == self.number
        assert evidence.leaves is not None
        leaves = evidence.leaves
        first, second = leaves.leaf_of[source], leaves.leaf_of[destination]
        from_here, to_here = first == self.number, second == self.number
        if not self.across:
            return from_here, to_here
        return from_here & (first != second), to_here & (first != second)


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """All suspects of one sort: ``suspect_at`` makes the one at a flat index."""

    kind: SuspectKind
    measured: Values
    low: Values
    shape: tuple[int, ...]
    rail: bool = False
    side: int = ALL
    across: bool = False

    def suspect_at(self, index: int) -> Suspect:
        """Return the suspect at flat ``index``."""
        at = [int(each) for each in np.unravel_index(index, self.shape)]
        return Suspect(
            kind=self.kind,
            number=at[0],
            rail=at[-1] if self.rail else ALL,
            side=self.side,
            across=self.across,
        )


class Tally:
    """Counts of rows by end: of nodes by rail and side, of leaves and rounds."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        num_leaves = 0 if evidence.leaves is None else evidence.leaves.num_leaves
        rails = evidence.num_rails
        self.nodes = np.zeros((evidence.num_nodes, rails, 3))
        self.across = np.zeros((num_leaves, rails, 3))
        self.inside = np.zeros((num_leaves, rails))
        self.rounds = np.zeros(int(evidence.round.max(initial=-1)) + 1)

    def add(self, rows: Flags | Indices, sign: int = 1) -> None:
        """Count ``rows``, or with ``sign`` -1 take them back."""
        every = self._evidence
        source, destination = every.source[rows], every.destination[rows]
        rail, both = every.rail[rows], every.both_ways[rows]
        sides = (np.where(both, EITHER, TRANSMIT), np.where(both, EITHER, RECEIVE))
        for node, side in zip((source, destination), sides, strict=True):
            _count(self.nodes, sign, node, rail, side)
        if len(self.rounds):
            rounds = every.round[rows]
            _count(self.rounds, sign, rounds[rounds >= 0])
        if every.leaves is not None:
            first, second = every.leaves.leaf_of[source], every.leaves.leaf_of[destination]
            across = first != second
            _count(self.inside, sign, first[~across], rail[~across])
            for leaf, side in zip((first, second), sides, strict=True):
                _count(self.across, sign, leaf[across], rail[across], side[across])

    def of(self, suspect: Suspect) -> float:
        """Return how many counted rows a suspect would make low."""
        rail = slice(None) if suspect.rail == ALL else suspect.rail
        at = suspect.number
        if suspect.kind is SuspectKind.ROUND:
            return float(self.rounds[at])
        if suspect.kind is SuspectKind.NODE:
            return float(_of_side(self.nodes[at, rail], suspect.side).sum())
        inside = 0.0 if suspect.across else float(self.inside[at, rail].sum())
        return float(_of_side(self.across[at, rail], suspect.side).sum()) + inside


def _count(into: Values, sign: int, *at: npt.NDArray[np.integer]) -> None:
    flat = np.ravel_multi_index(at, into.shape) if len(at) > 1 else at[0]
    if len(flat) * 20 < into.size:
        np.add.at(into.reshape(-1), flat, sign)
    else:
        into += sign * np.bincount(flat, minlength=into.size).reshape(into.shape)


def _of_side(cells: Values, side: int) -> Values:
    """Sum over the last axis: all rows, or those in which this side takes part."""
    if side == ALL:
        return np.asarray(cells.sum(axis=-1))
    return np.asarray(cells[..., side] + cells[..., EITHER])


def families(measured: Tally, low: Tally) -> Iterator[Family]:
    """Yield all suspects, sort by sort; of equally good ones the first is to be taken."""
    for side in (ALL, TRANSMIT, RECEIVE):
        of_side, low_of_side = _of_side(measured.nodes, side), _of_side(low.nodes, side)
        yield _family(SuspectKind.NODE, of_side, low_of_side, side=side)
    for side in (ALL, TRANSMIT, RECEIVE):
        of_side, low_of_side = _of_side(measured.across, side), _of_side(low.across, side)
        yield _family(SuspectKind.LEAF, of_side, low_of_side, side=side, across=True)
    if len(measured.inside):
        yield _family(
            SuspectKind.LEAF,
            measured.inside + _of_side(measured.across, ALL),
            low.inside + _of_side(low.across, ALL),
        )
    if len(measured.rounds):
        yield Family(
            kind=SuspectKind.ROUND,
            measured=measured.rounds,
            low=low.rounds,
            shape=measured.rounds.shape,
        )


def _family(
    kind: SuspectKind, measured: Values, low: Values, *, side: int = ALL, across: bool = False
) -> Family:
    return Family(
        kind=kind, measured=measured, low=low, shape=measured.shape, rail=True, side=side,
        across=across,
    )  # fmt: skip


def over_rails(family: Family) -> Family | None:
    """Return the same suspects over all rails together; None where that is nothing else."""
    if not family.rail or family.shape[-1] < 2:
        return None
    return Family(
        kind=family.kind,
        measured=np.asarray(family.measured.sum(axis=-1)),
        low=np.asarray(family.low.sum(axis=-1)),
        shape=family.shape[:-1],
        side=family.side,
        across=family.across,
    )


#: part of the rows of a suspect that has to be low for it to be blamed.  Of a leaf it is more: a
#: few bad nodes on it are no bad leaf.
LEAST_PART = {
    SuspectKind.NODE: 0.6,
    SuspectKind.LEAF: 0.8,
    SuspectKind.ROUND: 0.6,
}


def all_families(measured: Tally, low: Tally) -> list[Family]:
    """Return all sorts of suspects, those over all rails before those of one."""
    single = list(families(measured, low))
    summed = [family for each in single if (family := over_rails(each)) is not None]
    nodes = [each for each in (*summed, *single) if each.kind is SuspectKind.NODE]
    return [*nodes, *(each for each in (*summed, *single) if each.kind is not SuspectKind.NODE)]
