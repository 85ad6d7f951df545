"""What makes two numbers comparable, a run, a matrix of both, and the columns that hold them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from fabricproof.core.provenance import LegPlace
from fabricproof.history.late import LateLibrary

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    Values = npt.NDArray[np.float64]
else:
    np, pl = LateLibrary("numpy"), LateLibrary("polars")

#: what a number is of, also in the record of a program that printed nothing: that has no unit, no
#: setting and no message size, and no nodes where nobody saw a rank
HOME: tuple[str, ...] = (
    "partition", "fabric", "stack", "program", "check", "leg", "quantity",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Key(LegPlace):
    """Everything in which two numbers must agree before they are compared.

    Attributes:
        quantity: ``bandwidth_4MiB``.
        unit: ``MB/s``, ``us``, ``x``, ``1/s``.
        message_size: in bytes; None for a quantity without one.
        better: 1 where more is better, -1 where less is, 0 where neither (a state, a count).
        named: whether it is one of the quantities that carry a verdict, or a point of a curve.
    """

    site: str
    quantity: str
    unit: str
    message_size: int | None = None
    better: int = 0
    named: bool = True

    @property
    def home(self) -> tuple[str, ...]:
        """Its fields of :data:`HOME`."""
        return tuple(getattr(self, name) for name in HOME)

    @property
    def label(self) -> str:
        """One line for a person: program, leg, quantity, stack, pair."""
        return f"{self.stack} {self.program} {self.leg} {self.quantity} {self.pair}"


#: the columns that make a key, in order.
FIELDS: tuple[str, ...] = tuple(dict.fromkeys(("site", *(each.name for each in fields(Key)))))


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the checks.

    Attributes:
        run_id: its beginning in UTC and six digits, ``20261121T213422Z-1a6c68``.
        start: its beginning, UTC.
        inventory: node to the digest of what it was made of; None where nobody saw it, or where
            it changed within the run.
        builds: stack to the digest of its identity.
        rows: how many quantities it has in the records.
        legs: verdict word -> how many legs have it in the records; a leg that left none is not
            counted, so that this is no verdict of the run.
    """

    run_id: str
    start: datetime.datetime
    inventory: Mapping[str, str | None] = field(default_factory=dict)
    builds: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0
    legs: Mapping[str, int] = field(default_factory=dict)

    @property
    def named(self) -> dict[str, Any]:
        """What names it in a record."""
        return {"run_id": self.run_id, "start": self.start}

    @property
    def night(self) -> str:
        """``2026-11-21 21:34``, for axes and tables."""
        return self.start.strftime("%Y-%m-%d %H:%M")


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Quantities by runs: the number that counted in each run.

    Attributes:
        keys: one for each row.
        runs: one for each column, oldest first.
        values: shape (keys, runs), in the unit of the key; NaN where a run has no usable number:
            not measured, INVALID, MISSING, zero or negative.
        verdicts: shape (keys, runs): the verdict word of each number; empty where there is none.
        set_aside: (row, column, reason) of each number that was measured and is not used.
    """

    keys: tuple[Key, ...]
    runs: tuple[Run, ...]
    values: Values
    verdicts: tuple[tuple[str, ...], ...] = ()
    set_aside: tuple[tuple[int, int, str], ...] = ()

    def take(self, rows: Sequence[int], columns: Sequence[int] | None = None) -> Matrix:
        """Return these rows, of all columns or of those that are named, in this order."""
        columns = range(len(self.runs)) if columns is None else columns
        row_of = {row: index for index, row in enumerate(rows)}
        column_of = {column: index for index, column in enumerate(columns)}
        words = [self.verdicts[row] for row in rows] if self.verdicts else []
        # Most rows have the same words: one tuple stands for all of these.
        cut = {each: tuple(each[column] for column in columns) for each in set(words)}
        return Matrix(
            keys=tuple(self.keys[row] for row in rows),
            runs=tuple(self.runs[column] for column in columns),
            values=self.values[np.ix_(rows, columns)],
            verdicts=tuple(cut[each] for each in words),
            set_aside=tuple(
                (row_of[row], column_of[column], reason)
                for row, column, reason in self.set_aside
                if row in row_of and column in column_of
            ),
        )


#: units of which more is better, and less
_HIGHER, _LOWER = ("1/s", "MB/s", "MiB/s", "GB/s"), ("s", "ms", "us", "ns")

#: smallest change that matters, as a fraction; a site or ``--margin`` may say otherwise
MARGINS: Mapping[str, float] = {
    "bandwidth": 0.03,
    "message rate": 0.03,
    "ratio": 0.05,
    "cost ratio": 0.05,
    "latency": 0.05,
    "own number": 0.05,
}

_METRICS = {
    "MB/s": "bandwidth",
    "GB/s": "bandwidth",
    "MiB/s": "bandwidth",
    "1/s": "message rate",
    "x": "ratio",
    **dict.fromkeys(_LOWER, "latency"),
}

#: messages up to here cost the time of a start, above they cost bytes: unlike scatter
_SHORT, _MEDIUM = 1 << 10, 1 << 16


def metric_of(key: Key) -> str:
    """Return the metric, a name of :data:`MARGINS`; of a ``cost ratio`` less is better.

    An ``own number`` is of a site's own check, in any other unit.
    """
    if key.unit == "x" and key.better < 0:
        return "cost ratio"
    return _METRICS.get(key.unit, "own number")


def band_of(key: Key) -> str:
    """Return ``short``, ``medium`` or ``long`` for the messages; empty where there are none."""
    size = key.message_size
    if size is None:
        return ""
    return "short" if size <= _SHORT else "medium" if size <= _MEDIUM else "long"


def class_of(key: Key) -> tuple[str, ...]:
    """Return what tells quantities of unlike scatter apart: unit, program and length."""
    return (key.unit, key.program, band_of(key))


def numbered(kinds: Sequence[object]) -> list[int]:
    """Return a number for each kind, the same for the same."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(each, len(numbers)) for each in kinds]


