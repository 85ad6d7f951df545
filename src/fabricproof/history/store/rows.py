"""The rows that a site's copy keeps, asked by run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fabricproof.core.errors import ParseError
from fabricproof.history.store.copy import Copy
from fabricproof.history.store.model import FACTS, FIELDS, KEPT, schema

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True)
class KeptRows:
    """The rows of a site, asked by run.

    Attributes:
        copy: where they are.
        site_folder: below the perflogs.
        numbers: identity of a run -> its number.
    """

    copy: Copy
    site_folder: Path
    numbers: Mapping[str, int]

    def rows(
        self, run_ids: Iterable[str], columns: Iterable[str], predicate: pl.Expr | None = None
    ) -> pl.DataFrame:
        """Return some columns of the rows of some runs: those of KEPT, and ``file``.

        Only segments that hold one of the runs are opened, and of them only these columns.
        """
        import polars as pl  # noqa: PLC0415 - start-up time

        columns = tuple(columns)
        wanted = {self.numbers[each] for each in run_ids if each in self.numbers}
        parts = []
        for name, names, runs in self._segments(wanted):
            frame = self.copy.scan(names).filter(pl.col("run").is_in(runs))
            if predicate is not None:
                frame = frame.filter(predicate)
            path = str(self.site_folder / name)
            kept = frame.select(each for each in columns if each != "file")
            parts.append(kept.with_columns(file=pl.lit(path)) if "file" in columns else kept)
        if not parts:
            return pl.DataFrame(schema=schema(columns))
        try:
            return pl.concat(parts).select(columns).collect(engine="streaming")
        except (OSError, pl.exceptions.PolarsError) as error:
            raise ParseError(
                "the copy of the history cannot be read",
                source=str(self.copy.folder),
                got=str(error).splitlines()[0][:80],
                next_step=f"rm -r {self.copy.folder}; it is made again from the plain files",
            ) from None

    def _segments(self, wanted: set[int]) -> Iterator[tuple[str, list[str], list[int]]]:
        """Yield (source, segments, runs) of which some rows are wanted."""
        for name, source in self.copy.manifest["sources"].items():
            mine = source["segments"]
            names = [each["name"] for each in mine if wanted.intersection(each["runs"])]
            if names:
                yield name, names, sorted(wanted)

    def samples(self, run_ids: Iterable[str]) -> pl.DataFrame:
        """Return whole rows: columns FIELDS and FACTS."""
        import polars as pl  # noqa: PLC0415 - start-up time

        rows = self.rows(run_ids, (*(name for name in KEPT if name != "usable"), "file"))
        ids = pl.Series(self.copy.manifest["runs"], dtype=pl.String)
        rows = rows.with_columns(run_id=ids.gather(rows["run"]))
        rows = rows.join(self.copy.keys(), on="key", how="left", maintain_order="left")
        return rows.select(*FIELDS, *FACTS)


def history_of(copy: Copy, site_folder: Path) -> KeptRows:
    """Return the history that a copy holds."""
    told = {number for source in copy.manifest["sources"].values() for number in source["runs"]}
    numbers = {run: index for index, run in enumerate(copy.manifest["runs"]) if str(index) in told}
    return KeptRows(copy=copy, site_folder=site_folder, numbers=numbers)
