"""The history of a site: its runs, and their numbers as quantities by runs."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricproof.core.errors import InputMissingError, ParseError
from fabricproof.core.project import site_option
from fabricproof.core.records import is_named, partition_files, record_files
from fabricproof.history.late import LateLibrary
from fabricproof.history.store.label_file import LOOK_LABEL, labels
from fabricproof.history.store.model import FACTS, FIELDS, Key, Matrix, Run, schema, usable_rows
from fabricproof.history.store.run_file import COLUMNS, RunFile, add_seen, open_run_file
from fabricproof.verdict.value import ERROR_UNIT

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl
else:
    np, pl = LateLibrary("numpy"), LateLibrary("polars")


class NoHistoryError(InputMissingError):
    """No run of a site is in its files, all of which could be read."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """The history of one site.

    Attributes:
        runs: oldest first.
        notes: what was passed over while reading, one sentence each; nothing is lost in silence.
        labels: name -> the runs that people gave it (:mod:`fabricproof.history.store.label_file`);
            of second looks also those that the records name as such.
    """

    site: str
    runs: tuple[Run, ...]
    notes: tuple[str, ...]
    files: tuple[RunFile, ...]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def samples(self, run_ids: Iterable[str], facts: Sequence[str] = FACTS) -> pl.DataFrame:
        """Return every quantity of every attempt of these runs: columns FIELDS and ``facts``.

        Args:
            run_ids: which runs.
            facts: of FACTS those that are needed; each more is read and kept in memory.
        """
        rows = self._rows(run_ids, (*FIELDS, *facts))
        if "file" in facts and self.files:
            folder = f"{self.files[0].path.parent.parent}/"
            rows = rows.with_columns(file=pl.lit(folder) + pl.col("file"))
        return rows

    def matrix(self, run_ids: Iterable[str], *, across: Iterable[str] = ()) -> Matrix:
        """Return the numbers that counted, quantities by runs.

        Args:
            run_ids: which runs; their columns are in the order of :attr:`runs`.
            across: fields of the key in which numbers may differ (``build``, ``nodes``); the
                key says ``*`` there.
        """
        wanted = set(run_ids)
        runs = tuple(each for each in self.runs if each.run_id in wanted)
        ids = [each.run_id for each in runs]
        columns = ("key", "run_id", "value", "verdict")
        usable = usable_rows().alias("usable")
        rows = self._rows(ids, (*columns, usable), pl.col("counts"))
        keys, row_of = self._keys(ids, rows["key"], tuple(across))
        column_of = pl.DataFrame(
            {"run_id": ids, "column": range(len(ids))},
            schema={"run_id": pl.String, "column": pl.Int64},
        )

        def placed(table: pl.DataFrame) -> pl.DataFrame:
            found = table.join(row_of, on="key", how="left", maintain_order="left")
            return found.join(column_of, on="run_id", how="left", maintain_order="left")

        rows = placed(rows)
        place = rows["row"].to_numpy() * len(ids) + rows["column"].to_numpy()
        shape = (len(keys), len(ids))
        # What nobody lost is a good rate of errors, and no number that is set aside.
        spoiled = pl.col("counts") & ~usable_rows() & pl.col("value").is_not_null()
        spoiled &= (pl.col("unit") != ERROR_UNIT) | (pl.col("value") != 0)
        aside = placed(self._rows(ids, ("key", "run_id", "verdict", "reason"), spoiled))
        return Matrix(
            keys=keys,
            runs=runs,
            values=_values(place, rows, shape),
            verdicts=_verdicts(place, rows["verdict"], shape),
            set_aside=tuple(
                sorted(
                    (row, column, f"{verdict}: {reason}")
                    for verdict, reason, row, column in aside.select(
                        "verdict", "reason", "row", "column"
                    ).iter_rows()
                )
            ),
        )

    def _rows(
        self,
        run_ids: Iterable[str],
        columns: Sequence[str | pl.Expr],
        predicate: pl.Expr | None = None,
    ) -> pl.DataFrame:
        """Return some columns of some rows of some runs; only files that have one are opened."""
        wanted = set(run_ids)
        files = [each for each in self.files if wanted & each.facts["runs"].keys()]
        frames = [each.table.lazy() for each in files if each.table is not None]
        if kept := [each.parquet for each in files if each.parquet]:
            frames.insert(0, pl.scan_parquet(kept, schema=schema(COLUMNS), glob=False))
        if not frames:
            frames = [pl.LazyFrame(schema=schema(COLUMNS))]
        rows = pl.concat(frames).filter(pl.col("run_id").is_in(sorted(wanted)))
        if predicate is not None:
            rows = rows.filter(predicate)
        try:
            return rows.select(columns).collect(engine="streaming")
        except (OSError, pl.exceptions.PolarsError) as error:
            raise ParseError(
                "a Parquet file of the history cannot be read",
                source=", ".join(sorted({str(each.parent) for each in kept})),
                got=str(error).splitlines()[0][:80],
                next_step="delete the *.parquet there: they are made again from the records",
            ) from None

    def _keys(
        self, run_ids: Sequence[str], present: pl.Series, across: tuple[str, ...]
    ) -> tuple[tuple[Key, ...], pl.DataFrame]:
        """Return the keys of the rows of a matrix, and the table of key and row."""
        order = present.unique(maintain_order=True)
        missing, found = set(order), []
        for run_id in run_ids:  # most runs have the same keys
            if missing:
                table = self._rows([run_id], ("key", *FIELDS), pl.col("key").is_in(missing))
                found.append(table.unique("key"))
                missing -= set(table["key"])
        known = pl.concat(found) if found else pl.DataFrame(schema=schema(("key", *FIELDS)))
        known = order.to_frame().join(known, on="key", how="left", maintain_order="left")
        stars = {name: pl.lit("*" if known.schema[name] == pl.String else None, known.schema[name])
                 for name in across}  # fmt: skip
        known = known.with_columns(**stars)
        groups = known.select(FIELDS).unique(maintain_order=True).with_row_index("row")
        row_of = known.join(groups, on=FIELDS, nulls_equal=True).select(
            "key", pl.col("row").cast(pl.Int64)
        )
        keys = tuple(Key(**each) for each in groups.select(FIELDS).iter_rows(named=True))
        return keys, row_of


def _values(
    place: npt.NDArray[np.int64], rows: pl.DataFrame, shape: tuple[int, int]
) -> npt.NDArray[np.float64]:
    """Return the usable numbers; of several in one place their median."""
    values = np.full(shape[0] * shape[1], np.nan)
    medians = (
        rows.with_columns(place=place).filter("usable").group_by("place").agg(pl.median("value"))
    )
    values[medians["place"].to_numpy()] = medians["value"].to_numpy()
    return values.reshape(shape)


def _verdicts(
    place: npt.NDArray[np.int64], words: pl.Series, shape: tuple[int, int]
) -> tuple[tuple[str, ...], ...]:
    """Return the verdict of each number; of several in one place that which was written last."""
    known = ["", *words.unique(maintain_order=True)]
    codes = words.replace_strict(known, range(len(known)), return_dtype=pl.UInt8).to_numpy()
    last = np.zeros(shape[0] * shape[1], dtype=np.uint8)
    last[place] = codes
    # Most quantities have the same verdicts throughout: one tuple stands for all of these.
    told: dict[bytes, tuple[str, ...]] = {}
    rows = (each.tobytes() for each in last.reshape(shape))
    return tuple(
        told.get(row) or told.setdefault(row, tuple(known[code] for code in row)) for row in rows
    )


def open_store(perflogs: Path, site: str) -> Store:
    """Read the history of ``site`` below ``perflogs``.

    Raises:
        NoHistoryError: there is none.
        InputMissingError: a file of it cannot be read.
        ParseError: a damaged record that no crash explains.
    """
    folder = perflogs / site
    files: dict[str, RunFile] = {}
    notes: list[str] = []
    for each in map(open_run_file, record_files(folder)):
        first = files.setdefault(each.facts["digest"], each)
        if first is not each:
            notes.append(f"{each.path}: the same records as {first.path}: counted once")
    if problem := next((each for each in files.values() if each.problem), None):
        notes.append(
            f"{problem.path.parent}: no Parquet file can be kept ({problem.problem}); nothing is "
            "lost, the records are read each time"
        )
    notes += _passed_over(folder)
    notes += [note for each in files.values() for note in each.facts["notes"]]
    runs, several = _runs(files.values())
    if not runs:
        raise NoHistoryError(
            f"no run of {site} could be read" if notes else f"nothing was measured on {site} yet",
            source=str(folder),
            expected="records of a run below a partition",
            got="; ".join(dict.fromkeys(notes)) or None,
            next_step=f"fabricproof run {site_option(site)} -t quick",
        )
    notes += several
    known = dict(labels(perflogs, site, on_torn=notes.append))
    if looks := [look for each in files.values() for look in each.facts["looks"]]:
        known[LOOK_LABEL] = tuple(dict.fromkeys((*known.get(LOOK_LABEL, ()), *looks)))
    return Store(
        site=site,
        runs=runs,
        notes=tuple(dict.fromkeys(notes)),
        files=tuple(files.values()),
        labels=known,
    )


def _runs(files: Iterable[RunFile]) -> tuple[tuple[Run, ...], list[str]]:
    """Return the runs, oldest first, and a note if one has several numbers of a quantity."""
    of_run: dict[str, list[Mapping[str, Any]]] = {}
    for file in files:
        for run_id, facts in file.facts["runs"].items():
            of_run.setdefault(run_id, []).append(facts)
    runs, several = [], {}
    for run_id, parts in of_run.items():
        inventory: dict[str, str | None] = {}
        builds: dict[str, str] = {}
        legs: dict[str, int] = {}
        for each in parts:
            add_seen(inventory, each["inventory"].items())
            builds |= each["builds"]
            for verdict, number in each["legs"].items():
                legs[verdict] = legs.get(verdict, 0) + number
        several[run_id] = sum(each["several"] for each in parts)
        first = min((each["first"] for each in parts if each["first"] is not None), default=None)
        runs.append(
            Run(
                run_id=run_id,
                start=start_of(run_id, first),
                inventory=inventory,
                builds=builds,
                rows=sum(each["rows"] for each in parts),
                legs=legs,
            )
        )
    having = sorted(run_id for run_id, number in several.items() if number)
    notes = []
    if having:
        more = f" (and {len(having) - 1} more runs)" if len(having) > 1 else ""
        notes.append(
            f"run {having[0]}{more}: {sum(several.values())} quantities have several counted "
            "numbers in one run: their median is used"
        )
    return tuple(sorted(runs, key=lambda each: (each.start, each.run_id))), notes


def start_of(run_id: str, completed: float | None) -> datetime.datetime:
    """Return when a run began: its identity says so; else when its first job was over."""
    try:
        stamp = datetime.datetime.strptime(run_id.partition("-")[0], "%Y%m%dT%H%M%SZ")
        return stamp.replace(tzinfo=datetime.UTC)
    except ValueError:
        return datetime.datetime.fromtimestamp(completed or 0.0, tz=datetime.UTC)


def _passed_over(site_folder: Path) -> Iterator[str]:
    """Yield a note on what is not read: records by another name, hidden, perflogs without any."""
    files = partition_files(site_folder)
    records = set(record_files(site_folder))
    for path in files:
        is_like = is_named(path, "records*", "*.jsonl.*") and path.suffix != ".parquet"
        if is_like and path not in records:
            yield f"{path}: not read, its name is not *.jsonl or *.jsonl.gz"
    logged = {path.parent for path in files if is_named(path, "*.log", "*.log.h[0-9]*")}
    for folder in sorted(logged - {path.parent for path in records}):
        yield (
            f"{folder}: ReFrame's perflogs are there and no records; what was measured there is in "
            "no comparison (reframe --performance-compare reads ReFrame's own)"
        )
    for path in sorted(site_folder.glob(".*/*T*Z-*.jsonl")):
        yield f"{path}: not read, its folder begins with a dot; a partition's does not"
