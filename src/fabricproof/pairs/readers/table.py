"""Read anybody's matrix: a CSV of ``a,b,value[,rail][,direction][,round][,size][,unit]``.

A row is what ``a`` sends to ``b``, unless a column ``direction`` says otherwise.
"""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl

from fabricproof.core.errors import ConfigError, InputMissingError, ParseError, UnitError
from fabricproof.core.units import canonical_unit, convert, counted, dimension, first_few, natural
from fabricproof.pairs.matrix import (
    BOTH_WAYS,
    QUANTITIES,
    Flags,
    Indices,
    Kind,
    Matrix,
    Numbers,
    Values,
)

#: A larger file is refused: reading takes some five times its bytes of memory.
MOST_BYTES = 2 * 1024**3

NEEDED = ("a", "b", "value")
OPTIONAL = ("rail", "direction", "round", "size", "unit")

#: how a value that was not measured is written
_EMPTY = ["", "-", "na", "nan"]

#: where so many of the pairs of a kind stand both ways, each should
_PART_BOTH_WAYS = 0.25


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
        raise ParseError("too large", source=name, expected=f"at most {MOST_BYTES >> 30} GiB")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", errors="replace").encode()
    return data.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def read_table(data: bytes, name: str, unit: str = "") -> tuple[Matrix, ...]:
    """Return the matrices in a CSV, one for each quantity and message size.

    ``unit``: of rows that name none.
    """
    try:
        unit = canonical_unit(unit) if unit else ""
        _quantity_of(unit)
    except UnitError as error:
        raise ConfigError(error.problem, expected=error.expected, got=error.got) from None
    return _Table(name, data).matrices(unit)


