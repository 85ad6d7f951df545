"""What the history says of the quantities of one run; work per row is left to polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fabricproof.history.store import FIELDS, Key, Matrix, Run, Store
from fabricproof.report.model import Bounds, RawNumber

if TYPE_CHECKING:
    import polars as pl

_RAW = ("run_id", "attempt", "counts", "value", "verdict", "reason", "file", "line")
_BOUNDS = ("ceiling", "ceiling_name", "reference", "lower", "upper", "origin")


def runs_alike(
    store: Store, run: Run, runs: Sequence[Run], last: int
) -> tuple[tuple[Run, ...], tuple[Key, ...]]:
    """Return the last runs that measured anything that ``run`` did, and the keys of ``run``.

    Args:
        store: the history.
        run: the run that is reported.
        runs: it and those before it, oldest first.
        last: how many runs to return at most.
    """
    wanted = _keys(store.samples([run.run_id]))
    if wanted.is_empty():
        return (), ()
    others = store.samples([each.run_id for each in runs]).select(*FIELDS, "run_id")
    shared = others.join(wanted, on=FIELDS, how="semi", nulls_equal=True)
    ids = set(shared["run_id"].unique().to_list())
    keys = tuple(Key(**each) for each in wanted.iter_rows(named=True))
    return tuple(each for each in runs if each.run_id in ids)[-last:], keys


def _keys(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(FIELDS).unique(maintain_order=True)


def matrix_of(store: Store | None, runs: Sequence[Run], keys: Sequence[Key]) -> Matrix:
    """Return the matrix of ``keys`` by ``runs``; an empty one where there is neither."""
    import numpy as np  # noqa: PLC0415 - start-up time

    if store is None or not runs:
        return Matrix(keys=(), runs=tuple(runs), values=np.empty((0, len(runs))))
    whole = store.matrix([each.run_id for each in runs])
    wanted = set(keys)
    rows = [row for row, key in enumerate(whole.keys) if key in wanted]
    new = {row: index for index, row in enumerate(rows)}
    return Matrix(
        keys=tuple(whole.keys[row] for row in rows),
        runs=whole.runs,
        values=whole.values[rows],
        verdicts=tuple(whole.verdicts[row] for row in rows) if whole.verdicts else (),
        set_aside=tuple(
            (new[row], column, reason) for row, column, reason in whole.set_aside if row in new
        ),
    )


def _of_keys(store: Store, runs: Sequence[Run], keys: Sequence[Key], columns: Sequence[str]) -> Any:
    """Return the samples of ``keys``, each with its number in ``keys`` as ``key``."""
    import polars as pl  # noqa: PLC0415 - start-up time

    rows = store.samples([each.run_id for each in runs])
    schema = {name: rows.schema[name] for name in FIELDS}
    columns_of = {name: [getattr(key, name) for key in keys] for name in FIELDS}
    wanted = pl.DataFrame(columns_of, schema=schema).with_row_index("key")
    joined = rows.select(*FIELDS, *columns).join(wanted, on=FIELDS, how="inner", nulls_equal=True)
    return joined.select("key", *columns)


def raw_of(
    store: Store, runs: Sequence[Run], keys: Sequence[Key]
) -> Mapping[Key, tuple[RawNumber, ...]]:
    """Return every raw number of every key in these runs, oldest first."""
    order = {each.run_id: index for index, each in enumerate(runs)}
    rows = _of_keys(store, runs, keys, _RAW).iter_rows()
    found: dict[Key, list[RawNumber]] = {key: [] for key in keys}
    for key, *facts in rows:
        named = dict(zip(_RAW, facts, strict=True))
        named["reason"] = named["reason"] or ""
        found[keys[key]].append(RawNumber(**named))
    return {
        key: tuple(sorted(numbers, key=lambda each: (order[each.run_id], each.file, each.line)))
        for key, numbers in found.items()
    }


def bounds_of(store: Store, run: Run, keys: Sequence[Key]) -> Mapping[Key, Bounds]:
    """Return what each key was judged by in ``run``; the attempt that counts says it."""
    rows = _of_keys(store, [run], keys, ("counts", *_BOUNDS)).sort("counts", maintain_order=True)
    found = {}
    for key, _, *facts in rows.iter_rows():
        named = dict(zip(_BOUNDS, facts, strict=True))
        for word in ("ceiling_name", "origin"):
            named[word] = named[word] or ""
        found[keys[key]] = Bounds(**named)
    return found
