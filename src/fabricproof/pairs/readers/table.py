"""Read anybody's matrix: a CSV of ``a,b,value[,rail][,direction][,round][,size][,unit]``.

A row is what ``a`` sends to ``b``, where no column ``direction`` says otherwise.  What LinkTest and
mpiGraph print is read as well.
"""

from __future__ import annotations

import codecs
import csv
import io
import sys
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl

from fabricproof.core.errors import ConfigError, InputMissingError, ParseError, UnitError
from fabricproof.core.units import canonical_unit, convert, dimension, natural
from fabricproof.pairs.matrix import BOTH_WAYS, QUANTITIES, Flags, Indices, Kind, Matrix, Values
from fabricproof.pairs.readers.coverage import coverage_of

#: A larger file is refused: reading takes some ten times its bytes of memory.
MOST_BYTES = 2 * 1024**3

NEEDED = ("a", "b", "value")
OPTIONAL = ("rail", "direction", "round", "size", "unit")

#: how a value that was not measured is written
_EMPTY = ["", "-", "na", "nan"]


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of a file as stripped texts, and how to say where in it something is wrong.

    Attributes:
        frame: columns ``a``, ``b``, ``value``, and of the others those that are there.
    """

    name: str
    frame: pl.DataFrame
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


def bytes_of(name: str) -> bytes:
    """Return what stands in file ``name``, ``-`` for standard input, in UTF-8 with ends of Unix."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1) if sys.stdin else b""
        else:
            with Path(name).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputMissingError(
            f"cannot read: {error.strerror}", source=name, expected="a CSV of pairs"
        ) from None
    if len(data) > MOST_BYTES:
        raise ParseError(
            "larger than what is read", source=name, expected=f"at most {MOST_BYTES >> 30} GiB"
        )
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", errors="replace").encode()
    return data.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def read_table(data: bytes, name: str, unit: str = "") -> Matrix:
    """Return the matrix in a CSV; ``unit`` is that of rows that name none."""
    try:
        unit = canonical_unit(unit) if unit else ""
        _quantity_of(unit)
    except UnitError as error:
        raise ConfigError(error.problem, expected=error.expected, got=error.got) from None
    if (at := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise ParseError(
            "no text: it has a byte 0", source=name, line=line, expected="a CSV of pairs in UTF-8"
        )
    lines = enumerate(data.splitlines(keepends=True), start=1)
    line, header = next(
        ((at, raw) for at, raw in lines if raw.strip() and not raw.startswith(b"#")), (0, b"")
    )
    if not line:
        raise ParseError("the file is empty", source=name, expected="columns a,b,value and rows")
    text = header.decode("utf-8", errors="replace").strip()
    for separator in (",", ";", "\t"):
        columns = [each.strip().strip('"').strip().lower() for each in text.split(separator)]
        if set(NEEDED) <= set(columns):
            break
    else:
        raise ParseError(
            "no header of a matrix of pairs",
            source=name,
            line=line,
            expected="columns a,b,value and, where there, rail,direction,round,size,unit",
            got=repr(text),
        )
    wanted = [each for each in columns if each in {*NEEDED, *OPTIONAL}]
    if twice := [each for each in wanted if wanted.count(each) > 1]:
        raise ParseError(
            "a column stands twice", source=name, line=line, expected="each once", got=twice[0]
        )
    _check_fields(data, name, separator)
    rows = (each for each in io.BytesIO(data) if each.strip() and not each.startswith(b"#"))
    try:
        frame = pl.read_csv(
            b"".join(rows),
            separator=separator,
            infer_schema=False,
            encoding="utf8-lossy",
            columns=[columns.index(each) for each in wanted],
        )
    except pl.exceptions.PolarsError as error:
        raise _no_csv(error, name) from None
    frame.columns = wanted
    texts = frame.with_columns(pl.all().fill_null("").str.strip_chars())
    return matrix_of(Table(name=name, frame=texts, data=data), unit).without_repeats()


def _no_csv(error: Exception, name: str) -> ParseError:
    said = str(error).partition("\n")[0] or type(error).__name__
    return ParseError("no table", source=name, expected="CSV", got=said)


def _check_fields(text: bytes, name: str, separator: str) -> None:
    """Refuse a row with fewer or more fields than the header; a cut row is not an empty value."""
    lines = (
        "\n" if line.startswith(b"#") else line.decode("utf-8", errors="replace")
        for line in io.BytesIO(text)
    )
    rows = csv.reader(lines, delimiter=separator)
    count = 0
    try:
        for row in rows:
            count = count or len(row)
            if len(row) != count and "".join(row).strip():
                raise ParseError(
                    "a row has not as many fields as the header",
                    source=name,
                    line=rows.line_num,
                    expected=f"{count}, parted by {separator!r}",
                    got=repr(separator.join(row)),
                )
    except csv.Error as error:
        raise _no_csv(error, name) from None


def matrix_of(table: Table, unit: str = "") -> Matrix:
    """Return the matrix that is written in a table."""
    frame = table.frame
    if frame.is_empty():
        raise ParseError("no rows below the header", source=table.name, expected="a row for a pair")
    for column in ("a", "b"):
        table.refuse_first(frame[column] == "", f"no node in column {column}", "a name")
        table.refuse_first(
            frame[column].str.contains(r"\p{Cc}"), "no name of a node", "one line", column
        )
    own = (frame["a"] == frame["b"]).to_numpy()
    values, measured = _values(table, own)
    nodes = sorted(set(frame["a"].unique()) | set(frame["b"].unique()), key=natural)
    source, destination = (_codes(frame[column], nodes) for column in ("a", "b"))
    rails, rail = _labels(frame, "rail")
    kinds, kind, factors = _kinds(table, unit)
    values = values * factors
    times = np.array([each.lower_is_better for each in kinds], dtype=bool)
    zero = times[kind] & (values == 0) & ~own  # a bandwidth of 0: nothing arrived
    table.refuse_first(zero, "no latency of a pair", "more than 0", "value")
    reverse = both = np.zeros(len(frame), dtype=bool)
    if "direction" in frame.columns:
        words = frame["direction"].str.to_lowercase()
        unknown = ~words.is_in(["", "ab", "ba", "both"])
        table.refuse_first(unknown, "unknown direction", "ab, ba or both", "direction")
        reverse, both = (words == "ba").to_numpy(), (words == "both").to_numpy()
        kinds, kind = _both_ways_apart(kinds, kind, both)
    kept, empty = measured & ~own, ~measured & ~own
    matrix = Matrix(
        nodes=tuple(nodes),
        rails=rails,
        kinds=kinds,
        source=np.where(reverse, destination, source),
        destination=np.where(reverse, source, destination),
        both_ways=both,
        rail=rail,
        round=_rounds(table),
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
    wrong = ~(measured | own) & ~texts.str.to_lowercase().is_in(_EMPTY).to_numpy()
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


def _quantity_of(unit: str) -> str:
    """Return what a value in ``unit`` is; without a unit more is better."""
    measured = dimension(unit) if unit else "bandwidth"
    if measured not in QUANTITIES:
        raise UnitError(
            "no unit of a pair's value", expected="a bandwidth, a rate or a time", got=unit
        )
    return QUANTITIES[measured]


def _kinds(table: Table, unit: str) -> tuple[tuple[Kind, ...], Indices, Values]:
    """Return the kinds, the kind of each row, and the factor of its value to the kind's unit."""
    written, unit_of = _labels(table.frame, "unit")
    sizes, size_of = _labels(table.frame, "size")
    units = []
    for at, text in enumerate(written):
        try:
            name = canonical_unit(text) if text else unit
            _quantity_of(name)
        except UnitError as error:
            row = int((unit_of == at).argmax())
            table.refuse(error.problem, row, error.expected or "a known unit", text)
        units.append(name)
    shown: dict[str, str] = {}
    for name in units:
        shown.setdefault(dimension(name) if name else "", name)
    of_unit = [shown[dimension(name) if name else ""] for name in units]
    factors = np.array(
        [convert(1.0, name, to) if name else 1.0 for name, to in zip(units, of_unit, strict=True)]
    )
    first = np.array([of_unit.index(name) for name in of_unit], dtype=np.int64)
    used, kind = np.unique(first[unit_of] * len(sizes) + size_of, return_inverse=True)
    kinds = [
        Kind(quantity=_quantity_of(name), unit=name, size=sizes[code % len(sizes)])
        for code in used.tolist()
        for name in [of_unit[code // len(sizes)]]
    ]
    return tuple(kinds), kind.astype(np.int32), factors[unit_of]


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