#: columns beside those of :data:`FIELDS`, a row for each quantity of each attempt.  Numbers are in
#: ``unit``, ``completed`` in seconds since 1970 (UTC).  What others took: of the cores of both ends
#: together (0 to 2), of the wire (0 to 1), and for how many microseconds one burst held the wire
FACTS: tuple[str, ...] = (
    "run_id", "attempt", "counts", "value", "verdict", "reason", "ceiling", "ceiling_name",
    "reference", "lower", "upper", "origin", "source", "road_state", "job_id", "completed",
    "inventory", "stage_folder", "cores_share", "wire_share", "burst_us", "file", "line",
)  # fmt: skip

#: the tool's own setting, of all that it says of a run; what it measured beside (retransmits,
#: bytes moved, the MTU that TCP found) is a result and tells no two quantities apart.
SETTINGS = (
    "binary", "datatype", "group", "mode", "num_pairs", "num_processes", "protocol", "streams",
    "synchronization", "threads", "window_creation", "window_size",
)  # fmt: skip

_WHOLE = frozenset({"message_size", "better", "attempt", "line"})
_NUMBERS = frozenset(
    {"value", "ceiling", "reference", "lower", "upper", "completed"}
    | {"cores_share", "wire_share", "burst_us"}
)
_YES_NO = frozenset({"named", "counts"})


def schema(columns: Iterable[str]) -> dict[str, type[pl.DataType]]:
    """Return column -> type."""

    def kind(column: str) -> type[pl.DataType]:
        if column == "key":
            return pl.UInt64
        if column in _WHOLE:
            return pl.Int64
        if column in _NUMBERS:
            return pl.Float64
        return pl.Boolean if column in _YES_NO else pl.String

    return {name: kind(name) for name in columns}


def usable_rows() -> pl.Expr:
    """Return which rows are measurements: positive, finite, and not INVALID."""
    value = pl.col("value")
    sound = value.is_finite() & (value > 0) & (pl.col("verdict") != "INVALID")
    return sound.fill_null(value=False)


def better_rows() -> pl.Expr:
    """Return 1 where more is better, -1 where less is, 0 where nobody can say.

    A ratio (``x``), and what a site has a reference for in a unit of its own (``ns/day``), is
    better on the side that has no bound.  Link states, rates and counts are facts: the inventory
    compares them.
    """
    unit, lower, upper = pl.col("unit"), pl.col("lower"), pl.col("upper")
    is_open = (unit == "x") | (pl.col("source") == "site").fill_null(value=False)
    one_sided = is_open & (lower.is_null() != upper.is_null())
    return (
        pl.when(unit.is_in(_HIGHER) | (one_sided & upper.is_null()))
        .then(1)
        .when(unit.is_in(_LOWER) | one_sided)
        .then(-1)
        .otherwise(0)
        .cast(pl.Int64)
    )
