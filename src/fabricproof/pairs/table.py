"""Read anybody's matrix: a CSV of ``a,b,value[,rail][,direction][,round][,size][,unit]``.

A Parquet file of the same columns, and what LinkTest and mpiGraph print, are read as well.

A row is what ``a`` sends to ``b``.  A pair that stands once, in a file without a column
``direction``, is both ways.  Columns may have other usual names, and that of the value its unit:
``source,destination,latency_us``.
"""

from __future__ import annotations

import codecs
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl

from fabricproof.core.errors import InputMissingError, ParseError, UnitError
from fabricproof.core.units import canonical_unit, convert, dimension
from fabricproof.pairs.fabric import natural
from fabricproof.pairs.linktest import is_of_linktest, read_linktest
from fabricproof.pairs.matrix import QUANTITIES, Flags, Indices, Kind, Matrix, Values
from fabricproof.pairs.mpigraph import is_of_mpigraph, read_mpigraph
from fabricproof.pairs.ranks import Printed

#: A larger file is refused: reading takes some ten times its bytes of memory.
MOST_BYTES = 2 * 1024**3

#: a program says who it is in the beginning of its output, behind what launchers say
_BEGINNING = 2**20

#: a Parquet file is small for its rows; of so many a matrix takes some ten GB
MOST_ROWS = 100_000_000

#: how a Parquet file begins
_PARQUET = b"PAR1"

NEEDED = ("a", "b", "value")
OPTIONAL = ("rail", "direction", "round", "size", "unit")
_OWN = frozenset({*NEEDED, *OPTIONAL})

#: other names of a column, without blanks, ``_`` and ``-``; they count where its own is not there
_NAMES = {
    "a": {"source", "src", "from", "sender", "nodea", "node1", "hosta", "host1"},
    "b": {"destination", "dest", "dst", "to", "receiver", "target", "nodeb", "node2", "hostb",
          "host2"},
    "value": {"bandwidth", "bw", "throughput", "latency", "lat", "messagerate", "msgrate"},
    "rail": {"hca"},
    "size": {"messagesize", "msgsize", "sizebytes", "size(bytes)", "size(b)"},
}  # fmt: skip

#: what a column of this name holds
_HOLDS = {
    "bandwidth": "bandwidth", "bw": "bandwidth", "throughput": "bandwidth",
    "latency": "latency", "lat": "latency",
    "messagerate": "message rate", "msgrate": "message rate",
}  # fmt: skip

#: ``value (GB/s)``, ``latency [us]``, ``bandwidth_gbps``
_WITH_UNIT = (
    re.compile(r"(.+?)[ _]*[(\[]\s*(.+?)\s*[)\]]"),
    re.compile(r"(.+?)(?:[ _]+in)?[ _]+([^ _]+)"),
)

#: how a value that was not measured is written
_EMPTY = ["", "-", "na", "n/a", "nan", "null", "none", "-nan", "missing"]

_FORWARD = {"", "ab", "a->b", ">", "->", "forward", "fwd", "tx", "transmit", "send", "out", "uni",
            "unidirectional", "one-way", "oneway"}  # fmt: skip
_REVERSE = {"ba", "b->a", "<", "<-", "backward", "reverse", "rev", "rx", "receive", "recv", "in"}
_BOTH = {"both", "both ways", "bi", "bidir", "bidirectional", "<->", "a<->b", "duplex",
         "semi", "semidirectional", "pingpong", "ping-pong"}  # fmt: skip

#: the presence of a pair is looked up in a table up to this many cells, sorted beyond
_MOST_CELLS = 2**28


