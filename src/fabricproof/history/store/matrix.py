"""The numbers that counted, as a table of quantities by runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from fabricproof.history.store.copy import KeptRows
from fabricproof.history.store.model import FIELDS, Key, Matrix, Run, kind_of
from fabricproof.verdict.value import ERROR_UNIT

if TYPE_CHECKING:
    import numpy.typing as npt

    from fabricproof.history.store.model import Values

    Indices = npt.NDArray[np.int64]


def matrix_of(history: KeptRows, runs: Sequence[Run], *, across: Sequence[str]) -> Matrix:
    """Return the numbers that counted in ``runs``; see ``history.store.Store.matrix``."""
    ids = [each.run_id for each in runs]
    rows = history.rows(ids, ("key", "run", "value", "verdict", "usable"), pl.col("counts"))
    keys, row_of = _groups(history.copy.keys(), rows["key"], across)
    columns = np.zeros(len(history.copy.manifest["runs"]), dtype=np.int64)
    columns[[history.numbers[each] for each in ids]] = np.arange(len(ids))
    place = row_of[rows["key"].to_numpy()] * len(ids) + columns[rows["run"].to_numpy()]
    shape = (len(keys), len(ids))
    return Matrix(
        keys=keys,
        runs=tuple(runs),
        values=_values(place, rows, shape),
        verdicts=_verdicts(place, rows["verdict"], shape),
        set_aside=_set_aside(history, ids, row_of, columns),
    )


def _groups(
    known: pl.DataFrame, present: pl.Series, across: Sequence[str]
) -> tuple[tuple[Key, ...], Indices]:
    """Return the keys of the rows of the matrix, and number of a key -> its row."""
    num_keys = known.height
    known = known[present.unique().sort().to_numpy()]
    known = known.with_columns(_any(name) for name in across)
    groups = known.select(FIELDS).unique(maintain_order=True).with_row_index("row")
    members = known.join(groups, on=FIELDS, nulls_equal=True)
    row_of = np.zeros(num_keys, dtype=np.int64)
    row_of[members["key"].to_numpy()] = members["row"].to_numpy()
    return tuple(Key(**each) for each in groups.select(FIELDS).iter_rows(named=True)), row_of


def _any(name: str) -> pl.Expr:
    """Return what a field says in which numbers may differ: ``*``, of a number nothing."""
    kind = kind_of(name)
    return pl.lit("*" if kind == pl.String else None, dtype=kind).alias(name)


def _values(place: Indices, rows: pl.DataFrame, shape: tuple[int, int]) -> Values:
    """Return the usable numbers; of several in one place their median."""
    sound = rows["usable"].to_numpy()
    numbers = rows["value"].to_numpy()[sound]
    here = place[sound]
    values = np.full(shape[0] * shape[1], np.nan)
    values[here] = numbers
    several = np.bincount(here, minlength=values.size)[here] > 1
    if several.any():
        medians = (
            pl.DataFrame({"place": here[several], "value": numbers[several]})
            .group_by("place")
            .agg(pl.col("value").median())
        )
        values[medians["place"].to_numpy()] = medians["value"].to_numpy()
    return values.reshape(shape)


def _verdicts(
    place: Indices, words: pl.Series, shape: tuple[int, int]
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


def _set_aside(
    history: KeptRows, ids: Sequence[str], row_of: Indices, columns: Indices
) -> tuple[tuple[int, int, str], ...]:
    """Return the numbers that were measured and are not used, each with its reason.

    A rate of errors of zero is none of them: nothing was lost, and no ratio is made of that.
    """
    spoiled = pl.col("counts") & ~pl.col("usable") & pl.col("value").is_not_null()
    units = history.copy.keys()["unit"]
    of_errors = (units == ERROR_UNIT).arg_true().to_list()
    spoiled &= ~(pl.col("key").is_in(of_errors) & (pl.col("value") == 0))
    rows = history.rows(ids, ("key", "run", "verdict", "reason"), spoiled)
    return tuple(
        sorted(
            (int(row_of[key]), int(columns[run]), f"{verdict}: {reason}")
            for key, run, verdict, reason in rows.iter_rows()
        )
    )
