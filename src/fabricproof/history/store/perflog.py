"""ReFrame's own perflogs as rows: for runs whose records are lost, and to hold the two together.

They say one number for each quantity and whether the whole check passed.  What they do not say
(the rails, the tool's setting and version) stays unknown: an empty field of the key, which is like
no other.
"""

from __future__ import annotations

import datetime
import re
from io import BytesIO
from typing import TYPE_CHECKING

from fabricproof.core.units import parse_size
from fabricproof.history.store.files import count_bytes
from fabricproof.history.store.model import FIELDS
from fabricproof.history.store.parse import Parsed
from fabricproof.history.store.schema import FACTS, better_rows, kind_of

if TYPE_CHECKING:
    import polars as pl

#: columns that are read; a file has them in any order, with others, or lacks some
COLUMNS = (
    "job_completion_time", "run_id", "system", "partition", "environ", "unique_name", "fabric",
    "suite", "program", "jobid", "job_nodelist", "result", "perf_var", "perf_value", "perf_unit",
    "perf_ref", "perf_lower_thres", "perf_upper_thres", "environment_digest", "stack_digest",
)  # fmt: skip

#: what a line of column names has and no line of numbers
_HEADER_MARK = b"|system|"

#: a road and a quantity are joined by a dot; these begin a quantity, else what is behind the last
_SPLIT = re.compile(r"(.*?)\.((?:bandwidth|latency|message_rate|overlap|own_choice)(?:_.*)?)$")
_SPLIT_LAST = re.compile(r"(.*)\.([^.]*)$")
_WHOLE = re.compile(r"()(.*)$")
_SIZE = re.compile(r"_(\d+(?:B|KiB|MiB|GiB))$")

#: how ReFrame writes what it does not know
_NULLS = ["null", "None"]


def parse_log(
    data: bytes, file: str, first_line: int, header: tuple[str, ...]
) -> tuple[Parsed, tuple[str, ...]]:
    """Return the rows of a piece of a perflog, and the column names that hold at its end.

    Args:
        data: whole lines.
        file: its name, for notes.
        first_line: number of the line that ``data`` begins with.
        header: the column names that hold at its beginning; empty at the beginning of a file.
    """
    import polars as pl  # noqa: PLC0415 - start-up time

    notes: list[str] = []
    tables = []
    number = first_line
    for block, is_header in _blocks(data):
        if is_header:
            header = tuple(block.decode("utf-8", errors="replace").strip().split("|"))
        elif header:
            tables += _table(block, header, file, number, notes)
        elif block.strip():
            notes.append(f"{file}:{number}: no line of column names stands before these")
        number += count_bytes(block, b"\n") + 1
    raw = pl.concat(tables, how="diagonal") if tables else pl.DataFrame(schema={"line": pl.Int64})
    return Parsed(rows=rows_of(raw), notes=tuple(notes)), header


def _blocks(data: bytes) -> list[tuple[bytes, bool]]:
    """Return ``data`` cut at lines of column names: (lines, whether it is such a line)."""
    found: list[tuple[bytes, bool]] = []
    start = 0
    while (mark := data.find(_HEADER_MARK, start)) >= 0:
        begin = data.rfind(b"\n", start, mark) + 1 or start
        end = data.find(b"\n", mark)
        end = len(data) if end < 0 else end
        if begin > start:
            found.append((data[start : begin - 1], False))
        found.append((data[begin:end], True))
        start = end + 1
    if start < len(data):
        found.append((data[start:], False))
    return found


def _table(
    block: bytes, header: tuple[str, ...], file: str, first_line: int, notes: list[str]
) -> list[pl.DataFrame]:
    """Return the rows below one line of column names; none where no line has all columns."""
    import polars as pl  # noqa: PLC0415 - start-up time

    try:
        table = _read(block, header)
        whole_lines = count_bytes(block, b"\n") + (not block.endswith(b"\n"))
        # A line that is too long is refused there, one that is too short is filled up.
        bars = table.height * (len(header) - 1)
        if table.height == whole_lines and count_bytes(block, b"|") == bars:
            lines = pl.int_range(first_line, first_line + table.height, dtype=pl.Int64, eager=True)
            return [_long(table.with_columns(lines.alias("line")))]
    except pl.exceptions.PolarsError:
        pass
    whole: list[bytes] = []
    numbers: list[int] = []
    for number, line in enumerate(block.split(b"\n"), start=first_line):
        if line.count(b"|") == len(header) - 1:
            whole.append(line)
            numbers.append(number)
        elif line.strip():
            notes.append(
                f"{file}:{number}: not {len(header)} columns as its heading says, passed over"
            )
    if not whole:
        return []
    return [_long(_read(b"\n".join(whole), header).with_columns(pl.Series("line", numbers)))]


