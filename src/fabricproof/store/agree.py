"""Hold records and ReFrame's perflog together: where both tell of a number, they tell the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fabricproof.store.copy import Copy
from fabricproof.store.ingest import PERFLOG, RECORDS

if TYPE_CHECKING:
    import polars as pl

#: rows that are held together at a time; bounds the memory
_ROWS_AT_ONCE = 1_000_000

#: relative difference above which two texts of one number are two numbers
_ROUNDING = 1e-6


def compare_sources(copy: Copy) -> None:
    """Compare the runs that records and perflogs both tell of, and were not compared before.

    The manifest's ``checked`` keeps for each run how many rows were seen, how many numbers differ
    and one of them.
    """
    checked: dict[str, Any] = copy.manifest["checked"]
    counts = {kind: _rows_of_runs(copy, kind) for kind in (RECORDS, PERFLOG)}
    due = [
        run
        for run, rows in counts[RECORDS].items()
        if run in counts[PERFLOG] and checked.get(str(run), [])[:2] != [rows, counts[PERFLOG][run]]
    ]
    if not due:
        return
    for runs in _batches(due, counts[RECORDS]):
        differing = _differing(copy, runs)
        for run in runs:
            checked[str(run)] = [counts[RECORDS][run], counts[PERFLOG][run], 0, ""]
        for run, number, example in differing:
            checked[str(run)][2:] = [number, example]
    copy.save()


def disagreements(copy: Copy) -> tuple[str, ...]:
    """Return a note on each run of which the two tell different numbers."""
    runs = copy.manifest["runs"]
    return tuple(
        f"run {runs[int(run)]}: {number} numbers differ between records and ReFrame's perflog; "
        f"the records count: {example}"
        for run, (_, _, number, example) in copy.manifest["checked"].items()
        if number
    )


def _rows_of_runs(copy: Copy, kind: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for source in copy.manifest["sources"].values():
        if source["kind"] == kind:
            for run, told in source["runs"].items():
                found[int(run)] = found.get(int(run), 0) + told["rows"]
    return found


def _batches(runs: Sequence[int], rows: dict[int, int]) -> Iterator[list[int]]:
    batch: list[int] = []
    total = 0
    for run in runs:
        if batch and total + rows[run] > _ROWS_AT_ONCE:
            yield batch
            batch, total = [], 0
        batch.append(run)
        total += rows[run]
    yield batch


def _differing(copy: Copy, runs: Sequence[int]) -> list[tuple[int, int, str]]:
    import polars as pl  # noqa: PLC0415 - start-up time

    # ReFrame calls a quantity by its road and its name, and forbids colons (rfm.legs).
    variable = (pl.col("leg") + "." + pl.col("quantity")).str.replace_all(":", "_", literal=True)
    keys = copy.keys().select("key", "partition", "stack", "check", variable=variable)
    ours, theirs = (_counted(copy, kind, runs).join(keys, on="key") for kind in (RECORDS, PERFLOG))
    on = ["run", "job_id", "partition", "stack", "check", "variable"]
    both = ours.join(theirs, on=on, suffix="_perflog")
    apart = (pl.col("value") - pl.col("value_perflog")).abs() > _ROUNDING * pl.col("value").abs()
    told = pl.format("{} {} against {}", "variable", "value", "value_perflog")
    return (
        both.filter(apart).group_by("run", maintain_order=True).agg(pl.len(), told.first()).rows()
    )


def _counted(copy: Copy, kind: str, runs: Sequence[int]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - start-up time

    names = [
        segment["name"]
        for source in copy.manifest["sources"].values()
        if source["kind"] == kind
        for segment in source["segments"]
        if set(runs).intersection(segment["runs"])
    ]
    wanted = pl.col("run").is_in(list(runs)) & pl.col("counts") & pl.col("value").is_finite()
    return copy.scan(names).filter(wanted).select("key", "run", "job_id", "value").collect()
