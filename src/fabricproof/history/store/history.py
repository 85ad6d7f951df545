"""The history of a site: what its copy knows of runs and rows, opened for one question."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricproof.core.errors import InputMissingError
from fabricproof.core.project import site_option
from fabricproof.core.records import record_files
from fabricproof.history.store.copy import FOLDER, Copy, KeptRows, history_of
from fabricproof.history.store.files import passed_over
from fabricproof.history.store.ingest import bring_up_to_date
from fabricproof.history.store.label_file import LOOK_LABEL, labels
from fabricproof.history.store.model import FACTS, Matrix, Run

if TYPE_CHECKING:
    import polars as pl


#: rows that are looked at together; bounds the memory
_ROWS_AT_ONCE = 1_000_000


@dataclass(kw_only=True)
class _Told:
    """What all files that know a run say of it."""

    rows: int = 0
    first: float | None = None
    last: float | None = None
    builds: dict[str, str] = field(default_factory=dict)
    seen: dict[str, str | None] = field(default_factory=dict)
    legs: dict[str, int] = field(default_factory=dict)

    def add(self, told: Mapping[str, Any], inventory: Mapping[str, str | None]) -> None:
        """Add what one source says."""
        self.rows += told["rows"]
        times = [each for each in (self.first, told["first"]) if each is not None]
        self.first = min(times, default=None)
        times = [each for each in (self.last, told["last"]) if each is not None]
        self.last = max(times, default=None)
        self.builds |= told["builds"]
        for node, digest in inventory.items():
            self.seen[node] = digest if self.seen.get(node, digest) == digest else None
        for word, count in told["legs"].items():
            self.legs[word] = self.legs.get(word, 0) + count


def runs_of(history: KeptRows) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """Return the runs, oldest first, and a note where clocks jumped."""
    manifest = history.copy.manifest
    told: dict[int, _Told] = {}
    sequences: list[list[int]] = []
    for source in manifest["sources"].values():
        mine = [int(each) for each in source["runs"]]
        sequences.append(mine)
        for number in mine:
            each = source["runs"][str(number)]
            index = each["inventory"]
            seen = manifest["inventories"][index] if index is not None else {}
            told.setdefault(number, _Told()).add(each, seen)
    starts = {each: start_of(manifest["runs"][each], told[each].first) for each in told}
    places, jumped = _places(sequences, starts, told)
    runs = tuple(
        Run(
            run_id=manifest["runs"][number],
            start=starts[number],
            inventory=told[number].seen,
            builds=told[number].builds,
            rows=told[number].rows,
            legs=told[number].legs,
        )
        for number in sorted(told, key=lambda each: (places[each], starts[each], each))
    )
    return runs, _jumps(history, jumped)


def _places(
    sequences: Iterable[list[int]],
    starts: Mapping[int, datetime.datetime],
    told: Mapping[int, _Told],
) -> tuple[dict[int, tuple[datetime.datetime, int]], list[int]]:
    """Return where each run stands in time, and those whose clock cannot be right.

    A file is only appended to.  A run that, by its own clock, was over before a run began whose
    records stand before its own in the file, was measured with a clock that had jumped: it stands
    behind that run.  Runs that overlap are ordered by their beginning, as they were written.
    """
    places = {each: (start, 0) for each, start in starts.items()}
    jumped: list[int] = []
    for sequence in sequences:
        latest: tuple[datetime.datetime, int] | None = None
        for number in sequence:
            over = told[number].last
            late = latest is not None and over is not None and over < latest[0].timestamp()
            if latest is not None and late and starts[number] < latest[0]:
                places[number] = (latest[0], latest[1] + 1)
                jumped.append(number)
            latest = max(latest or places[number], places[number])
    return places, jumped


def _jumps(history: KeptRows, jumped: list[int]) -> tuple[str, ...]:
    if not jumped:
        return ()
    first = history.copy.manifest["runs"][jumped[0]]
    more = f" (and {len(jumped) - 1} more)" if len(jumped) > 1 else ""
    what = f"run {first}{more} is dated before runs that were written earlier: a clock jumped"
    return (f"{what}; runs stand in the order in which they were written",)


def start_of(run_id: str, completed: float | None) -> datetime.datetime:
    """Return when a run began: its identity says so; else when its first job was over."""
    try:
        stamp = datetime.datetime.strptime(run_id.partition("-")[0], "%Y%m%dT%H%M%SZ")
        return stamp.replace(tzinfo=datetime.UTC)
    except ValueError:
        return datetime.datetime.fromtimestamp(completed or 0.0, tz=datetime.UTC)


def count_several(history: KeptRows) -> None:
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
    for runs in _batches(due, rows):
        ids = [manifest["runs"][run] for run in runs]
        counted = history.rows(ids, ("run", "key"), pl.col("counts") & pl.col("usable"))
        several = counted.group_by("run", "key").len().filter(pl.col("len") > 1)
        found = dict(several.group_by("run").len().iter_rows())
        known.update({str(run): [rows[run], found.get(run, 0)] for run in runs})
    history.copy.save()


def several_notes(history: KeptRows) -> tuple[str, ...]:
    """Return a note where a run has several numbers of one quantity."""
    runs: list[str] = history.copy.manifest["runs"]
    having = {
        int(run): number
        for run, (_, number) in history.copy.manifest["several"].items()
        if number and runs[int(run)] in history.numbers
    }
    if not having:
        return ()
    more = f" (and {len(having) - 1} more runs)" if len(having) > 1 else ""
    where = f"run {runs[min(having)]}{more}"
    what = "quantities have several counted numbers in one run: their median is used"
    return (f"{where}: {sum(having.values())} {what}",)


def _batches(runs: Sequence[int], rows: Mapping[int, int]) -> Iterator[list[int]]:
    """Yield runs of so many rows as are looked at together."""
    batch: list[int] = []
    total = 0
    for run in runs:
        if batch and total + rows[run] > _ROWS_AT_ONCE:
            yield batch
            batch, total = [], 0
        batch.append(run)
        total += rows[run]
    yield batch


def _rows_of_runs(history: KeptRows) -> dict[int, int]:
    found: dict[int, int] = {}
    for source in history.copy.manifest["sources"].values():
        for number, told in source["runs"].items():
            found[int(number)] = found.get(int(number), 0) + told["rows"]
    return found


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
    _history: KeptRows
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def samples(self, run_ids: Iterable[str], facts: Sequence[str] = FACTS) -> pl.DataFrame:
        """Return every quantity of every attempt of these runs: columns FIELDS and ``facts``.

        Args:
            run_ids: which runs.
            facts: of FACTS those that are needed; each more is read and kept in memory.
        """
        return self._history.samples(run_ids, facts)

    def matrix(
        self,
        run_ids: Iterable[str],
        *,
        across: Iterable[str] = (),
    ) -> Matrix:
        """Return the numbers that counted, quantities by runs.

        Args:
            run_ids: which runs; their columns are in the order of :attr:`runs`.
            across: fields of the key in which numbers may differ (``build``, ``nodes``); the
                key says ``*`` there.
        """
        from fabricproof.history.store.matrix import matrix_of  # noqa: PLC0415 - start-up time

        wanted = set(run_ids)
        runs = tuple(each for each in self.runs if each.run_id in wanted)
        return matrix_of(self._history, runs, across=tuple(across))


class NoHistoryError(InputMissingError):
    """No run of a site is in its files, all of which could be read."""


def open_store(perflogs: Path, site: str) -> Store:
    """Read the history of ``site`` below ``perflogs``.

    Raises:
        NoHistoryError: there is none.
        InputMissingError: a file of it cannot be read.
        ParseError: a damaged record that no crash explains.
    """
    folder = perflogs / site
    copy = Copy(folder=folder / FOLDER)
    if record_files(folder):
        copy.load()
        bring_up_to_date(copy, folder)
    history = history_of(copy, folder)
    if not history.numbers:
        hidden = [*copy.notes, *passed_over(folder), *_notes(history)]
        raise NoHistoryError(
            f"no run of {site} could be read" if hidden else f"nothing was measured on {site} yet",
            source=str(folder),
            expected="records.jsonl below a partition",
            got="; ".join(dict.fromkeys(hidden)) or None,
            next_step=f"fabricproof run {site_option(site)} -t quick",
        )
    runs, jumps = runs_of(history)
    count_several(history)
    notes = [*copy.notes, *passed_over(folder), *_notes(history)]
    notes += [*several_notes(history), *jumps]
    known = dict(labels(perflogs, site, on_torn=notes.append))
    looks = [each for source in copy.manifest["sources"].values() for each in source["looks"]]
    if looks:
        known[LOOK_LABEL] = tuple(dict.fromkeys((*known.get(LOOK_LABEL, ()), *looks)))
    return Store(
        site=site,
        runs=runs,
        notes=tuple(dict.fromkeys(notes)),
        _history=history,
        labels=known,
    )


def _notes(history: KeptRows) -> Sequence[str]:
    notes: list[str] = []
    for name, source in history.copy.manifest["sources"].items():
        notes += source["notes"]
        notes += [source["rest"]] if source["rest"] else []
        if source["duplicates"]:
            path = history.site_folder / name
            notes.append(
                f"{path}: {source['duplicates']} lines that stand there or in another file "
                "already, word for word, were counted once"
            )
    return notes
