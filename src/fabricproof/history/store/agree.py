"""Hold records and ReFrame's perflog together: where both tell of a number, they tell the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fabricproof.history.store.copy import Copy
from fabricproof.history.store.ingest import PERFLOG, RECORDS

if TYPE_CHECKING:
    import polars as pl

#: rows that are held together at a time; bounds the memory
_ROWS_AT_ONCE = 1_000_000

#: relative difference above which two texts of one number are two numbers
_ROUNDING = 1e-6


def compare_sources(copy: Copy) -> None:
    """Compare the runs that records and perflogs both tell of, and were not compared before.

    The manifest's ``checked`` keeps for each run how many rows were seen of either, how many
    numbers differ, one of them, and how many stand in the perflog only.
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
    for runs in batches(due, counts[RECORDS]):
        differing, lacking = _held_together(copy, runs)
        for run in runs:
            checked[str(run)] = [counts[RECORDS][run], counts[PERFLOG][run], 0, "", 0]
        for run, number, example in differing:
            checked[str(run)][2:4] = [number, example]
        for run, number in lacking:
            checked[str(run)][4] = number
    copy.save()


def disagreements(copy: Copy) -> tuple[str, ...]:
    """Return a note on each run of which the two tell different numbers, or one tells more."""
    runs = copy.manifest["runs"]
    notes: list[str] = []
    for run, (_, _, number, example, lacking) in copy.manifest["checked"].items():
        if number:
            notes.append(
                f"run {runs[int(run)]}: {number} numbers differ between records and ReFrame's "
                f"perflog; the records count: {example}"
            )
        if lacking:
            notes.append(
                f"run {runs[int(run)]}: {lacking} quantities stand in ReFrame's perflog and not "
                "in the records; they are in no comparison"
            )
    return tuple(notes)


def _rows_of_runs(copy: Copy, kind: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for source in copy.manifest["sources"].values():
        if source["kind"] == kind:
            for run, told in source["runs"].items():
                found[int(run)] = found.get(int(run), 0) + told["rows"]
    return found


def batches(runs: Sequence[int], rows: dict[int, int]) -> Iterator[list[int]]:
    """Yield runs of so many rows as are held at a time."""
    batch: list[int] = []
    total = 0
    for run in runs:
        if batch and total + rows[run] > _ROWS_AT_ONCE:
            yield batch
            batch, total = [], 0
        batch.append(run)
        total += rows[run]
    yield batch


def _held_together(
    copy: Copy, runs: Sequence[int]
) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]]:
    """Return (run, how many differ, one of them), and (run, how many the records lack)."""
    import polars as pl  # noqa: PLC0415 - start-up time

    # ReFrame calls a quantity by its road and its name, and forbids colons (rfm.legs).
    variable = (pl.col("leg") + "." + pl.col("quantity")).str.replace_all(":", "_", literal=True)
    keys = copy.keys().select("key", "partition", "stack", "check", variable=variable)
    counted = pl.col("counts") & pl.col("value").is_finite()
    ours, theirs = (_rows(copy, kind, runs).join(keys, on="key") for kind in (RECORDS, PERFLOG))
    theirs = theirs.filter(counted)
    on = ["run", "job_id", "partition", "stack", "check", "variable"]
    both = ours.filter(counted).join(theirs, on=on, suffix="_perflog")
    apart = (pl.col("value") - pl.col("value_perflog")).abs() > _ROUNDING * pl.col("value").abs()
    told = pl.format("{} {} against {}", "variable", "value", "value_perflog")
    differing = both.filter(apart).group_by("run", maintain_order=True).agg(pl.len(), told.first())
    # A number that a record has and does not count is no lost one: any row of it will do.
    only = theirs.join(ours, on=on, how="anti", maintain_order="left")
    lacking = only.group_by("run", maintain_order=True).len()
    return differing.rows(), lacking.rows()


def _rows(copy: Copy, kind: str, runs: Sequence[int]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - start-up time

    names = [
        segment["name"]
        for source in copy.manifest["sources"].values()
        if source["kind"] == kind
        for segment in source["segments"]
        if set(runs).intersection(segment["runs"])
    ]
    wanted = pl.col("run").is_in(list(runs))
    return (
        copy.scan(names).filter(wanted).select("key", "run", "job_id", "counts", "value").collect()
    )
