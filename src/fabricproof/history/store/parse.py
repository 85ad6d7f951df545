"""Records to rows, fast where a file is as we write it, and exact everywhere.

A line of a quantity is a few hundred bytes that are its own and a thousand that all sizes of its
leg share.  The shared ones are cut out, compared as text and parsed once; that is four times as
fast as parsing every line whole.  A cut is made at two marks that cannot stand inside a JSON string
(their quotes would be escaped) and both parts must be JSON by themselves, so that a damaged line
never passes.  Whatever is not as expected is read again line by line, which names the line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any

from fabricproof.core.errors import ParseError
from fabricproof.core.measure import QUANTITY_KEYS, QUANTITY_PREFIX
from fabricproof.core.provenance import SHOWN_DIGITS, UNRECORDED
from fabricproof.core.records import FORMAT, KINDS, TORN, damaged, torn
from fabricproof.history.store.model import (
    FACTS,
    FIELDS,
    OBJECTS,
    SETTINGS,
    TEXTS,
    better_rows,
)

if TYPE_CHECKING:
    import polars as pl

#: before and behind what a line has for itself; keys are sorted, see records.append_records
_LEFT = b', "' + QUANTITY_KEYS["ceiling"].encode() + b'": '
_RIGHT = b', "rails": '
_IS_QUANTITY = b'"kind": "quantity"'
_IS_CONFIRMATION = b'"kind": "confirmation"'

#: keys that a quantity cannot be without
_NEEDED = tuple(QUANTITY_KEYS[each] for each in ("name", "unit", "verdict"))

_OWN_TEXT = ("name", "unit", "verdict", "reason", "ceiling_name", "origin", "source")
_OWN_NUMBERS = ("value", "ceiling", "reference", "lower", "upper")


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What a piece of a file held.

    Attributes:
        rows: columns FIELDS and FACTS without ``file``; one for each quantity.
        legs: (run, verdict word) -> how many legs.
        looks: runs that only looked again at what was red in another.
        notes: on lines that a crash tore.
        repeated: lines that stand in the piece already, word for word.
    """

    rows: pl.DataFrame
    legs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    looks: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    repeated: int = 0


class _UnusualError(Exception):
    """The piece is not as we write it; only the slow reading can say what it is."""


@dataclass(kw_only=True)
class _Cut:
    """Lines of quantities, each cut into what it shares and what is its own."""

    shared: dict[bytes, int] = field(default_factory=dict)
    which: list[int] = field(default_factory=list)
    own: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    others: list[bytes] = field(default_factory=list)

    def take(self, shared: bytes, own: bytes, number: int) -> None:
        """Keep the two parts of line ``number``."""
        self.which.append(self.shared.setdefault(shared, len(self.shared)))
        self.own.append(own)
        self.numbers.append(number)