@dataclass(frozen=True, kw_only=True)
class _File:
    """The text of a file, and how to say where in it something is wrong.

    Attributes:
        name: of the file, in messages.
        data: all of it.
        separator: what parts its columns.
        columns: of the header; those that count have the names of this module.
        unit: that the header gives the values; empty: none.
        quantity: that the header says they are; empty: it says nothing.
    """

    name: str
    data: bytes
    separator: str
    columns: tuple[str, ...]
    unit: str = ""
    quantity: str = ""

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the rows with their line numbers, without header, comments and blank lines."""
        is_header = True
        for number, line in enumerate(io.BytesIO(self.data), start=1):
            text = line.decode("utf-8", errors="replace").strip("\r\n")
            if not text.strip() or text.startswith("#"):
                continue
            if not is_header:
                yield number, text
            is_header = False

    def refuse(self, problem: str, row: int, expected: str, got: str) -> NoReturn:
        """Raise what is wrong with row ``row``, from 0, at its line."""
        line = next((number for at, (number, _) in enumerate(self.lines()) if at == row), None)
        raise ParseError(problem, source=self.name, line=line, expected=expected, got=repr(got))


def read_matrix(name: str, *, unit: str = "") -> Matrix:
    """Read the matrix in file ``name``, ``-`` for standard input.

    Columns may come in any order, others are ignored; comma, semicolon or tab part them.  Lines
    that begin with ``#`` are left out.  A Parquet file has the same columns.  The output of
    LinkTest or mpiGraph is known by its words.

    Args:
        name: of the file.
        unit: of rows that name none; empty: more is better, and no verdict on the level.

    Raises:
        InputMissingError: it cannot be read.
        ParseError: it is no such table; the message has the line.
        UnitError: ``unit`` is unknown, or of no quantity of a pair.
    """
    if unit:
        unit = canonical_unit(unit)
        _quantity(unit)
    data = _bytes(name)
    source = "<stdin>" if name == "-" else name
    if data.startswith(_PARQUET):
        return _without_repeats(_matrix(*_of_parquet(data, source), unit))
    printed = _printed(data, source)
    if printed is not None:
        return _of_program(printed, source)
    file = _opened(source, data)
    _check_fields(file)
    return _without_repeats(_matrix(file, _frame(file), unit))


def _printed(data: bytes, source: str) -> Printed | None:
    """Return the values in the output of a program; None where it is of none that is known."""
    beginning = data[:_BEGINNING].decode("utf-8", errors="replace")
    if is_of_mpigraph(beginning):
        return read_mpigraph(data.decode("utf-8", errors="replace"), source)
    if is_of_linktest(beginning):
        return read_linktest(data.decode("utf-8", errors="replace"), source)
    return None


def _of_parquet(data: bytes, source: str) -> tuple[_File, pl.DataFrame]:
    """Return the columns of a Parquet file, as those of a CSV with the same names."""
    try:
        lazy = pl.scan_parquet(io.BytesIO(data))
        written = lazy.collect_schema().names()
        columns, unit, quantity = _header(written, source, None)
        _check_columns(columns, written, source, None)
        wanted = {name: own for name, own in zip(written, columns, strict=True) if own in _OWN}
        if lazy.select(pl.len()).collect().item() > MOST_ROWS:
            raise ParseError("too many rows", source=source, expected=f"at most {MOST_ROWS}")
        frame = lazy.select(pl.col(name).cast(pl.String).alias(wanted[name]) for name in wanted)
        texts = frame.collect().with_columns(pl.all().fill_null("").str.strip_chars())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ParseError("no table", source=source, expected="Parquet", got=said) from None
    file = _File(
        name=source,
        data=b"",
        separator=",",
        columns=tuple(texts.columns),
        unit=unit,
        quantity=quantity,
    )
    return file, texts


def _of_program(printed: Printed, source: str) -> Matrix:
    """Return the matrix of what a program printed: its reader left nothing to refuse."""
    frame = printed.frame
    file = _File(name=source, data=b"", separator=",", columns=tuple(frame.columns))
    matrix = _matrix(file, frame, "")
    matrix = _without_repeats(matrix) if printed.repeats else matrix
    return replace(
        matrix,
        missing=printed.missing,
        notes=printed.notes,
        is_selection=printed.is_selection,
        load=printed.load,
    )


def _bytes(name: str) -> bytes:
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
    if data.startswith(_PARQUET):
        return data
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data


def _opened(name: str, data: bytes) -> _File:
    """Find the header and what parts its columns."""
    for line, raw in enumerate(io.BytesIO(data), start=1):
        text = raw.decode("utf-8", errors="replace").strip()
        if not text or text.startswith("#"):
            continue
        for separator in (",", ";", "\t"):
            written = [each.strip().strip('"').strip() for each in text.split(separator)]
            columns, unit, quantity = _header(written, name, line)
            if set(NEEDED) <= set(columns):
                break
        else:
            columns = []
        _check_columns(columns, [text], name, line)
        return _File(
            name=name,
            data=data,
            separator=separator,
            columns=tuple(columns),
            unit=unit,
            quantity=quantity,
        )
    raise ParseError("the file is empty", source=name, expected="columns a,b,value and rows")


def _check_columns(columns: list[str], written: list[str], name: str, line: int | None) -> None:
    """Refuse a header without the columns that are needed, or with one twice."""
    if not set(NEEDED) <= set(columns):
        raise ParseError(
            "no header of a matrix of pairs",
            source=name,
            line=line,
            expected="columns a,b,value and, where there, rail,direction,round,size,unit",
            got=repr(",".join(written)),
        )
    twice = [each for each in (*NEEDED, *OPTIONAL) if columns.count(each) > 1]
    if twice:
        raise ParseError(
            "a column stands twice", source=name, line=line, expected="each once", got=twice[0]
        )


def _header(written: list[str], name: str, line: int | None) -> tuple[list[str], str, str]:
    """Return the columns of a header by their own names, and unit and quantity of the value.

    Raises:
        ParseError: two columns could be the same one.
    """
    plain = [each.lower() for each in written]
    columns, unit, quantity = list(plain), "", ""
    parts = [_without_unit(each) for each in written]
    for own in (*NEEDED, *OPTIONAL):
        if own in plain:
            continue
        usual = _NAMES.get(own, set()) | {own}
        at = [number for number, (word, _) in enumerate(parts) if word in usual]
        if own != "value":
            at = [number for number in at if not parts[number][1]]
        if len(at) > 1:
            raise ParseError(
                f"several columns could be the {own}",
                source=name,
                line=line,
                expected=f"one, or one that is called {own}",
                got=", ".join(written[number] for number in at),
            )
        if at:
            columns[at[0]] = own
            if own == "value":
                unit, quantity = parts[at[0]][1], _HOLDS.get(parts[at[0]][0], "")
    return columns, unit, quantity


def _without_unit(written: str) -> tuple[str, str]:
    """Return the name of a column without blanks, and the unit that stands beside it, if any."""
    for pattern in _WITH_UNIT:
        match = pattern.fullmatch(written)
        unit = _pair_unit(match[2]) if match else ""
        if match and unit:
            return re.sub("[ _-]", "", match[1].lower()), unit
    return re.sub("[ _-]", "", written.lower()), ""


def _pair_unit(text: str) -> str:
    """Return the unit of a pair's value that ``text`` is; ``gbps`` for Gb/s; empty: none."""
    # A name of a column is often in small letters; of these only one reading is usual.
    for spelling in (text, {"gbps": "Gb/s", "mbps": "Mb/s"}.get(text.lower(), text)):
        try:
            unit = canonical_unit(spelling)
        except UnitError:
            continue
        return unit if dimension(unit) in QUANTITIES else ""
    return ""


