"""One quantity twice in a run: its median is used, and that is said."""

from __future__ import annotations

from typing import Any

from fabricproof.history.store.agree import batches
from fabricproof.history.store.history import History


def count_several(history: History) -> None:
    """Count, of the runs that were not looked at before, the quantities with several numbers.

    The manifest's ``several`` keeps for each run how many rows were seen, and how many quantities
    have more than one usable number that counts: of another job, or of two attempts.
    """
    import polars as pl  # noqa: PLC0415 - start-up time

    manifest = history.copy.manifest
    known: dict[str, Any] = manifest["several"]
    rows = _rows_of_runs(history)
    due = [run for run, number in rows.items() if known.get(str(run), [])[:1] != [number]]
    if not due:
        return
    for runs in batches(due, rows):
        ids = [manifest["runs"][run] for run in runs]
        counted = history.rows(ids, ("run", "key"), pl.col("counts") & pl.col("usable"))
        several = counted.group_by("run", "key").len().filter(pl.col("len") > 1)
        found = dict(several.group_by("run").len().iter_rows())
        known.update({str(run): [rows[run], found.get(run, 0)] for run in runs})
    history.copy.save()


def several_notes(history: History) -> tuple[str, ...]:
    """Return a note where a run has several numbers of one quantity."""
    manifest = history.copy.manifest
    having = {
        int(run): number
        for run, (_, number) in manifest["several"].items()
        if number and int(run) in history.speaks
    }
    if not having:
        return ()
    more = f" (and {len(having) - 1} more runs)" if len(having) > 1 else ""
    where = f"run {manifest['runs'][min(having)]}{more}"
    what = "quantities have several counted numbers in one run: their median is used"
    return (f"{where}: {sum(having.values())} {what}",)


def _rows_of_runs(history: History) -> dict[int, int]:
    found: dict[int, int] = {}
    for source in history.copy.manifest["sources"].values():
        for number, told in source["runs"].items():
            if history.speaks[int(number)] == source["kind"]:
                found[int(number)] = found.get(int(number), 0) + told["rows"]
    return found