def parse_records(data: bytes, file: str, first_line: int) -> Parsed:
    """Return the rows of a piece of a record file that ends with a whole line.

    Raises:
        ParseError: a line that is no record of this format, and was not torn by a crash.
    """
    import polars as pl  # noqa: PLC0415 - start-up time

    try:
        cut = _cut(data, first_line)
        own = _table(cut.own, _own_schema())
        shared = _table(cut.shared, _shared_schema())
        others = _table(cut.others, _other_schema())
        if not others["kind"].is_in(list(KINDS)).all() or others["kind"].null_count():
            raise _UnusualError
        legs = _legs_of(others)
        rows, repeated = _joined(cut, shared, own)
        return Parsed(rows=rows, legs=legs, looks=_looks_of(cut.others), repeated=repeated)
    except (_UnusualError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return _parse_slowly(data, file, first_line)


def _cut(data: bytes, first_line: int) -> _Cut:
    cut = _Cut()
    for number, line in enumerate(data.split(b"\n"), start=first_line):
        if _IS_QUANTITY not in line:
            if line.strip():
                cut.others.append(line)
            continue
        left = line.find(_LEFT)
        right = line.find(_RIGHT, left)
        if left < 0 or right < 0:
            raise _UnusualError
        cut.take(line[:left] + line[right:], b"{" + line[left + 2 : right] + b"}", number)
    return cut


def _own_schema() -> dict[str, Any]:
    import polars as pl  # noqa: PLC0415 - start-up time

    return {
        **{QUANTITY_KEYS[name]: pl.String for name in _OWN_TEXT},
        **{QUANTITY_KEYS[name]: pl.Float64 for name in _OWN_NUMBERS},
        QUANTITY_KEYS["message_size"]: pl.Int64,
        QUANTITY_KEYS["named"]: pl.Boolean,
    }


def _shared_schema() -> dict[str, Any]:
    import polars as pl  # noqa: PLC0415 - start-up time

    return {
        # Objects of any keys come as their text.
        **dict.fromkeys((*TEXTS, *OBJECTS, "kind"), pl.String),
        "format": pl.Int64,
        "attempt": pl.Int64,
        "counts": pl.Boolean,
        "completed": pl.Float64,
        "rails": pl.List(pl.String),
        "nodes": pl.List(pl.String),
    }


def _other_schema() -> dict[str, Any]:
    import polars as pl  # noqa: PLC0415 - start-up time

    return {"format": pl.Int64, **dict.fromkeys(("kind", "run_id", "verdict"), pl.String)}


def _table(lines: Iterable[bytes], columns: Mapping[str, Any]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - start-up time

    lines = list(lines)
    if not lines:
        return pl.DataFrame(schema=columns)
    table = pl.read_ndjson(BytesIO(b"\n".join(lines)), schema=columns)
    if table.height != len(lines):
        raise _UnusualError
    return table


def _legs_of(others: pl.DataFrame) -> dict[tuple[str, str], int]:
    """Return how many legs of each run have which verdict, from all that is no quantity."""
    import polars as pl  # noqa: PLC0415 - start-up time

    kinds = others["kind"].fill_null("")
    if others["format"].ne_missing(FORMAT).any() or (kinds == "quantity").any():
        raise _UnusualError
    legs = others.filter(pl.col("kind") == "leg").drop_nulls(["run_id", "verdict"])
    counted = legs.group_by("run_id", "verdict", maintain_order=True).len()
    return {(run, word): number for run, word, number in counted.iter_rows()}


def _looks_of(others: Iterable[bytes]) -> frozenset[str]:
    """Return the runs that the records of second looks name."""
    told = [json.loads(line) for line in others if _IS_CONFIRMATION in line]
    return frozenset(
        str(look["run_id"])
        for record in told
        if record.get("kind") == "confirmation" and isinstance(record.get("looks"), list)
        for look in record["looks"]
        if isinstance(look, dict) and look.get("run_id")
    )


def _joined(cut: _Cut, shared: pl.DataFrame, own: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the rows, and how many lines were there already, word for word."""
    import polars as pl  # noqa: PLC0415 - start-up time

    if (
        shared["format"].ne_missing(FORMAT).any()
        or shared["kind"].ne_missing("quantity").any()
        or shared["run_id"].null_count()
        or any(own[name].null_count() for name in _NEEDED)
    ):
        raise _UnusualError
    own = own.rename({name: name.removeprefix(QUANTITY_PREFIX) for name in own.columns})
    alike = ["shared", *(name for name in own.columns if name != "named")]
    rows = own.with_columns(
        pl.Series("shared", cut.which, dtype=pl.UInt32),
        pl.Series("line", cut.numbers, dtype=pl.Int64),
        pl.col("named").fill_null(value=True),
        better=better_rows(),
    ).unique(alike, keep="first", maintain_order=True)
    repeated = own.height - rows.height
    told = _told(shared).with_row_index("shared")
    rows = rows.rename({"name": "quantity"}).join(
        told, on="shared", how="left", maintain_order="left"
    )
    columns = [name for name in (*FIELDS, *FACTS) if name != "file"]
    return rows.select(columns), repeated


def _told(shared: pl.DataFrame) -> pl.DataFrame:
    """Return the columns that quantities share, in the words of a key."""
    import polars as pl  # noqa: PLC0415 - start-up time

    facts = {"run_id", "road_state", "job_id", "stage_folder"}
    words = {
        "build": _of_each(shared["stack_identity"], _build),
        "settings": _of_each(shared["attributes"], _settings),
        "inventory": _of_each(shared["inventory"], _inventory),
    }
    return shared.drop("stack_identity", "attributes").with_columns(
        *(pl.col(name).fill_null("") for name in TEXTS if name not in facts),
        rails=pl.col("rails").list.join(",").fill_null(""),
        nodes=pl.col("nodes").list.sort().list.join(",").fill_null(""),
        **words,
    )


def _of_each(texts: pl.Series, told: Callable[[Mapping[str, Any]], str]) -> pl.Series:
    """Return what is told of each object; of one that is not there what is told of nothing."""
    import polars as pl  # noqa: PLC0415 - start-up time

    known: dict[str | None, str] = {None: ""}
    for text in texts.unique():
        if text is not None:
            try:
                value = json.loads(text)
            except ValueError:
                value = None
            known[text] = told(value) if isinstance(value, dict) else ""
    return pl.Series([known[text] for text in texts], dtype=pl.String)


def _build(identity: Mapping[str, Any]) -> str:
    """Return the beginning of a digest, as ``core.provenance.identity_of`` has it."""
    return str(identity.get("digest", UNRECORDED))[:SHOWN_DIGITS]


def _settings(attributes: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={attributes[name]}" for name in SETTINGS if name in attributes)


def _inventory(seen: Mapping[str, Any]) -> str:
    return ",".join(f"{node}={digest or ''}" for node, digest in sorted(seen.items()))


def _parse_slowly(data: bytes, file: str, first_line: int) -> Parsed:
    """Read a piece line by line; name what is wrong with which line."""
    import polars as pl  # noqa: PLC0415 - start-up time

    try:
        return _read_lines(data, file, first_line, asks_each=False)
    except (ParseError, _UnusualError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        # Which line polars does not read is seen where it is asked of each, for half of the time.
        return _read_lines(data, file, first_line, asks_each=True)


def _read_lines(data: bytes, file: str, first_line: int, *, asks_each: bool) -> Parsed:
    """Read a piece line by line; ``asks_each``: polars is asked whether it reads each record."""
    import polars as pl  # noqa: PLC0415 - start-up time

    notes: list[str] = []
    unknown: dict[str, list[int]] = {}
    cut = _Cut()
    own: list[dict[str, Any]] = []
    for number, line in enumerate(data.split(b"\n"), start=first_line):
        record = _record(line, file, number, notes)
        if record is None:
            continue
        if record["kind"] not in KINDS:
            unknown.setdefault(record["kind"], []).append(number)
        if record["kind"] != "quantity":
            other = json.dumps(record).encode()
            if asks_each and not _fits(other, _other_schema()):
                raise damaged(file, number, line)
            cut.others.append(other)
            continue
        own.append({name: _storable(record.pop(name, None)) for name in _own_schema()})
        shared = json.dumps(record, sort_keys=True).encode()
        sound = not asks_each or (_fits(shared, _shared_schema()) and _fits_own(own[-1]))
        if not sound or not record.get("run_id"):
            raise damaged(file, number, line)
        cut.take(shared, b"", number)
    rows, repeated = _joined(
        cut,
        _table(cut.shared, _shared_schema()),
        pl.DataFrame(own, schema=_own_schema()),
    )
    others = _table(cut.others, _other_schema())
    legs = _legs_of(others.with_columns(format=pl.lit(FORMAT)))
    looks = _looks_of(cut.others)
    notes += _unknown_kinds(unknown, file)
    return Parsed(rows=rows, legs=legs, looks=looks, notes=tuple(notes), repeated=repeated)


def _unknown_kinds(unknown: Mapping[str, Sequence[int]], file: str) -> Iterator[str]:
    for kind, lines in unknown.items():
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        yield f"{file}:{lines[0]}{more}: a record of an unknown kind, {kind!r}, was passed over"


def _fits(record: bytes, columns: Mapping[str, Any]) -> bool:
    """Tell whether polars reads a record: it takes no NaN and no number beyond all columns."""
    import polars as pl  # noqa: PLC0415 - start-up time

    try:
        return _table([record], columns).height == 1
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, _UnusualError):
        return False


def _fits_own(own: Mapping[str, Any]) -> bool:
    """Tell whether a table takes what a quantity has for itself; a value that is none it does."""
    import polars as pl  # noqa: PLC0415 - start-up time

    try:
        table = pl.DataFrame([own], schema=_own_schema())
    except (pl.exceptions.PolarsError, TypeError, OverflowError):
        return False
    return not any(table[name].null_count() for name in _NEEDED)


def _record(line: bytes, file: str, number: int, notes: list[str]) -> dict[str, Any] | None:
    """Return the record of a line; None for an empty one and for one that a crash tore."""
    text = line.removesuffix(TORN)
    if not text.strip():
        return None
    try:
        record = json.loads(text)
    except ValueError:
        if text is line or not line.endswith(TORN):
            raise damaged(file, number, line) from None
        notes.append(torn(file, number))
        return None
    if not isinstance(record, dict):
        raise damaged(file, number, line)
    if record.get("format") != FORMAT:
        raise _other_format(record.get("format"), file, number, line)
    return record


def _storable(value: Any) -> Any:
    """Return a value as a column holds it: JSON can name half characters, which none does."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _other_format(stated: object, file: str, number: int, line: bytes) -> ParseError:
    if not isinstance(stated, int) or stated <= FORMAT:
        return damaged(file, number, line)
    return ParseError(
        "a record of a later format",
        source=file,
        line=number,
        expected=f"format {FORMAT}",
        got=f"format {stated}",
        next_step="read it with the fabricproof that wrote it, or a later one",
    )
