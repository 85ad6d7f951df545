"""Open the history of a site and take from it what a question needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fabricproof.core.errors import InputMissingError
from fabricproof.core.records import record_files
from fabricproof.history.store.copy import FOLDER, Copy
from fabricproof.history.store.files import passed_over
from fabricproof.history.store.history import (
    History,
    count_several,
    history_of,
    runs_of,
    several_notes,
    start_of,
)
from fabricproof.history.store.ingest import bring_up_to_date
from fabricproof.history.store.labels import labels
from fabricproof.history.store.model import FIELDS, Matrix, Run
from fabricproof.history.store.schema import FACTS, usable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FACTS", "FIELDS", "Store", "open_store", "start_of", "usable"]


@dataclass(frozen=True, kw_only=True)
class Store:
    """The history of one site.

    Attributes:
        site: its name.
        runs: oldest first.
        notes: what was passed over while reading, one sentence each; nothing is lost in silence.
        labels: name -> the runs that people gave it (:mod:`fabricproof.history.store.labels`).
    """

    site: str
    runs: tuple[Run, ...]
    notes: tuple[str, ...]
    _history: History
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def samples(self, run_ids: Iterable[str]) -> pl.DataFrame:
        """Return every quantity of every attempt of these runs: columns FIELDS and FACTS."""
        return self._history.samples(run_ids)

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
            across: fields of the key in which numbers may differ (``build``, ``nodes``); the
                key says ``*`` there.
            renamed: node as an old record calls it, to its name of today.

        Raises:
            RenamingError: two names that cannot be one machine.
            InputMissingError: an old name that no record has.
        """
        from fabricproof.history.store.matrix import matrix_of  # noqa: PLC0415 - start-up time

        wanted = set(run_ids)
        runs = tuple(each for each in self.runs if each.run_id in wanted)
        return matrix_of(self._history, runs, across=tuple(across), renamed=renamed or {})


def open_store(perflogs: Path, site: str) -> Store:
    """Read the history of ``site`` below ``perflogs``.

    Raises:
        InputMissingError: there is none, or a file of it cannot be read.
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
        raise InputMissingError(
            f"no run of {site} could be read" if hidden else f"nothing was measured on {site} yet",
            source=str(folder),
            expected="records.jsonl below a partition",
            got="; ".join(dict.fromkeys(hidden)) or None,
            next_step=f"fabricproof run --site {site} -t quick",
        )
    runs, jumps = runs_of(history)
    count_several(history)
    notes = [*copy.notes, *passed_over(folder), *_notes(history)]
    notes += [*several_notes(history), *jumps]
    known = labels(perflogs, site, on_torn=notes.append)
    return Store(
        site=site,
        runs=runs,
        notes=tuple(dict.fromkeys(notes)),
        _history=history,
        labels=known,
    )


def _notes(history: History) -> Sequence[str]:
    """Return what the copy remembers of the files that it was made from."""
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
