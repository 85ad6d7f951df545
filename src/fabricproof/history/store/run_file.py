"""A file of records as a table, kept as a Parquet file beside it.

The records are the truth.  The Parquet file names in its metadata what it was made of (name, size
and time of the record file) and is made again where that is no longer so; it may be deleted.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricproof.core.errors import ParseError
from fabricproof.core.measure import QUANTITY_KEYS, QUANTITY_PREFIX
from fabricproof.core.provenance import SHOWN_DIGITS, UNRECORDED
from fabricproof.core.records import FORMAT, KINDS, TORN, damaged, open_lines, torn, unreadable
from fabricproof.core.whole_file import whole_file
from fabricproof.history.late import LateLibrary
from fabricproof.history.store.model import (
    FACTS,
    FIELDS,
    SETTINGS,
    better_rows,
    schema,
    usable_rows,
)
from fabricproof.traffic.disturbance import (
    Disturbance,
    DisturbanceKind,
    largest_of,
    share_taken,
)

if TYPE_CHECKING:
    import polars as pl

    Facts = dict[str, Any]
else:
    pl = LateLibrary("polars")

#: of the columns and of what the metadata says; a Parquet file of another is made again
_TABLE_FORMAT = 1
_METADATA = "fabricproof"

#: columns of the Parquet file; ``key`` is a number for FIELDS, the same in every file
COLUMNS = ("key", *FIELDS, *FACTS)

_TEXTS = (
    "site", "partition", "fabric", "stack", "suite", "program", "tool_version", "check", "leg",
    "run_id", "road_state", "job_id", "stage_folder",
)  # fmt: skip
_OBJECTS = ("inventory", "attributes", "stack_identity", "disturbances", "looks")
_OWN = (
    "name", "unit", "verdict", "reason", "ceiling_name", "origin", "source", "value", "ceiling",
    "reference", "lower", "upper", "message_size", "named",
)  # fmt: skip
#: without these a quantity is damaged
_NEEDED = tuple(QUANTITY_KEYS[each] for each in ("name", "unit", "verdict"))

#: what an attempt of a leg is found by; its numbers and its environment have the same
_ATTEMPT = ("run_id", "partition", "stack", "check", "job_id", "leg", "attempt")

#: Python writes these numbers, JSON knows none of them; a value that is none is unknown
_NO_NUMBER = re.compile(rb": -?(?:NaN|Infinity)\b")


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """One file of records, of one run by its name, of several if somebody joined them.

    Attributes:
        facts: ``runs`` (run_id to rows, beginning, builds, inventory, verdicts of legs), ``looks``
            (runs that only looked again), ``notes``, ``digest``.
        parquet: None where it could not be written; then ``table`` has the rows.
        problem: why it could not be written.
    """

    path: Path
    facts: Mapping[str, Any]
    parquet: Path | None = None
    table: pl.DataFrame | None = None
    problem: str = ""


def open_run_file(path: Path) -> RunFile:
    """Return a record file with its rows, read from the Parquet file if that is up to date.

    Raises:
        InputMissingError: it cannot be read.
        ParseError: a damaged line that no crash explains.
    """
    parquet = path.with_name(path.name.partition(".jsonl")[0] + ".parquet")
    try:
        state = path.stat()
        made_of = [_TABLE_FORMAT, path.name, state.st_size, state.st_mtime_ns]
        try:
            facts = json.loads(pl.read_parquet_metadata(parquet)[_METADATA])
            if facts["made_of"] == made_of:
                return RunFile(path=path, facts=facts, parquet=parquet)
        except (OSError, LookupError, ValueError, pl.exceptions.PolarsError):
            pass  # none, of another version, or damaged
        with open_lines(path) as file:
            data = b"".join(file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ParseError(
            "damaged compressed records",
            source=str(path),
            expected="a whole gzip file",
            got=str(error),
            next_step="compress the plain file again, or take this one away",
        ) from None
    except OSError as error:
        raise unreadable(path, error) from None
    table, facts = read_table(data, path)
    facts["made_of"] = made_of
    try:
        with whole_file(parquet) as file:
            table.write_parquet(file, metadata={_METADATA: json.dumps(facts)})
    except OSError as error:
        return RunFile(path=path, facts=facts, table=table, problem=str(error.strerror))
    return RunFile(path=path, facts=facts, parquet=parquet)


def read_table(data: bytes, path: Path) -> tuple[pl.DataFrame, Facts]:
    """Return the rows of a file of records, columns COLUMNS, and what it says of runs.

    Raises:
        ParseError: a line that is no record of this format, and was not torn by a crash.
    """
    notes: list[str] = []
    lines: dict[bytes, int] = {}
    several = data.split(b"\n")
    num_lines = 0
    for number, line in enumerate(several, start=1):
        text = line.removesuffix(TORN)
        if not text.strip():
            continue
        if (text is not line or number == len(several)) and not _is_json(text):
            notes.append(torn(path, number))
            continue
        lines.setdefault(text, number)
        num_lines += 1
    if num_lines > len(lines):
        notes.append(f"{path}: {num_lines - len(lines)} lines that stand there twice count once")
    is_clean = len(lines) == len(several) - data.endswith(b"\n") and TORN not in data
    records = _parsed(lines, path, data if is_clean else b"\n".join(lines))
    unknown = records.filter(~pl.col("kind").is_in(list(KINDS)))
    for kind, at, more in (
        unknown.group_by("kind", maintain_order=True)
        .agg(pl.col("line").min(), pl.len())
        .iter_rows()
    ):
        others = f" (and {more - 1} more)" if more > 1 else ""
        notes.append(f"{path}:{at}{others}: a record of an unknown kind, {kind!r}, was passed over")
    rows = _rows(records).with_columns(file=pl.lit(f"{path.parent.name}/{path.name}"))
    rows = rows.with_columns(key=_keys(rows)).select(COLUMNS)
    looks = records.filter(pl.col("kind") == "confirmation")["looks"].drop_nulls()
    facts = {
        "runs": _runs(rows, records.filter(pl.col("kind") == "leg").drop_nulls("verdict")),
        "looks": sorted({
            str(look["run_id"])
            for several_looks in map(json.loads, looks)
            for look in several_looks or ()
            if look.get("run_id")
        }),
        "notes": notes,
        "digest": blake2b(data, digest_size=16).hexdigest(),
    }  # fmt: skip
    return rows, facts


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _parsed(lines: Mapping[bytes, int], path: Path, data: bytes) -> pl.DataFrame:
    """Return all records as one table; a line that does not fit its columns is named."""
    table = _table(data, len(lines))
    if table is None:
        several = list(lines)
        while len(several) > 1:
            half = several[: len(several) // 2]
            is_sound = _table(b"\n".join(half), len(half)) is not None
            several = several[len(half) :] if is_sound else half
        raise damaged(path, lines[several[0]], several[0])
    table = table.with_columns(line=pl.Series(lines.values(), dtype=pl.Int64))
    lacks = pl.any_horizontal(pl.col("run_id", *_NEEDED).is_null())
    fits = (pl.col("format") == FORMAT) & ~((pl.col("kind") == "quantity") & lacks)
    bad = table.filter(~fits.fill_null(value=False) | pl.col("kind").is_null())["line"]
    if len(bad):
        raise damaged(path, bad[0], next(text for text in lines if lines[text] == bad[0]))
    return table


def _table(data: bytes, num_lines: int) -> pl.DataFrame | None:
    """Return lines of JSON as a table; None if one does not fit its columns."""
    if b"NaN" in data or b"Infinity" in data:
        data = _NO_NUMBER.sub(b": null", data)
    columns: dict[str, Any] = {
        # An object of any keys comes as its text.
        **dict.fromkeys(("kind", "verdict", *_TEXTS, *_OBJECTS), pl.String),
        **dict.fromkeys(("format", "attempt"), pl.Int64),
        "counts": pl.Boolean,
        "completed": pl.Float64,
        "rails": pl.List(pl.String),
        "nodes": pl.List(pl.String),
        **{QUANTITY_KEYS[name]: kind for name, kind in schema(_OWN).items()},
    }
    if not num_lines:
        return pl.DataFrame(schema=columns)
    try:
        table = pl.read_ndjson(BytesIO(data), schema=columns)
    except (ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    return table if table.height == num_lines else None


def _rows(records: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each quantity: FIELDS and FACTS but ``file``."""
    environments = records.filter(pl.col("kind") == "environment").unique(_ATTEMPT, keep="last")
    others = environments.select(
        *_ATTEMPT, others=_of_each(environments["disturbances"].fill_null("[]"), _others)
    )
    rows = records.filter(pl.col("kind") == "quantity").drop(
        "kind", "verdict", "format", "looks", "disturbances"
    )
    taken = pl.Struct(dict.fromkeys(("cores_share", "wire_share", "burst_us"), pl.Float64))
    rows = rows.join(
        others, on=_ATTEMPT, how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(pl.col("others").str.json_decode(taken).struct.unnest())
    rows = rows.rename({key: key.removeprefix(QUANTITY_PREFIX) for key in QUANTITY_KEYS.values()
                        if key in rows.columns})  # fmt: skip
    facts = {"run_id", "road_state", "job_id", "stage_folder"}
    return rows.with_columns(
        *(pl.col(name).fill_null("") for name in _TEXTS if name not in facts),
        pl.col("named").fill_null(value=True),
        pl.col("name").alias("quantity"),
        rails=pl.col("rails").list.join(",").fill_null(""),
        nodes=pl.col("nodes").list.sort().list.join(",").fill_null(""),
        build=_of_each(
            rows["stack_identity"], lambda each: each.get("digest", UNRECORDED)[:SHOWN_DIGITS]
        ),
        settings=_of_each(
            rows["attributes"],
            lambda each: " ".join(f"{name}={each[name]}" for name in SETTINGS if name in each),
        ),
        inventory=_of_each(
            rows["inventory"],
            lambda each: ",".join(f"{node}={seen or ''}" for node, seen in sorted(each.items())),
        ),
        better=better_rows(),
    )


def _of_each(texts: pl.Series, told: Callable[[Any], str]) -> pl.Series:
    """Return what is told of each object that stands there as JSON; "" if there is none."""
    known = {text: told(json.loads(text)) if text else "" for text in texts.unique()}
    return pl.Series(texts.name, [known[text] for text in texts], dtype=pl.String)


def _others(told: Sequence[Mapping[str, Any]]) -> str:
    """Return what others took of an attempt, as JSON; null if nobody looked, 1 if unknown."""

    def share(kind: DisturbanceKind) -> float | None:
        of_kind = [each for each in found if each.kind is kind]
        if not of_kind:
            return None
        return 1.0 if any(each.share is None for each in of_kind) else share_taken(of_kind)

    try:
        found = [Disturbance(**{**each, "kind": DisturbanceKind(each["kind"])}) for each in told]
        traffic = largest_of(found, DisturbanceKind.FOREIGN_TRAFFIC)
        return json.dumps({
            "cores_share": share(DisturbanceKind.STARVED_CORES),
            "wire_share": share(DisturbanceKind.FOREIGN_TRAFFIC),
            "burst_us": traffic.burst_us if traffic else 0.0,
        })  # fmt: skip
    except (TypeError, ValueError, LookupError):
        return "{}"  # of a later version


def _keys(rows: pl.DataFrame) -> pl.Series:
    """Return a number for the key of each row."""
    texts = rows.select(
        pl.concat_str([pl.col(name).cast(pl.String).fill_null("") for name in FIELDS],
                      separator="\x1f")
    ).to_series()  # fmt: skip
    known = {
        each: int.from_bytes(blake2b(each.encode(), digest_size=8).digest())
        for each in texts.unique()
    }
    return pl.Series([known[each] for each in texts], dtype=pl.UInt64)


def _runs(rows: pl.DataFrame, legs: pl.DataFrame) -> dict[str, Facts]:
    """Return what the rows say of each run."""
    runs: dict[str, Facts] = {
        run_id: {"rows": number, "first": first, "several": 0, "builds": {}, "inventory": {},
                 "legs": {}}
        for run_id, number, first in rows.group_by("run_id").agg(
            pl.len(), pl.col("completed").min()
        ).iter_rows()
    }  # fmt: skip
    counted = rows.filter(pl.col("counts") & usable_rows()).group_by("run_id", "key").len()
    for run_id, number in counted.filter(pl.col("len") > 1)["run_id"].value_counts().iter_rows():
        runs[run_id]["several"] = number
    for run_id, stack, build in rows.select("run_id", "stack", "build").unique().iter_rows():
        runs[run_id]["builds"][stack] = build
    for run_id, text in rows.select("run_id", "inventory").unique().iter_rows():
        add_seen(runs[run_id]["inventory"], (each.split("=") for each in text.split(",") if each))
    for run_id, verdict, number in legs.group_by("run_id", "verdict").len().iter_rows():
        if run_id in runs:
            runs[run_id]["legs"][verdict] = number
    return runs


def add_seen(nodes: dict[str, str | None], seen: Iterable[Sequence[str | None]]) -> None:
    """Add node and digest to ``nodes``; None if nobody saw it or it changed."""
    for node, digest in seen:
        assert node
        nodes[node] = digest or None if nodes.get(node, digest) == digest else None