def _check_fields(file: _File) -> None:
    """Refuse a row with fewer or more fields than the header; a cut row is not an empty value."""
    if b'"' in file.data or b"\0" in file.data:
        return  # quoted fields: the reader of CSV counts them
    data = np.frombuffer(file.data, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if not len(ends) or ends[-1] != len(data) - 1:
        ends = np.append(ends, len(data))
    marks = np.flatnonzero(data == ord(file.separator))
    counts = np.diff(np.searchsorted(marks, ends), prepend=0)
    for at in np.flatnonzero(counts != len(file.columns) - 1).tolist():
        begin = 0 if at == 0 else int(ends[at - 1]) + 1
        text = file.data[begin : int(ends[at])].decode("utf-8", errors="replace")
        if text.strip() and not text.startswith("#"):
            raise ParseError(
                "a row has not as many fields as the header",
                source=file.name,
                line=at + 1,
                expected=f"{len(file.columns)}, parted by {file.separator!r}",
                got=repr(text),
            )


def _frame(file: _File) -> pl.DataFrame:
    """Return the columns as texts, stripped, without the blank lines."""
    wanted = [each for each in file.columns if each in _OWN]
    positions = [file.columns.index(each) for each in wanted]
    body = b"".join(
        line for line in io.BytesIO(file.data) if line.strip() and not line.startswith(b"#")
    ) if _has_gaps(file.data) else file.data  # fmt: skip
    try:
        frame = pl.read_csv(
            body,
            separator=file.separator,
            infer_schema=False,
            encoding="utf8-lossy",
            columns=positions,
        )
    except pl.exceptions.PolarsError as error:
        said = str(error).splitlines()[0]
        raise ParseError("no table", source=file.name, expected="CSV", got=said) from None
    frame.columns = wanted
    return frame.with_columns(pl.all().fill_null("").str.strip_chars())


def _has_gaps(data: bytes) -> bool:
    return data.startswith((b"#", b"\n")) or b"\n#" in data or b"\n\n" in data or b"\n " in data


def _matrix(file: _File, frame: pl.DataFrame, unit: str) -> Matrix:
    if frame.is_empty():
        raise ParseError("no rows below the header", source=file.name, expected="a row for a pair")
    for column in ("a", "b"):
        bad = frame[column] == ""
        if bad.any():
            row = int(bad.arg_max() or 0)
            file.refuse(f"no node in column {column}", row, "a name", ",".join(frame.row(row)))
    own = (frame["a"] == frame["b"]).to_numpy()
    values, measured = _values(file, frame, own)
    nodes = sorted(set(frame["a"].unique()) | set(frame["b"].unique()), key=natural)
    source, destination = (_codes(frame[column], nodes) for column in ("a", "b"))
    rails, rail = _labels(frame, "rail")
    rounds = _rounds(file, frame)
    kinds, kind, factors = _kinds(file, frame, unit)
    values = values * factors
    _check_zero(file, frame, (values == 0) & ~own, kinds, kind)
    reverse, both = _directions(file, frame)
    source, destination = (
        np.where(reverse, destination, source),
        np.where(reverse, source, destination),
    )
    if "direction" not in frame.columns:
        both = _stand_once(source, destination, rail, len(nodes), len(rails))
    kept = measured & ~own
    return Matrix(
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
        num_empty=int((~measured & ~own).sum()),
        num_self=int(own.sum()),
        origin=file.name,
    ).rows(kept)


def _values(file: _File, frame: pl.DataFrame, own: Flags) -> tuple[Values, Flags]:
    """Return values, and which were measured; a node with itself may have any."""
    texts = frame["value"]
    numbers = texts.cast(pl.Float64, strict=False)
    odd = ~(numbers.is_finite() & (numbers >= 0)).fill_null(value=False)
    if odd.any():
        strange = texts.filter(odd)
        wrong = ~strange.str.to_lowercase().is_in(_EMPTY) & ~pl.Series(own).filter(odd)
        if wrong.any():
            row = int(np.flatnonzero(odd.to_numpy())[int(wrong.arg_max() or 0)])
            file.refuse("no value of a pair", row, "a number of at least 0, or nothing", texts[row])
    measured = ~odd.to_numpy()
    return np.where(measured, numbers.fill_null(0.0).to_numpy(), 1.0), measured


def _codes(column: pl.Series, names: list[str]) -> Indices:
    return column.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int32)


