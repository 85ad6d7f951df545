"""Columns of texts become a matrix of pairs: names, rails, rounds, units, directions, values."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from itertools import islice
from typing import NoReturn

import numpy as np
import polars as pl

from fabricproof.core.errors import ParseError, UnitError
from fabricproof.core.units import canonical_unit, convert, dimension, natural
from fabricproof.pairs.matrix import BOTH_WAYS, QUANTITIES, Flags, Indices, Kind, Matrix, Values
from fabricproof.pairs.readers.coverage import coverage_of, stand_one_way

#: how a value that was not measured is written
_EMPTY = ["", "-", "na", "n/a", "nan", "null", "none", "-nan", "missing"]

_FORWARD = {"", "ab", "a->b", ">", "->", "forward", "fwd", "tx", "transmit", "send", "out", "uni",
            "unidirectional", "one-way", "oneway"}  # fmt: skip
_REVERSE = {"ba", "b->a", "<", "<-", "backward", "reverse", "rev", "rx", "receive", "recv", "in"}
_BOTH = {"both", "both ways", "bi", "bidir", "bidirectional", "<->", "a<->b", "duplex",
         "semi", "semidirectional", "pingpong", "ping-pong"}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of a file as stripped texts, and how to say where in it something is wrong.

    Attributes:
        name: of the file, in messages.
        frame: columns ``a``, ``b``, ``value``, and of the others those that are there.
        unit: that the header gives the values; empty: none.
        quantity: that the header says they are; empty: it says nothing.
        data: the file, where it has lines.
    """

    name: str
    frame: pl.DataFrame
    unit: str = ""
    quantity: str = ""
    data: bytes = b""

    def refuse(self, problem: str, row: int, expected: str, got: str) -> NoReturn:
        """Raise what is wrong with row ``row``, from 0, at its line."""
        written = (
            number
            for number, text in enumerate(io.BytesIO(self.data), start=1)
            if text.strip() and not text.startswith(b"#")
        )
        line = next(islice(written, row + 1, None), None)  # the header is the first
        raise ParseError(problem, source=self.name, line=line, expected=expected, got=repr(got))

    def refuse_first(
        self, bad: pl.Series | Flags, problem: str, expected: str, column: str = ""
    ) -> None:
        """Raise what is wrong with the first row that is ``bad``: its cell, or all of it."""
        if bad.any():
            row = int(np.argmax(bad))
            got = self.frame[column][row] if column else ",".join(self.frame.row(row))
            self.refuse(problem, row, expected, got)


def matrix_of(table: Table, unit: str = "") -> Matrix:
    """Return the matrix that is written in a table.

    Raises:
        ParseError: no row, or a cell that cannot be; the message has its line.
    """
    frame = table.frame
    if frame.is_empty():
        raise ParseError("no rows below the header", source=table.name, expected="a row for a pair")
    for column in ("a", "b"):
        table.refuse_first(frame[column] == "", f"no node in column {column}", "a name")
    own = (frame["a"] == frame["b"]).to_numpy()
    values, measured = _values(table, own)
    nodes = sorted(set(frame["a"].unique()) | set(frame["b"].unique()), key=natural)
    source, destination = (_codes(frame[column], nodes) for column in ("a", "b"))
    rails, rail = _labels(frame, "rail")
    rounds = _rounds(table)
    kinds, kind, factors = _kinds(table, unit)
    values = values * factors
    _check_zero(table, (values == 0) & ~own, kinds, kind)
    reverse, both = _directions(table)
    source, destination = (
        np.where(reverse, destination, source),
        np.where(reverse, source, destination),
    )
    if "direction" not in frame.columns:
        both = _stand_once(source, destination, rail, kind, len(nodes))
    else:
        kinds, kind = _both_ways_apart(kinds, kind, both)
    kept, empty = measured & ~own, ~measured & ~own
    matrix = Matrix(
        nodes=tuple(nodes),
        rails=rails,
        kinds=kinds,
        source=source,
        destination=destination,
        both_ways=both,
        rail=rail,
        round=rounds,
        kind=kind,
        value=values,
        num_empty=int(empty.sum()),
        num_self=int(own.sum()),
        origin=table.name,
    )
    missing, notes = coverage_of(matrix, kept, empty)
    return replace(matrix, missing=missing, notes=tuple(notes)).rows(kept)


def _values(table: Table, own: Flags) -> tuple[Values, Flags]:
    """Return values, and which were measured; a node with itself may have any."""
    texts = table.frame["value"]
    numbers = texts.cast(pl.Float64, strict=False)
    measured = (numbers.is_finite() & (numbers >= 0)).fill_null(value=False).to_numpy()
    wrong = ~(measured | own)
    if wrong.any():
        wrong[wrong] = ~texts.filter(pl.Series(wrong)).str.to_lowercase().is_in(_EMPTY).to_numpy()
        expected = "a number of at least 0 with a decimal point, no comma, or nothing"
        table.refuse_first(wrong, "no value of a pair", expected, "value")
    return np.where(measured, numbers.fill_null(0.0).to_numpy(), 1.0), measured


def _codes(column: pl.Series, names: list[str]) -> Indices:
    return column.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int32)


