"""A columnar copy of the history: fast to ask, safe to throw away, never the truth.

``perflogs/<site>/.index/`` holds segments (Parquet, some hundred thousand rows each), tables of
the keys that the rows name by number, and one manifest that says which of these files belong
together.  Files are written under new names and never changed; the manifest is replaced in one
step, so that a reader has all of one state or all of another.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricproof.core.errors import ParseError
from fabricproof.core.whole_file import whole_file
from fabricproof.history.store.model import FACTS, FIELDS, KEPT, schema

if TYPE_CHECKING:
    import polars as pl

#: below the perflogs of a site
FOLDER = ".index"
_MANIFEST = "manifest.json"
#: of the manifest and of the columns; a copy of another is made again
FORMAT = 10

#: how long to wait for another that is writing the copy, seconds; then it is made twice
_PATIENCE = 60.0
#: files that no manifest names are kept this long, for those that still read them, seconds
_KEPT_SECONDS = 3600.0


def empty_manifest() -> dict[str, Any]:
    """Return the manifest of a copy of nothing."""
    return {
        "format": FORMAT,
        "runs": [],
        "inventories": [],
        "keys": [],
        "sources": {},
        "several": {},
    }


@dataclass(kw_only=True)
class Copy:
    """The files of the copy, on disk or, where nothing can be written, in memory.

    Attributes:
        writable: False once something could not be written; all further is kept in memory.
        notes: what a person should know of it.
    """

    folder: Path
    manifest: dict[str, Any] = field(default_factory=empty_manifest)
    writable: bool = True
    notes: list[str] = field(default_factory=list)
    _memory: dict[str, pl.DataFrame] = field(default_factory=dict)
    _number: int = 0

    def load(self) -> None:
        """Read the manifest; begin anew where there is none or the copy is damaged."""
        self.manifest = empty_manifest()
        try:
            text = (self.folder / _MANIFEST).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._give_up(error)
            return
        try:
            manifest = json.loads(text)
            is_ours = manifest["format"] == FORMAT
            sound = is_ours and all(
                (self.folder / each["name"]).stat().st_size == each["size"]
                for each in _files_of(manifest)
            )
        except (OSError, ValueError, KeyError, TypeError):
            is_ours, sound = True, False
        if sound:
            self.manifest = manifest
            return
        if is_ours:
            self.notes.append(f"{self.folder}: the copy was damaged and is made again")

    def put(self, prefix: str, table: pl.DataFrame) -> dict[str, Any]:
        """Keep a table under a new name; return how the manifest names it."""
        self._number += 1
        name = f"{prefix}-{time.time_ns():x}-{os.getpid()}-{self._number}.parquet"
        if self.writable:
            with self._unless_unwritable():
                self.folder.mkdir(exist_ok=True)
                return self._write(name, table)
        self._memory[name] = table
        return {"name": name, "rows": table.height}

    def _write(self, name: str, table: pl.DataFrame) -> dict[str, Any]:
        packed = BytesIO()
        table.write_parquet(packed, compression="zstd", compression_level=1, row_group_size=65536)
        data = packed.getbuffer()
        with whole_file(self.folder / name) as file:
            file.write(data)
        return {"name": name, "rows": table.height, "size": len(data)}

    @contextlib.contextmanager
    def _unless_unwritable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.writable = False
        self.notes.append(
            f"{self.folder}: the copy that makes history fast cannot be kept "
            f"({error.strerror}); nothing is lost, it is read from the plain files each time"
        )

    def scan(self, names: list[str]) -> pl.LazyFrame:
        """Return the rows of some segments."""
        import polars as pl  # noqa: PLC0415 - start-up time

        stored = [self.folder / name for name in names if name not in self._memory]
        frames = [self._memory[name].lazy() for name in names if name in self._memory]
        if stored:
            frames.insert(0, pl.scan_parquet(stored, schema=schema(KEPT), glob=False))
        return pl.concat(frames) if frames else pl.LazyFrame(schema=schema(KEPT))

    def keys(self) -> pl.DataFrame:
        """Return the table of keys: ``key`` and FIELDS, in the order in which they were met."""
        import polars as pl  # noqa: PLC0415 - start-up time

        tables = [
            self._memory[each["name"]]
            if each["name"] in self._memory
            else pl.read_parquet(self.folder / each["name"])
            for each in self.manifest["keys"]
        ]
        return pl.concat(tables) if tables else pl.DataFrame(schema=schema(("key", *FIELDS)))

    def save(self) -> None:
        """Make what was put the copy that the next one reads; remove what no one can still read."""
        if not self.writable or self._memory:
            return
        if not _files_of(self.manifest) and not self.folder.is_dir():
            return
        with self._unless_unwritable():
            with whole_file(self.folder / _MANIFEST) as file:
                file.write(json.dumps(self.manifest).encode())
            self._sweep()

    def _sweep(self) -> None:
        named = {each["name"] for each in _files_of(self.manifest)}
        # Also what one that was killed had not written to its end.
        for path in (*self.folder.glob("*.parquet"), *self.folder.glob(".*.new")):
            with contextlib.suppress(OSError):
                if path.name not in named and time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                    path.unlink()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the copy's lock, so that two who start at once do the work once.

        Where it is not to be had (no locks on this file system, another takes long) the work is
        done all the same: names are never used twice and the manifest is replaced in one step.
        """
        descriptor = -1
        if self.writable:
            with self._unless_unwritable():
                self.folder.mkdir(exist_ok=True)
                descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if descriptor >= 0:
                _wait_for(descriptor)
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)


def _wait_for(descriptor: int) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        except OSError:
            return
        else:
            return


def _files_of(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a manifest says of each file of the copy."""
    segments = [part for each in manifest["sources"].values() for part in each["segments"]]
    return [*manifest["keys"], *segments]


@dataclass(frozen=True, kw_only=True)
class KeptRows:
    """The rows of a site, asked by run."""

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

    def samples(self, run_ids: Iterable[str], facts: Sequence[str] = FACTS) -> pl.DataFrame:
        """Return the rows of some runs: columns FIELDS and those of FACTS that are named."""
        import polars as pl  # noqa: PLC0415 - start-up time

        kept = [name for name in facts if name != "run_id"]
        rows = self.rows(run_ids, ("key", "run", *kept))
        ids = pl.Series(self.copy.manifest["runs"], dtype=pl.String)
        rows = rows.with_columns(run_id=ids.gather(rows["run"]))
        rows = rows.join(self.copy.keys(), on="key", how="left", maintain_order="left")
        return rows.select(*FIELDS, *facts)


def history_of(copy: Copy, site_folder: Path) -> KeptRows:
    """Return the history that a copy holds."""
    told = {number for source in copy.manifest["sources"].values() for number in source["runs"]}
    numbers = {run: index for index, run in enumerate(copy.manifest["runs"]) if str(index) in told}
    return KeptRows(copy=copy, site_folder=site_folder, numbers=numbers)