def _labels(frame: pl.DataFrame, column: str) -> tuple[tuple[str, ...], Indices]:
    if column not in frame.columns:
        return ("",), np.zeros(len(frame), dtype=np.int32)
    names = sorted(frame[column].unique(), key=natural)
    return tuple(names), _codes(frame[column], names)


def _rounds(file: _File, frame: pl.DataFrame) -> Indices:
    if "round" not in frame.columns:
        return np.full(len(frame), -1, dtype=np.int32)
    # A table program writes whole numbers beside empty cells as 3.0.
    texts = frame["round"].str.strip_suffix(".0")
    numbers = texts.cast(pl.Int32, strict=False)
    bad = numbers.is_null() & (texts != "")
    if bad.any():
        row = int(bad.arg_max() or 0)
        file.refuse("no number of a round", row, "a whole number", frame["round"][row])
    return numbers.fill_null(-1).to_numpy().astype(np.int32)


def _quantity(unit: str) -> str:
    """Return what a value in ``unit`` is.

    Raises:
        UnitError: it is nothing that a pair has.
    """
    measured = dimension(unit)
    if measured not in QUANTITIES:
        raise UnitError(
            "no unit of a pair's value", expected="a bandwidth, a rate or a time", got=unit
        )
    return QUANTITIES[measured][0]


