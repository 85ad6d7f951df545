"""A matrix of pairs as columns: who sent to whom over which rail, in which round, how fast."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Flag, auto
from functools import cached_property

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int32]
Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: what a value of this dimension is called
QUANTITIES = {"bandwidth": "bandwidth", "rate": "message rate", "time": "latency"}

#: a bandwidth of which what goes both ways at once is counted together, where others are one way
BOTH_WAYS = "bandwidth both ways"


class Load(Flag):
    """How pairs were measured, as far as a bound by the rate of their link depends on it."""

    UNKNOWN = 0
    IN_TURN = auto()
    """Each message waited for the answer to the one before."""
    BOTH_AT_ONCE = auto()
    """A node sent while it received as much; the value is of one direction."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Rows that may be held against each other: one quantity at one message size.

    Attributes:
        quantity: ``bandwidth``, ``bandwidth both ways``, ``latency`` or ``message rate``.
        unit: of the values; empty where nobody said.
        size: message size as written; empty where none is.
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
    """Measured pairs, one row each; rows without a value are not among them.

    Attributes:
        rails: names; one empty name where no rail is named.
        source: node that sends.
        destination: node that receives.
        both_ways: True where the row says nothing of the direction; then ``source`` and
            ``destination`` are two ends.
        round: number of the round, -1 where none is named.
        kind: number of the kind.
        num_empty: pairs that were named without a value.
        num_self: rows of a node with itself, left out.
        num_repeated: rows that repeat another; of repeated rows the median is taken.
        missing: what the program that measured them should have printed and did not, in words.
        notes: what else is known of the values, in words.
        is_selection: these are the slowest pairs alone: nothing is told of the others.
        load: how the pairs loaded their links, where the program that measured them tells.
    """

    nodes: tuple[str, ...]
    rails: tuple[str, ...]
    kinds: tuple[Kind, ...]
    source: Indices
    destination: Indices
    both_ways: Flags
    rail: Indices
    round: Indices
    kind: Indices
    value: Values
    num_empty: int = 0
    num_self: int = 0
    num_repeated: int = 0
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_selection: bool = False
    load: Load = Load.UNKNOWN
    origin: str = field(default="")

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.value)

    @cached_property
    def goodness(self) -> Values:
        """The logarithm of each value, of a latency its negative: more is better.

        A bandwidth of 0 counts as a millionth of a unit.
        """
        values = np.log(np.maximum(self.value, 1e-6))
        for number, kind in enumerate(self.kinds):
            if kind.lower_is_better:
                if len(self.kinds) == 1:
                    return -values
                of_kind = self.kind == number
                values[of_kind] = -values[of_kind]
        return values

    def name_of(self, row: int) -> str:
        """Return the pair of a row: ``n1 to n7``, ``n1 with n7`` where it names no direction."""
        arrow = "with" if self.both_ways[row] else "to"
        return f"{self.nodes[self.source[row]]} {arrow} {self.nodes[self.destination[row]]}"

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Nodes that are named and have no value at all."""
        seen = np.zeros(len(self.nodes), dtype=bool)
        seen[self.source] = True
        seen[self.destination] = True
        return tuple(self.nodes[number] for number in np.flatnonzero(~seen))

    def rows(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Matrix:
        """Return the matrix of some rows only."""
        columns = ("source", "destination", "both_ways", "rail", "round", "kind", "value")
        return replace(self, **{name: getattr(self, name)[chosen] for name in columns})

    def look_keys(self, *, with_round: bool = True) -> npt.NDArray[np.int64]:
        """Return for each row a number that rows of one pair, direction, rail and kind share."""
        low = np.where(self.both_ways, np.minimum(self.source, self.destination), self.source)
        high = np.where(self.both_ways, np.maximum(self.source, self.destination), self.destination)
        rounds = self.round.astype(np.int64) - (int(self.round.min()) if len(self) else 0)
        key = low.astype(np.int64)
        for part, count in (
            (high, len(self.nodes)),
            (self.rail, len(self.rails)),
            (self.both_ways, 2),
            (rounds if with_round else np.zeros_like(rounds), int(rounds.max(initial=0)) + 1),
            (self.kind, len(self.kinds)),
        ):
            key = key * count + part
        return key

    def without_repeats(self) -> Matrix:
        """Return one row for rows of the same pair, rail, direction, round and kind.

        It is their median, of an even number the better of the two in the middle: a pair that was
        good once in two looks is not slow.
        """
        key = self.look_keys()
        import polars as pl  # noqa: PLC0415 - start-up time of reframe -l

        unique = pl.Series(key).n_unique() if len(key) else 0
        if unique == len(key):
            return self
        goodness = self.goodness
        order = np.lexsort((goodness, key))
        _, starts, counts = np.unique(key[order], return_index=True, return_counts=True)
        kept = self.rows(order[starts + counts // 2])
        return replace(kept, num_repeated=len(key) - unique)
