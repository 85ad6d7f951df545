"""A matrix of pairs as columns: who sent to whom over which rail, in which round, how fast."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import cached_property

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: what a value of this dimension is called
QUANTITIES = {"bandwidth": "bandwidth", "rate": "message rate", "time": "latency"}

#: a bandwidth of both directions at once, counted together
BOTH_WAYS = "bandwidth both ways"

_COLUMNS = ("source", "destination", "both_ways", "rail", "round", "value")


class Load(Flag):
    """How pairs were measured, as far as a bound by the rate of their link depends on it."""

    UNKNOWN = 0
    IN_TURN = auto()
    """Each message waited for the answer to the one before."""
    BOTH_AT_ONCE = auto()
    """A node sent while it received as much; the value is of one direction."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What the values of a matrix are: one quantity at one message size.

    Attributes:
        quantity: ``bandwidth``, ``bandwidth both ways``, ``latency`` or ``message rate``.
        unit: of the values; empty if unknown.
        size: message size as written; empty if unknown.
    """

    quantity: str
    unit: str
    size: str = ""

    @property
    def lower_is_better(self) -> bool:
        """Tell whether less is better."""
        return self.quantity == "latency"

    @property
    def words(self) -> str:
        """``bandwidth of 4MiB``."""
        return f"{self.quantity} of {self.size}" if self.size else self.quantity


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix:
    """Measured pairs of one kind, one row each; rows without a value are not among them.

    Attributes:
        rails: names; one empty name if no rail is named.
        source: node that sends.
        destination: node that receives.
        both_ways: the row says nothing of the direction; ``source`` and ``destination`` are two
            ends.
        round: number of the round, -1 if unknown.
        missing: what should have been measured and was not, in words.
        notes: what else is known of the values, in words.
        is_selection: these are the slowest pairs alone.
        load: how the pairs loaded their links.
    """

    nodes: tuple[str, ...]
    rails: tuple[str, ...]
    kind: Kind
    source: Numbers
    destination: Numbers
    both_ways: Flags
    rail: Numbers
    round: Numbers
    value: Values
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_selection: bool = False
    load: Load = Load.UNKNOWN
    origin: str = ""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.value)

    @cached_property
    def goodness(self) -> Values:
        """The logarithm of each value, of a latency its negative: more is better.

        A bandwidth of 0 counts as a millionth of a unit.
        """
        values = np.log(np.maximum(self.value, 1e-6))
        return -values if self.kind.lower_is_better else values

    @cached_property
    def pair_keys(self) -> Indices:
        """One number for each row, shared by all rows of the same two nodes."""
        first = np.minimum(self.source, self.destination).astype(np.int64)
        return first * len(self.nodes) + np.maximum(self.source, self.destination)

    def name_of(self, row: int) -> str:
        """Return the pair of a row: ``n1 to n7 over rail0``; ``n1 with n7`` without a direction."""
        arrow = "with" if self.both_ways[row] else "to"
        pair = f"{self.nodes[self.source[row]]} {arrow} {self.nodes[self.destination[row]]}"
        return f"{pair}{self.over(int(self.rail[row]))}"

    def over(self, rail: int) -> str:
        """Return `` over rail1``; empty if rails have no names."""
        return f" over {self.rails[rail]}" if self.rails[rail] else ""

    def names(self, numbers: Indices | Numbers) -> tuple[str, ...]:
        """Return the names of nodes."""
        return tuple(self.nodes[at] for at in numbers.tolist())

    @cached_property
    def seen(self) -> Flags:
        """Which nodes have a value."""
        seen = np.zeros(len(self.nodes), dtype=bool)
        seen[self.source] = seen[self.destination] = True
        return seen

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Nodes that have no value at all."""
        return self.names(np.flatnonzero(~self.seen))

    def rows(self, chosen: Flags | Indices) -> Matrix:
        """Return the matrix of some rows only."""
        if chosen.dtype == np.bool_ and chosen.all():
            return self
        return replace(self, **{name: getattr(self, name)[chosen] for name in _COLUMNS})

    def look_keys(self, *, with_round: bool = False) -> Indices:
        """Return for each row a number that rows of one pair, direction and rail share."""
        way = self.source.astype(np.int64) * len(self.nodes) + self.destination
        key: Indices = (
            np.where(self.both_ways, self.pair_keys, way) if self.both_ways.any() else way
        )
        key = (key * len(self.rails) + self.rail) * 2 + self.both_ways
        if with_round and len(self):
            rounds = self.round.astype(np.int64) - int(self.round.min())
            key = key * (int(rounds.max()) + 1) + rounds
        return np.asarray(key, dtype=np.int64)

    def without_repeats(self) -> Matrix:
        """Return one row for rows of the same pair, rail, direction and round: their median.

        Of an even number it is the better of the two in the middle: a pair that was good once in
        two looks is not slow.
        """
        key = self.look_keys(with_round=True)
        import polars as pl  # noqa: PLC0415 - start-up time of reframe -l

        if pl.Series(key).n_unique() == len(key):  # six times faster than to sort
            return self
        order = np.lexsort((self.goodness, key))
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        again = len(key) - len(starts)
        counts = np.diff(starts, append=len(key))
        note = f"{again} rows repeat another: the median counts, of two the better one"
        return replace(self.rows(order[starts + counts // 2]), notes=(*self.notes, note))
