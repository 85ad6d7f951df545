"""Read anybody's matrix: a CSV of ``a,b,value[,rail][,direction][,round][,size][,unit]``.

A Parquet file of the same columns, and what LinkTest and mpiGraph print, are read as well.

A row is what ``a`` sends to ``b``.  A pair that stands once, in a file without a column
``direction`` in which few stand both ways, is both ways.  Columns may have other usual names, and
that of the value its unit: ``source,destination,latency_us``.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl

from fabricproof.core.errors import ConfigError, InputMissingError, ParseError, UnitError
from fabricproof.core.units import canonical_unit, dimension
from fabricproof.pairs.matrix import QUANTITIES, Matrix
from fabricproof.pairs.readers.columns import Table, matrix_of, quantity_of
from fabricproof.pairs.readers.linktest import is_of_linktest, read_linktest
from fabricproof.pairs.readers.mpigraph import is_of_mpigraph, read_mpigraph

#: A larger file is refused: reading takes some ten times its bytes of memory.
MOST_BYTES = 2 * 1024**3

#: a program says who it is in the beginning of its output, behind what launchers say
_BEGINNING = 2**20

#: a Parquet file is small for its rows; of so many a matrix takes some ten GB
MOST_ROWS = 100_000_000

#: how a Parquet file begins
_PARQUET = b"PAR1"

#: how files that hold another begin -> what they are, and how to unpack them
_PACKED = {
    b"\x1f\x8b": ("a file packed by gzip", "gunzip -c FILE | fabricproof pairs judge -"),
    b"BZh": ("a file packed by bzip2", "bunzip2 -c FILE | fabricproof pairs judge -"),
    b"\xfd7zXZ": ("a file packed by xz", "xz -dc FILE | fabricproof pairs judge -"),
    b"\x28\xb5\x2f\xfd": ("a file packed by zstd", "zstd -dc FILE | fabricproof pairs judge -"),
    b"PK\x03\x04": ("a zip archive or a workbook", "save the sheet as CSV, or unzip it"),
}

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


def read_matrix(name: str, *, unit: str = "") -> Matrix:
    """Read the matrix in file ``name``, ``-`` for standard input.

    Columns may come in any order, others are ignored; comma, semicolon or tab part them.  Lines
    that begin with ``#`` are left out.  A Parquet file has the same columns.  The output of
    LinkTest or mpiGraph is known by its words.

    ``unit`` is that of rows that name none; empty: more is better, and no verdict on the level.

    Raises:
        InputMissingError: it cannot be read.
        ParseError: it is no such table; the message has the line.
        ConfigError: ``unit`` is unknown, or of no quantity of a pair.
    """
    if unit:
        unit = _stated(unit)
    data = _bytes(name)
    source = "<stdin>" if name == "-" else name
    if data.startswith(_PARQUET):
        return matrix_of(_of_parquet(data, source), unit).without_repeats()
    printed = _printed(data, source)
    if printed is not None:
        return printed
    return matrix_of(_of_csv(data, source), unit).without_repeats()


def _stated(unit: str) -> str:
    try:
        name = canonical_unit(unit)
        quantity_of(name)
    except UnitError as error:
        raise ConfigError(error.problem, expected=error.expected, got=error.got) from None
    return name


def _printed(data: bytes, source: str) -> Matrix | None:
    """Return the matrix in the output of a program; None where it is of none that is known."""
    beginning = data[:_BEGINNING].decode("utf-8", errors="replace")
    if is_of_mpigraph(beginning):
        return read_mpigraph(data.decode("utf-8", errors="replace"), source)
    if is_of_linktest(beginning):
        return read_linktest(data.decode("utf-8", errors="replace"), source)
    return None


#: reads a Parquet file and keeps nothing
_READ_IT = "import io, sys, polars; polars.read_parquet(io.BytesIO(sys.stdin.buffer.read()))"


def _refuse_damaged(data: bytes, source: str) -> None:
    """Refuse what kills its reader: polars aborts the whole program over some damaged files."""
    done = subprocess.run(
        [sys.executable, "-c", _READ_IT], input=data, capture_output=True, check=False
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        died = f"its reader died with signal {-done.returncode}"
        got = died if done.returncode < 0 else said.partition(": ")[2] or said
        raise ParseError("no table", source=source, expected="Parquet", got=got)


def _of_parquet(data: bytes, source: str) -> Table:
    """Return the columns of a Parquet file, as those of a CSV with the same names."""
    _refuse_damaged(data, source)
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
        raise _no_table(error, source, "Parquet") from None
    return Table(name=source, frame=texts, unit=unit, quantity=quantity)


def _no_table(error: Exception, source: str, expected: str) -> ParseError:
    said = str(error).partition("\n")[0] or type(error).__name__
    return ParseError("no table", source=source, expected=expected, got=said)


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
    _refuse_packed(data, "<stdin>" if name == "-" else name)
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data


def _refuse_packed(data: bytes, name: str) -> None:
    """Refuse a file that holds another."""
    packed = next((words for begin, words in _PACKED.items() if data.startswith(begin)), None)
    if packed is not None:
        got, next_step = packed
        raise ParseError(
            "no text", source=name, expected="a CSV of pairs", got=got, next_step=next_step
        )


def _of_csv(data: bytes, name: str) -> Table:
    """Find the header and what parts its columns, and read the rows below it."""
    if (at := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise ParseError(
            "no text: it has a byte 0", source=name, line=line, expected="a CSV of pairs in UTF-8"
        )
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
        _check_fields(data, name, separator, len(columns))
        frame = _frame(data, name, separator, columns)
        return Table(name=name, frame=frame, unit=unit, quantity=quantity, data=data)
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


def _check_fields(text: bytes, name: str, separator: str, count: int) -> None:
    """Refuse a row with fewer or more fields than the header; a cut row is not an empty value."""
    if b'"' in text:
        _check_quoted(text, name, separator)
        return
    data = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if not len(ends) or ends[-1] != len(data) - 1:
        ends = np.append(ends, len(data))
    marks = np.flatnonzero(data == ord(separator))
    counts = np.diff(np.searchsorted(marks, ends), prepend=0)
    for at in np.flatnonzero(counts != count - 1).tolist():
        begin = 0 if at == 0 else int(ends[at - 1]) + 1
        row = text[begin : int(ends[at])].decode("utf-8", errors="replace")
        if row.strip() and not row.startswith("#"):
            raise _not_as_many(name, at + 1, f"{count}, parted by {separator!r}", row)


def _check_quoted(text: bytes, name: str, separator: str) -> None:
    """Refuse the same where fields stand in quotes, in which a separator may be."""
    lines = (
        "\n" if line.startswith(b"#") else line.decode("utf-8", errors="replace")
        for line in io.BytesIO(text)
    )
    rows = csv.reader(lines, delimiter=separator)
    try:
        count = 0
        for row in rows:
            count = count or len(row)
            is_blank = len(row) < 2 and not "".join(row).strip()
            if len(row) != count and not is_blank:
                expected = f"{count}, parted by {separator!r}"
                raise _not_as_many(name, rows.line_num, expected, separator.join(row))
    except csv.Error as error:
        raise _no_table(error, name, "CSV") from None


def _not_as_many(name: str, line: int, expected: str, row: str) -> ParseError:
    return ParseError(
        "a row has not as many fields as the header",
        source=name,
        line=line,
        expected=expected,
        got=repr(row),
    )


def _frame(data: bytes, name: str, separator: str, columns: list[str]) -> pl.DataFrame:
    """Return the columns as texts, stripped, without the blank lines."""
    wanted = [each for each in columns if each in _OWN]
    if _has_gaps(data):
        lines = (line for line in io.BytesIO(data) if line.strip() and not line.startswith(b"#"))
        data = b"".join(lines)
    try:
        frame = pl.read_csv(
            data,
            separator=separator,
            infer_schema=False,
            encoding="utf8-lossy",
            columns=[columns.index(each) for each in wanted],
        )
    except pl.exceptions.PolarsError as error:
        raise _no_table(error, name, "CSV") from None
    frame.columns = wanted
    return frame.with_columns(pl.all().fill_null("").str.strip_chars())


def _has_gaps(data: bytes) -> bool:
    return data.startswith((b"#", b"\n")) or b"\n#" in data or b"\n\n" in data or b"\n " in data