def _read(block: bytes, header: tuple[str, ...]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - start-up time

    wanted = [
        index for index, name in enumerate(header) if name in COLUMNS or _is_wide(name, header)
    ]
    names = {f"column_{index + 1}": name for index, name in enumerate(header)}
    return pl.read_csv(
        BytesIO(block),
        separator="|",
        quote_char=None,
        has_header=False,
        schema=dict.fromkeys(names, pl.String),
        columns=wanted,
        encoding="utf8-lossy",
        null_values=_NULLS,
    ).rename(lambda name: names[name])


def _is_wide(name: str, header: tuple[str, ...]) -> bool:
    return "perf_value" not in header and name.endswith(
        ("_value", "_unit", "_ref", "_lower_thres", "_upper_thres", "name")
    )


def _long(table: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each quantity of a perflog that has one row for each job."""
    import polars as pl  # noqa: PLC0415 - start-up time

    if "perf_value" in table.columns:
        return table
    # ReFrame's own default: one row for each job, columns named after its variables.
    if "unique_name" not in table.columns:
        other = next((name for name in ("display_name", "name") if name in table.columns), None)
        first = pl.col(other).str.extract(r"^(\S*)") if other else pl.lit("")
        table = table.with_columns(first.alias("unique_name"))
    common = [name for name in (*COLUMNS, "line") if name in table.columns]
    quantities = [name.removesuffix("_value") for name in table.columns if name.endswith("_value")]
    parts = ("value", "unit", "ref", "lower_thres", "upper_thres")
    tables = [
        table.select(
            *common,
            pl.lit(name).alias("perf_var"),
            *(
                pl.col(f"{name}_{part}").alias(f"perf_{part}")
                for part in parts
                if f"{name}_{part}" in table.columns
            ),
        )
        for name in quantities
    ]
    return pl.concat(tables, how="diagonal") if tables else table.clear()


def rows_of(raw: pl.DataFrame) -> pl.DataFrame:
    """Return what ReFrame says of quantities as rows: columns FIELDS and FACTS without ``file``.

    Args:
        raw: :data:`COLUMNS` as text, those it has, and ``line``.
    """
    import polars as pl  # noqa: PLC0415 - start-up time

    raw = raw.with_columns(
        pl.lit(None, dtype=pl.String).alias(name) for name in COLUMNS if name not in raw.columns
    )
    reference = pl.col("perf_ref").cast(pl.Float64, strict=False)
    stated = pl.when(reference != 0).then(reference)
    given = {
        side: stated + stated.abs() * pl.col(f"perf_{side}_thres").cast(pl.Float64, strict=False)
        for side in ("lower", "upper")
    }
    variable = pl.col("perf_var")
    raw = raw.filter(variable.is_not_null() & (variable != ""))
    raw = raw.with_columns(
        _completed(raw),
        value=pl.col("perf_value").cast(pl.Float64, strict=False),
        reference=stated,
        unit=pl.col("perf_unit").fill_null(""),
        **given,
    ).with_columns(verdict=_verdict())
    raw = raw.join(_quantities(raw), on="perf_var", how="left", maintain_order="left")
    return _named(raw.with_columns(better=better_rows(), reason=_reason()))


def _named(raw: pl.DataFrame) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - start-up time

    columns: dict[str, pl.Expr | pl.Series] = {
        "site": pl.col("system"),
        "stack": pl.col("environ"),
        "build": pl.col("stack_digest").str.slice(0, 12),
        "check": _checks(raw),
        "nodes": _sorted_nodes(raw),
        "job_id": pl.col("jobid"),
        "named": pl.lit(True),
        "counts": pl.lit(True),
        "attempt": pl.lit(0, dtype=pl.Int64),
        "run_id": _runs(raw),
    }
    rows = raw.with_columns(**columns)
    texts = {*FIELDS, "inventory"}
    return rows.select(
        _cast(name, is_there=name in rows.columns, never_null=name in texts)
        for name in (*FIELDS, *FACTS)
        if name != "file"
    )


def _runs(raw: pl.DataFrame) -> pl.Expr:
    """Return the runs; of a perflog of somebody else's the days stand for them."""
    import polars as pl  # noqa: PLC0415 - start-up time

    if not raw["run_id"].null_count():
        return pl.col("run_id")
    day = pl.from_epoch(pl.col("completed").cast(pl.Int64)).dt.strftime("%Y%m%dT000000Z-perflog")
    return pl.coalesce(pl.col("run_id"), day, pl.lit("unknown-perflog"))


def _checks(raw: pl.DataFrame) -> pl.Series:
    """Return the checks' names without the numbers that ReFrame gives to parameters."""
    import polars as pl  # noqa: PLC0415 - start-up time

    names = raw["unique_name"]
    known = {name: name and re.sub(r"_\d+\Z", "", name) for name in names.unique()}
    return names.replace_strict(known, return_dtype=pl.String).alias("check")


def _cast(name: str, *, is_there: bool, never_null: bool) -> pl.Expr:
    """Return a column in the type it is kept in; text that nobody said is empty in a key."""
    import polars as pl  # noqa: PLC0415 - start-up time

    column = (pl.col(name) if is_there else pl.lit(None)).cast(kind_of(name))
    return (column.fill_null("") if never_null and kind_of(name) == pl.String else column).alias(
        name
    )


def _verdict() -> pl.Expr:
    import polars as pl  # noqa: PLC0415 - start-up time

    value = pl.col("value")
    outside = ((value < pl.col("lower")) | (value > pl.col("upper"))).fill_null(value=False)
    return (
        pl.when(value.is_null())
        .then(pl.lit("MISSING"))
        .when(pl.col("result") == "pass")
        .then(pl.lit("PASS"))
        .when(outside)
        .then(pl.lit("FAIL"))
        .otherwise(pl.lit("UNJUDGED"))
    )


def _reason() -> pl.Expr:
    import polars as pl  # noqa: PLC0415 - start-up time

    said = pl.concat_str(
        pl.lit("no record is left; ReFrame says that the whole check ended: "),
        pl.col("result").fill_null("unknown"),
    )
    return pl.when(pl.col("verdict") == "PASS").then(pl.lit("")).otherwise(said)


def _completed(raw: pl.DataFrame) -> pl.Series:
    """Return the times of completion in seconds; a time without a zone is this machine's."""
    import polars as pl  # noqa: PLC0415 - start-up time

    texts = raw["job_completion_time"]
    known = {text: _seconds(text) for text in texts.unique()}
    return texts.replace_strict(known, return_dtype=pl.Float64).alias("completed")


def _seconds(text: str | None) -> float | None:
    try:
        return datetime.datetime.fromisoformat(text or "").timestamp()
    except ValueError:
        return None


def _sorted_nodes(raw: pl.DataFrame) -> pl.Series:
    import polars as pl  # noqa: PLC0415 - start-up time

    texts = raw["job_nodelist"].fill_null("")
    known = {text: _expanded(text) for text in texts.unique()}
    return texts.replace_strict(known, return_dtype=pl.String).alias("nodes")


def _expanded(text: str) -> str:
    if "[" in text:
        from ClusterShell.NodeSet import NodeSet, NodeSetException  # noqa: PLC0415 - rarely needed

        try:
            return ",".join(sorted(NodeSet(text)))
        except NodeSetException:
            return text
    return ",".join(sorted(filter(None, text.split(","))))


def _quantities(raw: pl.DataFrame) -> pl.DataFrame:
    """Return each variable with its leg, its quantity and the message size that its name says."""
    import polars as pl  # noqa: PLC0415 - start-up time

    names = raw["perf_var"].unique().to_list()
    parts = [
        (_SPLIT.match(name) or _SPLIT_LAST.match(name) or _WHOLE.match(name)) for name in names
    ]
    told = [match.groups() if match else ("", "") for match in parts]
    sizes = [_SIZE.search(name) for name in names]
    return pl.DataFrame(
        {
            "perf_var": names,
            "leg": [leg for leg, _ in told],
            "quantity": [quantity for _, quantity in told],
            "message_size": [parse_size(size[1]) if size else None for size in sizes],
        },
        schema={"perf_var": pl.String, "leg": pl.String, "quantity": pl.String,
                "message_size": pl.Int64},
    )  # fmt: skip