def _labels(frame: pl.DataFrame, column: str) -> tuple[tuple[str, ...], Indices]:
    if column not in frame.columns:
        return ("",), np.zeros(len(frame), dtype=np.int32)
    names = sorted(frame[column].unique(), key=natural)
    return tuple(names), _codes(frame[column], names)


def _rounds(table: Table) -> Indices:
    if "round" not in table.frame.columns:
        return np.full(len(table.frame), -1, dtype=np.int32)
    # A table program writes whole numbers beside empty cells as 3.0.
    texts = table.frame["round"].str.strip_suffix(".0")
    numbers = texts.cast(pl.Int32, strict=False)
    bad = numbers.is_null() & (texts != "")
    table.refuse_first(bad, "no number of a round", "a whole number", "round")
    return numbers.fill_null(-1).to_numpy().astype(np.int32)


def quantity_of(unit: str) -> str:
    """Return what a value in ``unit`` is.

    Raises:
        UnitError: it is nothing that a pair has.
    """
    measured = dimension(unit)
    if measured not in QUANTITIES:
        raise UnitError(
            "no unit of a pair's value", expected="a bandwidth, a rate or a time", got=unit
        )
    return QUANTITIES[measured]


def _kinds(table: Table, unit: str) -> tuple[tuple[Kind, ...], Indices, Values]:
    """Return the kinds, the kind of each row, and the factor of its value to the kind's unit."""
    written, unit_of = _labels(table.frame, "unit")
    sizes, size_of = _labels(table.frame, "size")
    unit = table.unit or unit
    units = [_known_unit(table, text or unit, unit_of == at) for at, text in enumerate(written)]
    shown: dict[str, str] = {}
    for name in units:
        shown.setdefault(dimension(name) if name else "", name)
    of_unit = [shown[dimension(name) if name else ""] for name in units]
    factors = np.array(
        [convert(1.0, name, to) if name else 1.0 for name, to in zip(units, of_unit, strict=True)]
    )
    first = np.array([of_unit.index(name) for name in of_unit], dtype=np.int64)
    used, kind = np.unique(first[unit_of] * len(sizes) + size_of, return_inverse=True)
    kinds = []
    for code in used.tolist():
        name, size = of_unit[code // len(sizes)], sizes[code % len(sizes)]
        quantity = quantity_of(name) if name else table.quantity or "bandwidth"
        kinds.append(Kind(quantity=quantity, unit=name, size=size))
    return tuple(kinds), kind.astype(np.int32), factors[unit_of]


def _known_unit(table: Table, text: str, rows: Flags) -> str:
    try:
        name = canonical_unit(text) if text else ""
        quantity = quantity_of(name) if name else ""
    except UnitError as error:
        table.refuse(error.problem, int(rows.argmax()), error.expected or "a known unit", text)
    if quantity and table.quantity not in {"", quantity}:
        row = int(rows.argmax())
        table.refuse(
            f"the column of a {table.quantity} has a {quantity}", row, table.quantity, text
        )
    return name


def _check_zero(table: Table, is_zero: Flags, kinds: tuple[Kind, ...], kind: Indices) -> None:
    """Refuse a latency of 0; a bandwidth of 0 is a pair over which nothing arrived."""
    times = np.array([each.lower_is_better for each in kinds], dtype=bool)
    bad = times[kind] & is_zero
    table.refuse_first(bad, "no latency of a pair", "more than 0", "value")


def _directions(table: Table) -> tuple[Flags, Flags]:
    """Return which rows are from b to a, and which are both ways."""
    if "direction" not in table.frame.columns:
        none = np.zeros(len(table.frame), dtype=bool)
        return none, none
    words = table.frame["direction"].str.to_lowercase()
    unknown = ~words.is_in(sorted(_FORWARD | _REVERSE | _BOTH))
    table.refuse_first(unknown, "unknown direction", "ab, ba or both", "direction")
    reverse, both = (words.is_in(sorted(each)).to_numpy() for each in (_REVERSE, _BOTH))
    return reverse, both


def _both_ways_apart(
    kinds: tuple[Kind, ...], kind: Indices, both: Flags
) -> tuple[tuple[Kind, ...], Indices]:
    """Return kinds of which a bandwidth both ways at once is not held against one of one way.

    Where all rows of a kind are both ways, they stay what they are.
    """
    kinds, kind = tuple(kinds), kind.copy()
    for number, each in enumerate(kinds):
        rows = kind == number
        if each.quantity == "bandwidth" and 0 < both[rows].sum() < rows.sum():
            kind[rows & both] = len(kinds)
            kinds = (*kinds, replace(each, quantity=BOTH_WAYS))
    return kinds, kind


def _stand_once(
    source: Indices, destination: Indices, rail: Indices, kind: Indices, num_nodes: int
) -> Flags:
    """Tell which rows are both ways, as no row of their kind and rail is of the other direction.

    Where enough pairs stand both ways, the other direction was not measured instead.
    """
    one_way = stand_one_way(source, destination, rail, kind, num_nodes)
    if one_way.all():
        return np.zeros(len(source), dtype=bool)
    place = rail.astype(np.int64) * len(one_way) + kind
    forth = (place * num_nodes + source) * num_nodes + destination
    back = (place * num_nodes + destination) * num_nodes + source
    return np.asarray(~one_way[kind] & ~np.isin(back, forth))