def _kinds(file: _File, frame: pl.DataFrame, unit: str) -> tuple[tuple[Kind, ...], Indices, Values]:
    """Return the kinds, the kind of each row, and the factor of its value to the kind's unit."""
    written, unit_of = _labels(frame, "unit")
    sizes, size_of = _labels(frame, "size")
    unit = file.unit or unit
    units = [_known_unit(file, text or unit, unit_of == at) for at, text in enumerate(written)]
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
        quantity = _quantity(name) if name else file.quantity or "bandwidth"
        kinds.append(Kind(quantity=quantity, unit=name, size=size))
    return tuple(kinds), kind.astype(np.int32), factors[unit_of]


def _known_unit(file: _File, text: str, rows: Flags) -> str:
    try:
        name = canonical_unit(text) if text else ""
        quantity = _quantity(name) if name else ""
    except UnitError as error:
        file.refuse(error.problem, int(rows.argmax()), error.expected or "a known unit", text)
    if quantity and file.quantity not in {"", quantity}:
        row = int(rows.argmax())
        file.refuse(f"the column of a {file.quantity} has a {quantity}", row, file.quantity, text)
    return name


def _check_zero(
    file: _File, frame: pl.DataFrame, is_zero: Flags, kinds: tuple[Kind, ...], kind: Indices
) -> None:
    """Refuse a latency of 0; a bandwidth of 0 is a pair over which nothing arrived."""
    times = np.array([each.lower_is_better for each in kinds], dtype=bool)
    bad = times[kind] & is_zero
    if bad.any():
        row = int(bad.argmax())
        file.refuse("no latency of a pair", row, "more than 0", frame["value"][row])


def _directions(file: _File, frame: pl.DataFrame) -> tuple[Flags, Flags]:
    """Return which rows are from b to a, and which are both ways."""
    if "direction" not in frame.columns:
        none = np.zeros(len(frame), dtype=bool)
        return none, none
    words = frame["direction"].str.to_lowercase()
    unknown = ~words.is_in(sorted(_FORWARD | _REVERSE | _BOTH))
    if unknown.any():
        row = int(unknown.arg_max() or 0)
        file.refuse("unknown direction", row, "ab, ba or both", frame["direction"][row])
    reverse, both = (words.is_in(sorted(each)).to_numpy() for each in (_REVERSE, _BOTH))
    return reverse, both


def _stand_once(
    source: Indices, destination: Indices, rail: Indices, num_nodes: int, num_rails: int
) -> Flags:
    """Tell which rows have no row of the other direction over the same rail."""
    forth = (source.astype(np.int64) * num_nodes + destination) * num_rails + rail
    back = (destination.astype(np.int64) * num_nodes + source) * num_rails + rail
    cells = num_nodes * num_nodes * num_rails
    if cells <= _MOST_CELLS:
        stands = np.zeros(cells, dtype=bool)
        stands[forth] = True
        return np.asarray(~stands[back])
    return ~np.isin(back, forth)


def _without_repeats(matrix: Matrix) -> Matrix:
    """Return one row for rows of the same pair, rail, direction, round and kind.

    It is their median, of an even number the better of the two in the middle: a pair that was
    good once in two looks is not slow.
    """
    low = np.where(matrix.both_ways, np.minimum(matrix.source, matrix.destination), matrix.source)
    high = np.where(
        matrix.both_ways, np.maximum(matrix.source, matrix.destination), matrix.destination
    )
    rounds = matrix.round.astype(np.int64) - (int(matrix.round.min()) if len(matrix) else 0)
    key = low.astype(np.int64)
    for part, count in (
        (high, len(matrix.nodes)),
        (matrix.rail, len(matrix.rails)),
        (matrix.both_ways, 2),
        (rounds, int(rounds.max(initial=0)) + 1),
        (matrix.kind, len(matrix.kinds)),
    ):
        key = key * count + part
    unique = pl.Series(key).n_unique() if len(key) else 0
    if unique == len(key):
        return matrix
    goodness = matrix.goodness
    order = np.lexsort((goodness, key))
    _, starts, counts = np.unique(key[order], return_index=True, return_counts=True)
    kept = matrix.rows(order[starts + counts // 2])
    return replace(kept, num_repeated=len(key) - unique)