class _Table:
    """The rows of a file as stripped texts, and the line of each if something is wrong in it."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self.data = name, data
        if (at := data.find(b"\0")) >= 0:
            line = data.count(b"\n", 0, at) + 1
            raise ParseError("no text: it has a byte 0", source=name, line=line)
        lines = enumerate(io.BytesIO(data), start=1)
        line, header = next(
            ((at, raw) for at, raw in lines if raw.strip() and not raw.startswith(b"#")), (0, b"")
        )
        if not line:
            raise ParseError("the file is empty", source=name, expected="columns a,b,value")
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
                expected=f"columns {','.join(NEEDED)} and, where there, {','.join(OPTIONAL)}",
                got=repr(text),
            )
        wanted = [each for each in columns if each in {*NEEDED, *OPTIONAL}]
        if len(wanted) > len(set(wanted)):
            raise ParseError("a column stands twice", source=name, line=line, got=repr(text))
        self.frame = self._frame(columns, wanted, separator)
        if self.frame.is_empty():
            raise ParseError("no rows below the header", source=name, expected="a row for a pair")

    def _frame(self, columns: list[str], wanted: list[str], separator: str) -> pl.DataFrame:
        data = self.data
        rows = data.count(b"\n") + (not data.endswith(b"\n"))
        is_plain = not any(each in data for each in (b'"', b"#", b"\n\n"))
        # Counting commas is a hundred times faster than parsing rows one by one.
        if not is_plain or data.count(separator.encode()) != rows * (len(columns) - 1):
            self._check_fields(separator)
            data = b"".join(
                each for each in io.BytesIO(data) if each.strip() and not each.startswith(b"#")
            )
        try:
            frame = pl.read_csv(
                data,
                separator=separator,
                infer_schema=False,
                encoding="utf8-lossy",
                columns=[columns.index(each) for each in wanted],
            )
        except pl.exceptions.PolarsError as error:
            raise self._no_csv(error) from None
        frame.columns = wanted
        frame = frame.with_columns(
            pl.col(each.name).fill_null("") for each in frame if each.has_nulls()
        )
        is_blank = is_plain and b" " not in data and b"\t" not in data
        return frame if is_blank else frame.with_columns(pl.all().str.strip_chars())

    def _check_fields(self, separator: str) -> None:
        """Refuse a row with fewer or more fields than the header: a cut row is no empty value."""
        lines = (
            "\n" if line.startswith(b"#") else line.decode("utf-8", errors="replace")
            for line in io.BytesIO(self.data)
        )
        rows = csv.reader(lines, delimiter=separator)
        count = 0
        try:
            for row in rows:
                count = count or len(row)
                if len(row) != count and "".join(row).strip():
                    raise ParseError(
                        "a row has not as many fields as the header",
                        source=self.name,
                        line=rows.line_num,
                        expected=f"{count}, parted by {separator!r}",
                        got=repr(separator.join(row)),
                    )
        except csv.Error as error:
            raise self._no_csv(error) from None

    def _no_csv(self, error: Exception) -> ParseError:
        said = str(error).partition("\n")[0] or type(error).__name__
        return ParseError("no table", source=self.name, expected="CSV", got=said)

    def refuse(self, problem: str, row: int, expected: str, got: str) -> NoReturn:
        """Raise what is wrong with row ``row``, from 0, at its line."""
        written = (
            number
            for number, text in enumerate(io.BytesIO(self.data), start=1)
            if text.strip() and not text.startswith(b"#")
        )
        line = next(islice(written, row + 1, None), None)  # the header is the first
        raise ParseError(problem, source=self.name, line=line, expected=expected, got=repr(got))

    def check(self, bad: pl.Series | Flags, problem: str, expected: str, column: str) -> None:
        """Raise what is wrong with the first row that is ``bad``."""
        if bad.any():
            row = int(np.argmax(bad))
            self.refuse(problem, row, expected, self.frame[column][row])

    def labels(self, column: str) -> tuple[tuple[str, ...], Numbers]:
        """Return the names in a column in their natural order, and the number of each row's."""
        if column not in self.frame.columns:
            return ("",), np.zeros(len(self.frame), dtype=np.int32)
        names = sorted(self.frame[column].unique(), key=natural)
        return tuple(names), self.codes(column, names)

    def codes(self, column: str, names: list[str]) -> Numbers:
        """Return the number of each row's name among ``names``."""
        return self.frame[column].cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int32)

    def matrices(self, unit: str) -> tuple[Matrix, ...]:
        """Return the matrices that the rows make."""
        frame = self.frame
        names = {column: frame[column].unique() for column in ("a", "b")}
        for column, own in names.items():
            self.check(frame[column] == "", f"no node in column {column}", "a name", column)
            if own.str.contains(r"\p{Cc}").any():
                bad = frame[column].str.contains(r"\p{Cc}")
                self.check(bad, "no name of a node", "one line", column)
        nodes = sorted({*names["a"], *names["b"]}, key=natural)
        source, destination = self.codes("a", nodes), self.codes("b", nodes)
        is_self = source == destination
        value, measured = self._values(is_self)
        reverse = both = np.zeros(len(frame), dtype=bool)
        if "direction" in frame.columns:
            words = frame["direction"].str.to_lowercase()
            unknown = ~words.is_in(["", "ab", "ba", "both"])
            self.check(unknown, "unknown direction", "ab, ba or both", "direction")
            reverse, both = (words == "ba").to_numpy(), (words == "both").to_numpy()
        kinds, kind, factors = self._kinds(unit, both)
        zero = np.array([each.lower_is_better for each in kinds])[kind] & (value == 0) & ~is_self
        self.check(zero, "no latency of a pair", "more than 0", "value")
        rails, rail = self.labels("rail")
        whole = Matrix(
            nodes=tuple(nodes),
            rails=rails,
            kind=kinds[0],
            source=np.where(reverse, destination, source),
            destination=np.where(reverse, source, destination),
            both_ways=both,
            rail=rail,
            round=self._rounds(),
            value=value * factors,
            origin=self.name,
        )
        kept = measured & ~is_self
        return parted(whole, kinds, kind, kept, named=~is_self)

    def _values(self, is_self: Flags) -> tuple[Values, Flags]:
        """Return values, and which were measured; a node with itself may have any."""
        texts = self.frame["value"]
        numbers = texts.cast(pl.Float64, strict=False)
        measured = (numbers.is_finite() & (numbers >= 0)).fill_null(value=False).to_numpy()
        others = ~(measured | is_self)
        if others.any():
            wrong = others & ~texts.str.to_lowercase().is_in(_EMPTY).to_numpy()
            expected = "a number of at least 0 with a decimal point, no comma, or nothing"
            self.check(wrong, "no value of a pair", expected, "value")
        return np.where(measured, numbers.fill_null(0.0).to_numpy(), 1.0), measured

    def _rounds(self) -> Numbers:
        if "round" not in self.frame.columns:
            return np.full(len(self.frame), -1, dtype=np.int32)
        # A table program writes whole numbers beside empty cells as 3.0.
        texts = self.frame["round"].str.strip_suffix(".0")
        numbers = texts.cast(pl.Int32, strict=False)
        bad = numbers.is_null() & (texts != "")
        self.check(bad, "no number of a round", "a whole number", "round")
        return numbers.fill_null(-1).to_numpy().astype(np.int32)

    def _kinds(self, unit: str, both: Flags) -> tuple[list[Kind], Numbers, Values]:
        """Return the kinds, the kind of each row, and the factor of its value to the kind's unit.

        A bandwidth both ways at once is not held against one of one way.  Where all rows are both
        ways, they stay what they are.
        """
        written, unit_of = self.labels("unit")
        sizes, size_of = self.labels("size")
        units = []
        for at, text in enumerate(written):
            try:
                name = canonical_unit(text) if text else unit
                _quantity_of(name)
            except UnitError as error:
                row = int((unit_of == at).argmax())
                self.refuse(error.problem, row, error.expected or "a known unit", text)
            units.append(name)
        # All rows of one dimension get the unit of the first.
        first = [next(at for at, one in enumerate(units) if _dimension(one) == _dimension(name))
                 for name in units]  # fmt: skip
        shown = [units[at] for at in first]
        factors = np.array([
            convert(1.0, name, to) if name else 1.0
            for name, to in zip(units, shown, strict=True)
        ])  # fmt: skip
        if len(units) * len(sizes) == 1 and both.all() == both.any():
            kind = Kind(quantity=_quantity_of(units[0]), unit=units[0], size=sizes[0])
            return [kind], unit_of, np.ones(1)
        code = (np.array(first)[unit_of] * len(sizes) + size_of) * 2 + (both & ~both.all())
        kinds = []
        numbers = np.zeros(2 * len(units) * len(sizes), dtype=np.int32)
        for each in np.flatnonzero(np.bincount(code)).tolist():
            unit_at, rest = divmod(each, 2 * len(sizes))
            quantity = _quantity_of(units[unit_at])
            if rest % 2 and quantity == "bandwidth":
                quantity = BOTH_WAYS
            kind = Kind(quantity=quantity, unit=units[unit_at], size=sizes[rest // 2])
            kinds += [] if kind in kinds else [kind]
            numbers[each] = kinds.index(kind)
        return kinds, numbers[code], factors[unit_of]


def _dimension(unit: str) -> str:
    return dimension(unit) if unit else ""


def _quantity_of(unit: str) -> str:
    """Return what a value in ``unit`` is; without a unit more is better."""
    measured = dimension(unit) if unit else "bandwidth"
    if measured not in QUANTITIES:
        raise UnitError(
            "no unit of a pair's value", expected="a bandwidth, a rate or a time", got=unit
        )
    return QUANTITIES[measured]


def parted(
    whole: Matrix, kinds: list[Kind], kind: Numbers, kept: Flags, named: Flags
) -> tuple[Matrix, ...]:
    """Return a matrix for each kind, with what it should have and has not.

    A table that names more than half of all pairs means to be whole, in each kind and over each
    rail; of one of fewer only what it names is expected.

    ``kept``: rows that have a value; ``named``: those, and rows without one.
    """
    num = len(whole.nodes)
    is_whole = 4 * int(named.sum()) > num * (num - 1)
    if is_whole:
        pairs = np.zeros(num**2, dtype=bool)
        pairs[whole.pair_keys[named]] = True
        is_whole = 4 * int(pairs.sum()) > num * (num - 1)
    parts = []
    for number, one in enumerate(kinds):
        own = named & (kind == number)
        part, has = whole.rows(own), kept[own]
        part = part if part.kind == one else replace(part, kind=one)
        ways = _Ways(part, is_whole=is_whole)
        empty, itself = int((~has).sum()), int((~named & (kind == number)).sum())
        notes = [f"{counted(empty, 'row')} without a value"] if empty else []
        notes += [f"{counted(itself, 'row')} of a node with itself: left out"] if itself else []
        part = replace(
            part.rows(has),
            missing=tuple(ways.missing(has)),
            notes=(*ways.notes(has), *notes),
        )
        if not is_whole and own.any():  # its nodes are those that it names
            seen = whole.rows(own).seen
            at = (np.cumsum(seen) - 1).astype(np.int32)
            part = replace(
                part,
                nodes=part.names(np.flatnonzero(seen)),
                source=at[part.source],
                destination=at[part.destination],
            )
        parts.append(part.without_repeats())
    return tuple(parts)


class _Ways:
    """Who sends to whom in the rows of a matrix, as flags over all ways that there may be."""

    def __init__(self, matrix: Matrix, *, is_whole: bool) -> None:
        self.matrix, self.is_whole, self.num = matrix, is_whole, len(matrix.nodes)
        self.way = matrix.source.astype(np.int64) * self.num + matrix.destination
        if is_whole:
            self.codes = np.arange(self.num**2)
        else:
            self.codes = np.unique(np.concatenate([self.way, self._turned(self.way)]))
            self.way = np.searchsorted(self.codes, self.way)
        turned = self._turned(self.codes)
        self.back = turned if is_whole else np.searchsorted(self.codes, turned)

    def _turned(self, codes: Indices) -> Indices:
        first, second = np.divmod(codes, self.num)
        return np.asarray(second * self.num + first)

    def flags(self, rows: Flags, *, both: bool = False) -> Flags:
        """Return the ways of some rows; of a row both ways both, or of all with ``both``."""
        found = np.zeros(len(self.codes), dtype=bool)
        found[self.way[rows]] = True
        found[self.back[self.way[rows if both else rows & self.matrix.both_ways]]] = True
        return found

    def missing(self, has: Flags) -> Iterator[str]:
        """Yield in words which values should be there and are not, rail by rail."""
        matrix = self.matrix
        for rail in range(len(matrix.rails)):
            on = matrix.rail == rail
            what, over = matrix.kind.words, matrix.over(rail)
            if not on.any() or (not self.is_whole and has[on].all()):
                continue
            if not has[on].any():
                yield f"any {what}{over}"
                continue
            stand = self.flags(on & ~matrix.both_ways)
            twice = int((stand & stand[self.back]).sum()) // 2
            num_pairs = int(stand.sum()) - twice
            is_directed = 0 < num_pairs * _PART_BOTH_WAYS <= twice
            measured = self.flags(on & has, both=not is_directed)
            expected = self.flags(on, both=True)
            if self.is_whole:
                expected = self.codes // self.num != self.codes % self.num
            absent = expected & ~measured
            if not absent.any():
                continue
            seen = np.zeros(self.num, dtype=bool)
            seen[np.concatenate(np.divmod(self.codes[measured], self.num))] = True
            ends = np.divmod(self.codes[absent], self.num)
            silent = np.unique(np.concatenate([end[~seen[end]] for end in ends]))
            if len(silent):
                yield f"any {what} of {first_few(matrix.names(silent))}{over}"
            rest = seen[ends[0]] & seen[ends[1]]
            if not is_directed:
                rest &= ends[0] < ends[1]
            if rest.any():
                noun, share, arrow = "directions", 1, "to"
                if not is_directed:
                    noun, share, arrow = "pairs", 2, "with"
                names = [
                    f"{matrix.nodes[one]} {arrow} {matrix.nodes[other]}"
                    for one, other in zip(*(end[rest].tolist() for end in ends), strict=True)
                ]
                part = f"{int(absent.sum()) // share} of {int(expected.sum()) // share} {noun}"
                yield f"{part}{over}: {first_few(names)} ({what})"

    def notes(self, has: Flags) -> list[str]:
        """Return what else was not measured, of which nobody knows whether it should have been."""
        measured = self.flags(has)
        first = self.codes[measured | measured[self.back]] // self.num
        num_pairs, every = len(first) // 2, self.num * (self.num - 1) // 2
        if self.num < 3 or not num_pairs:
            return []
        found = []
        if num_pairs < every:
            found.append(f"{num_pairs} of {every} pairs measured: nothing is said of the others")
        if half := int((measured & ~measured[self.back]).sum()):
            told = f"{counted(half, 'pair')} measured one way only"
            found.append(f"{told}: nothing is said of the other")
        single = np.flatnonzero(np.bincount(first, minlength=self.num) == 1)
        if len(single):
            names = first_few(self.matrix.names(single))
            found.append(f"with one partner only, and not told from it: {names}")
        return found
