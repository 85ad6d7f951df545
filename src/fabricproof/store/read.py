"""Open the history of a site and take from it what a question needs."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricproof.errors import InputMissingError
from fabricproof.provenance import identity_of
from fabricproof.records import read_records
from fabricproof.store.direction import SETTINGS, better
from fabricproof.store.labels import labels
from fabricproof.store.model import FIELDS, Key, Matrix, Run

if TYPE_CHECKING:
    import polars as pl

#: columns beside those of :data:`FIELDS`
FACTS: tuple[str, ...] = (
    "run_id", "attempt", "counts", "value", "verdict", "reason", "ceiling", "ceiling_name",
    "reference", "lower", "upper", "origin", "road_state", "job_id", "completed", "inventory",
    "environment_digest", "stage_folder", "file", "line",
)  # fmt: skip


_WHOLE = frozenset({"message_size", "better", "attempt", "line"})
_NUMBERS = frozenset({"value", "ceiling", "reference", "lower", "upper", "completed"})
_YES_NO = frozenset({"named", "counts"})


def _schema() -> dict[str, str]:
    kinds = {**dict.fromkeys(_WHOLE, "Int64"), **dict.fromkeys(_NUMBERS, "Float64")}
    kinds |= dict.fromkeys(_YES_NO, "Boolean")
    return {name: kinds.get(name, "String") for name in (*FIELDS, *FACTS)}


@dataclass(frozen=True, kw_only=True)
class Store:
    """The history of one site.

    Attributes:
        site: its name.
        runs: oldest first.
        notes: what was passed over while reading, one sentence each; nothing is lost in silence.
        labels: name -> the runs that people gave it (:mod:`fabricproof.store.labels`).
    """

    site: str
    runs: tuple[Run, ...]
    notes: tuple[str, ...]
    _rows: pl.DataFrame
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def samples(self, run_ids: Iterable[str]) -> pl.DataFrame:
        """Return every quantity of every attempt of these runs: columns FIELDS and FACTS."""
        import polars as pl  # noqa: PLC0415 - start-up time

        return self._rows.filter(pl.col("run_id").is_in(list(run_ids)))

    def matrix(
        self,
        run_ids: Iterable[str],
        *,
        across: Iterable[str] = (),
        renamed: Mapping[str, str] | None = None,
    ) -> Matrix:
        """Return the numbers that counted, quantities by runs.

        Args:
            run_ids: which runs; their columns are in the order of :attr:`runs`.
            across: fields of the key in which numbers may differ (``build``, ``nodes``); of such
                a field the key says ``*`` where it does.
            renamed: node as an old record calls it, to its name of today.
        """
        import numpy as np  # noqa: PLC0415 - start-up time
        import polars as pl  # noqa: PLC0415

        wanted = set(run_ids)
        runs = tuple(each for each in self.runs if each.run_id in wanted)
        column = {each.run_id: index for index, each in enumerate(runs)}
        rows = self.samples(wanted).filter(pl.col("counts"))
        rows = _with_new_names(rows, renamed or {}).with_columns(
            pl.lit("*").alias(name) for name in across
        )
        joined = rows.group_by(FIELDS, maintain_order=True).agg(
            "run_id", "value", "verdict", "reason"
        )
        keys = tuple(Key(**each) for each in joined.select(FIELDS).iter_rows(named=True))
        values = np.full((len(keys), len(runs)), np.nan)
        verdicts = [[""] * len(runs) for _ in keys]
        aside: list[tuple[int, int, str]] = []
        columns = joined.select("run_id", "value", "verdict", "reason").iter_rows()
        for row, (ids, numbers, words, reasons) in enumerate(columns):
            found: dict[int, list[float]] = {}
            for run_id, number, word, reason in zip(ids, numbers, words, reasons, strict=True):
                here = column[run_id]
                verdicts[row][here] = word
                if usable(number, word):
                    found.setdefault(here, []).append(number)
                elif number is not None:
                    aside.append((row, here, f"{word}: {reason}"))
            for here, several in found.items():
                values[row, here] = statistics.median(several)
        return Matrix(
            keys=keys,
            runs=runs,
            values=values,
            verdicts=tuple(map(tuple, verdicts)),
            set_aside=tuple(aside),
        )


def usable(value: float | None, verdict: str) -> bool:
    """Tell whether a number is a measurement: positive, finite, and not INVALID."""
    return value is not None and 0 < value < float("inf") and verdict != "INVALID"


def _with_new_names(rows: pl.DataFrame, renamed: Mapping[str, str]) -> pl.DataFrame:
    if not renamed:
        return rows
    import polars as pl  # noqa: PLC0415 - start-up time

    def again(nodes: str) -> str:
        return ",".join(sorted(renamed.get(node, node) for node in nodes.split(",")))

    return rows.with_columns(pl.col("nodes").map_elements(again, return_dtype=pl.String))


def open_store(perflogs: Path, site: str) -> Store:
    """Read the history of ``site`` below ``perflogs``.

    Raises:
        InputMissingError: there is none.
        ParseError: a damaged record that no crash explains.
    """
    import polars as pl  # noqa: PLC0415 - start-up time

    paths = sorted((perflogs / site).glob("*/records.jsonl"))
    if not paths:
        raise InputMissingError(
            f"nothing was measured on {site} yet",
            source=str(perflogs / site),
            expected="records.jsonl below a partition",
            next_step=f"fabricproof run --site {site} -t quick",
        )
    notes: list[str] = []
    rows = [
        _row(record, str(path), number)
        for path in paths
        for number, record in enumerate(read_records(path, on_torn=notes.append), start=1)
        if record.get("kind") == "quantity"
    ]
    schema = {name: getattr(pl, kind) for name, kind in _schema().items()}
    frame = pl.DataFrame(rows, schema=schema)
    known = labels(perflogs, site, on_torn=notes.append)
    return Store(site=site, runs=_runs(rows), notes=tuple(notes), _rows=frame, labels=known)


def _row(record: Mapping[str, Any], file: str, line: int) -> dict[str, Any]:
    """Return a record as a row of the table."""
    unit = record["quantity_unit"]
    lower, upper = record.get("quantity_lower"), record.get("quantity_upper")
    identity = identity_of(record)
    attributes = record.get("attributes") or {}
    inventory = record.get("inventory") or {}
    return {
        **{name: record.get(name) or "" for name in FIELDS},
        "build": identity.short if identity else "",
        "tool_version": record.get("tool_version") or "",
        "rails": ",".join(record.get("rails") or ()),
        "nodes": ",".join(sorted(record.get("nodes") or ())),
        "settings": " ".join(
            f"{name}={attributes[name]}" for name in SETTINGS if name in attributes
        ),
        "quantity": record["quantity_name"],
        "unit": unit,
        "message_size": record.get("quantity_message_size"),
        "better": better(unit, lower, upper),
        "named": bool(record.get("quantity_named", True)),
        **{name: record.get(name) for name in FACTS if name in record},
        "value": record["quantity_value"],
        **{
            name: record.get(f"quantity_{name}")
            for name in ("verdict", "reason", "ceiling", "ceiling_name", "reference", "origin")
        },
        "lower": lower,
        "upper": upper,
        "inventory": ",".join(
            f"{node}={digest or ''}" for node, digest in sorted(inventory.items())
        ),
        "file": file,
        "line": line,
    }


def _runs(rows: Sequence[Mapping[str, Any]]) -> tuple[Run, ...]:
    runs: dict[str, Run] = {}
    for row in rows:
        known = runs.get(row["run_id"]) or Run(
            run_id=row["run_id"], start=start_of(row["run_id"], row["completed"])
        )
        seen = dict(known.inventory)
        for node, _, digest in (each.partition("=") for each in row["inventory"].split(",")):
            if node:
                seen[node] = digest or None if seen.get(node, digest) == digest else None
        runs[row["run_id"]] = replace(
            known,
            inventory=seen,
            builds={**known.builds, row["stack"]: row["build"]},
            rows=known.rows + 1,
        )
    return tuple(sorted(runs.values(), key=lambda run: run.start))


def start_of(run_id: str, completed: float | None) -> datetime.datetime:
    """Return when a run began: its identity says so; else when its first job was over."""
    try:
        stamp = datetime.datetime.strptime(run_id.partition("-")[0], "%Y%m%dT%H%M%SZ")
        return stamp.replace(tzinfo=datetime.UTC)
    except ValueError:
        return datetime.datetime.fromtimestamp(completed or 0.0, tz=datetime.UTC)
