"""The columns that history is kept in, and their types; what makes a number usable or better."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabricproof.history.store.model import FIELDS

if TYPE_CHECKING:
    import polars as pl

#: columns beside those of :data:`FIELDS`
FACTS: tuple[str, ...] = (
    "run_id", "attempt", "counts", "value", "verdict", "reason", "ceiling", "ceiling_name",
    "reference", "lower", "upper", "origin", "source", "road_state", "job_id", "completed",
    "inventory", "environment_digest", "stage_folder", "file", "line",
)  # fmt: skip

#: columns of a row as it is kept: the key and the run are numbers that tables beside explain
KEPT: tuple[str, ...] = (
    "key", "run", *(name for name in FACTS if name not in {"run_id", "file"}), "usable",
)  # fmt: skip

#: columns in which two lines that say the same agree; whatever else they hold follows from these
SAME: tuple[str, ...] = (
    "key", "run", "attempt", "counts", "value", "verdict", "job_id", "completed", "stage_folder",
)  # fmt: skip

_WHOLE = frozenset({"message_size", "better", "attempt", "line"})
_NUMBERS = frozenset({"value", "ceiling", "reference", "lower", "upper", "completed"})
_YES_NO = frozenset({"named", "counts", "usable"})

#: the tool's own setting, of all that it says of a run; what it measured beside (retransmits,
#: bytes moved, the MTU that TCP found) is a result and tells no two quantities apart.
SETTINGS = (
    "binary", "datatype", "group", "mode", "num_pairs", "num_processes", "protocol", "streams",
    "synchronization", "threads", "window_creation", "window_size",
)  # fmt: skip

#: units of which more is better, and less
_HIGHER, _LOWER = ("1/s", "MB/s", "MiB/s"), ("ms", "us")

#: a verdict that spoils a number, however good it looks
INVALID = "INVALID"


def kind_of(column: str) -> type[pl.DataType]:
    """Return the type of a column."""
    import polars as pl  # noqa: PLC0415 - start-up time

    if column in {"key", "run"}:
        return pl.UInt32
    if column in _WHOLE:
        return pl.Int64
    if column in _NUMBERS:
        return pl.Float64
    return pl.Boolean if column in _YES_NO else pl.String


def schema(columns: tuple[str, ...] = (*FIELDS, *FACTS)) -> dict[str, type[pl.DataType]]:
    """Return column -> type; of a table of samples where no columns are named."""
    return {name: kind_of(name) for name in columns}


def usable(value: float | None, verdict: str) -> bool:
    """Tell whether a number is a measurement: positive, finite, and not INVALID."""
    return value is not None and 0 < value < float("inf") and verdict != INVALID


def usable_rows() -> pl.Expr:
    """Return :func:`usable` of a whole table; no row is neither."""
    import polars as pl  # noqa: PLC0415 - start-up time

    value = pl.col("value")
    sound = value.is_finite() & (value > 0) & (pl.col("verdict") != INVALID)
    return sound.fill_null(value=False)


def better_rows() -> pl.Expr:
    """Return 1 where more is better, -1 where less is, 0 where nobody can say.

    A ratio (``x``) is better on the side that has no bound.  Link states, rates and counts are
    facts: the inventory compares them.
    """
    import polars as pl  # noqa: PLC0415 - start-up time

    unit, lower, upper = pl.col("unit"), pl.col("lower"), pl.col("upper")
    one_sided = (unit == "x") & (lower.is_null() != upper.is_null())
    return (
        pl.when(unit.is_in(_HIGHER) | (one_sided & upper.is_null()))
        .then(1)
        .when(unit.is_in(_LOWER) | one_sided)
        .then(-1)
        .otherwise(0)
        .cast(pl.Int64)
    )


def told_apart_by(rows: pl.DataFrame, known: pl.DataFrame) -> tuple[list[str], pl.DataFrame]:
    """Return the fields of a key in which ``rows`` differ, at least one, and like ``known`` keys.

    To compare texts with one text costs less than to hash them all, and most fields of a piece of a
    history are the same throughout.

    Args:
        rows: with columns :data:`FIELDS`.
        known: keys, with these columns too.
    """
    import polars as pl  # noqa: PLC0415 - start-up time

    if rows.is_empty():
        return list(FIELDS), known
    first = {
        name: pl.lit(value, dtype=kind_of(name))
        for name, value in rows.select(FIELDS).row(0, named=True).items()
    }
    same = rows.select(pl.col(name).eq_missing(value).all() for name, value in first.items())
    fields = [name for name, is_same in same.row(0, named=True).items() if not is_same]
    fields = fields or [FIELDS[0]]
    others = [name for name in FIELDS if name not in fields]
    return fields, known.filter(pl.col(name).eq_missing(first[name]) for name in others)
