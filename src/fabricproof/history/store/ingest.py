"""Bring the copy up to date: what is new in each file, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricproof.core.errors import ParseError
from fabricproof.core.records import record_files, torn
from fabricproof.history.store.copy import Copy
from fabricproof.history.store.files import (
    FilePiece,
    ReadMark,
    has_only_grown,
    is_current,
    look,
    pieces,
)
from fabricproof.history.store.model import FIELDS, KEPT, SAME, told_apart_by, usable_rows
from fabricproof.history.store.parse import Parsed, parse_records

if TYPE_CHECKING:
    import polars as pl

#: rows of a segment; a question reads a few whole columns of it, some megabytes
SEGMENT_ROWS = 100_000
#: small segments of one file that nights leave behind, before they are joined
_SMALL_SEGMENTS = 32


def bring_up_to_date(copy: Copy, site_folder: Path) -> None:
    """Read what is new in the files of a site.

    Raises:
        ParseError: a damaged record that no crash explains.
        InputMissingError: a file that is there cannot be read.
    """
    files = {str(path.relative_to(site_folder)): path for path in record_files(site_folder)}
    if _is_up_to_date(copy.manifest, files):
        return
    with copy.locked():
        copy.load()
        update = _Update(copy=copy)
        try:
            update.forget(files)
            for name, path in files.items():
                update.read(name, path)
        finally:
            copy.save()


def _is_up_to_date(manifest: Mapping[str, Any], files: Mapping[str, Path]) -> bool:
    sources = manifest["sources"]
    return sources.keys() == files.keys() and all(
        is_current(path, ReadMark(**sources[name]["standing"])) for name, path in files.items()
    )


def _new_source() -> dict[str, Any]:
    return {
        "standing": None, "segments": [], "runs": {}, "looks": [], "notes": [], "duplicates": 0,
        "rest": None,
    }  # fmt: skip


@dataclass(kw_only=True)
class _Update:
    copy: Copy
    _writer: _Writer | None = None

    @property
    def sources(self) -> dict[str, Any]:
        sources: dict[str, Any] = self.copy.manifest["sources"]
        return sources

    def forget(self, files: Mapping[str, Path]) -> None:
        """Drop what was read from files that are gone, cut or replaced; follow renamed ones."""
        known = dict(self.sources)
        lost = {
            name: source for name, source in known.items()
            if name not in files or not has_only_grown(files[name], ReadMark(**source["standing"]))
        }  # fmt: skip
        for name in [each for each in files if each not in known]:
            old = next(
                (
                    each
                    for each, source in lost.items()
                    if has_only_grown(files[name], ReadMark(**source["standing"]))
                ),
                None,
            )
            if old is not None:
                self.sources[name] = lost.pop(old)
                del self.sources[old]
        if lost:  # What was left out as a repetition of a lost file is wanted now.
            lost |= {name: each for name, each in self.sources.items() if each["duplicates"]}
        for name in lost:
            del self.sources[name]
        again = [files[name] for name in lost if name in files]
        if again:
            more = f" and {len(again) - 1} more files" if len(again) > 1 else ""
            self.copy.notes.append(
                f"{again[0]}{more}: cut, replaced or moved since they were last read; read anew"
            )
        if lost:
            self.copy.manifest["several"] = {}

    def read(self, name: str, path: Path) -> None:
        """Read the new end of one file."""
        source = self.sources.get(name) or _new_source()
        if source["standing"] and is_current(path, ReadMark(**source["standing"])):
            return
        offset, lines = _read_up_to(source)
        writer = self._writer = self._writer or _Writer(copy=self.copy)
        before = look(path, offset, lines)
        source["standing"] = _unfinished(before)
        # A file that cannot be opened is none of the copy: that would outlive its mending.
        self.sources[name] = source
        source["rest"] = None
        for piece in pieces(path, offset, lines):
            parsed = self._parsed(source, piece, str(path))
            if parsed is None:
                break
            offset, lines = piece.end, piece.lines
            source["notes"] += parsed.notes
            source["looks"] = sorted(parsed.looks.union(source["looks"]))
            writer.take(source, parsed)
            if writer.is_full:
                writer.flush(source)
                source["standing"] = _unfinished(look(path, offset, lines))
        writer.flush(source)
        # What somebody appends meanwhile is found next time: the size is that from before.
        now = look(path, offset, lines)
        done = replace(
            now, size=before.size, changed_ns=before.changed_ns, touched_ns=before.touched_ns
        )
        source["standing"] = done.plain()
        writer.join_small(source)

    def _parsed(self, source: dict[str, Any], piece: FilePiece, file: str) -> Parsed | None:
        """Return what a piece says; None for a last line that a crash tore or is being written."""
        try:
            return parse_records(piece.data, file, piece.first_line)
        except ParseError:
            if piece.is_whole:
                raise
            source["rest"] = torn(file, piece.first_line)
            return None


def _read_up_to(source: Mapping[str, Any]) -> tuple[int, int]:
    standing = source["standing"]
    return (standing["offset"], standing["lines"]) if standing else (0, 0)


def _unfinished(standing: ReadMark) -> dict[str, Any]:
    """Return a standing that is never current: whatever stops the reading, it is taken up again."""
    return replace(standing, size=-1, changed_ns=-1).plain()


@dataclass(kw_only=True)
class _Writer:
    """Rows on their way into segments: keys and runs become numbers, repetitions fall out."""

    copy: Copy
    _keys: pl.DataFrame | None = None
    _waiting: list[Parsed] = field(default_factory=list)
    _inventories: dict[tuple[tuple[str, str | None], ...], int] | None = None

    @property
    def is_full(self) -> bool:
        """Whether enough rows wait for a segment."""
        return sum(each.rows.height for each in self._waiting) >= SEGMENT_ROWS

    def take(self, source: dict[str, Any], parsed: Parsed) -> None:
        """Keep some rows for the next segment."""
        source["duplicates"] += parsed.repeated
        self._waiting.append(parsed)

    def flush(self, source: dict[str, Any]) -> None:
        """Write the waiting rows as a segment of ``source``."""
        import polars as pl  # noqa: PLC0415 - start-up time

        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        rows = pl.concat([each.rows for each in waiting])
        rows = self._with_runs(rows)
        rows = self._with_keys(rows).with_columns(usable=usable_rows())
        fresh = self._without_repetitions(rows)
        source["duplicates"] += rows.height - fresh.height
        repeated = set(rows["run_id"].unique()) - set(fresh["run_id"].unique())
        self._sum_up(source, fresh, _legs(waiting, repeated))
        if fresh.height:
            segment = self.copy.put("rows", fresh.select(KEPT))
            segment["runs"] = fresh["run"].unique().sort().to_list()
            source["segments"].append(segment)

    def _with_runs(self, rows: pl.DataFrame) -> pl.DataFrame:
        import polars as pl  # noqa: PLC0415 - start-up time

        runs: list[str] = self.copy.manifest["runs"]
        number = {run: index for index, run in enumerate(runs)}
        for run in rows["run_id"].unique(maintain_order=True):
            if run not in number:
                number[run] = len(runs)
                runs.append(run)
        column = rows["run_id"].replace_strict(
            list(number), list(number.values()), return_dtype=pl.UInt32
        )
        return rows.with_columns(column.alias("run"))

    def _with_keys(self, rows: pl.DataFrame) -> pl.DataFrame:
        import polars as pl  # noqa: PLC0415 - start-up time

        known = self.copy.keys() if self._keys is None else self._keys
        fields, alike = told_apart_by(rows, known)
        new = (
            rows.select(FIELDS)
            .unique(fields, maintain_order=True)
            .join(alike, on=fields, how="anti", nulls_equal=True, maintain_order="left")
        )
        if new.height:
            first = known.height
            numbers = pl.int_range(first, first + new.height, dtype=pl.UInt32, eager=True)
            new = new.select(numbers.alias("key"), *FIELDS)
            self.copy.manifest["keys"].append(self.copy.put("keys", new))
            known = pl.concat([known, new])
            alike = pl.concat([alike, new])
        self._keys = known
        return rows.join(
            alike.select("key", *fields),
            on=fields,
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )

    def _without_repetitions(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that no other segment has."""
        import polars as pl  # noqa: PLC0415 - start-up time

        here = set(rows["run"].unique())
        names = [
            segment["name"]
            for each in self.copy.manifest["sources"].values()
            for segment in each["segments"]
            if here & set(segment["runs"])
        ]
        if not names:
            return rows
        there = (
            self.copy.scan(names).filter(pl.col("run").is_in(sorted(here))).select(SAME).collect()
        )
        return rows.join(there, on=SAME, how="anti", nulls_equal=True, maintain_order="left")

    def _sum_up(
        self, source: dict[str, Any], rows: pl.DataFrame, legs: Mapping[tuple[str, str], int]
    ) -> None:
        import polars as pl  # noqa: PLC0415 - start-up time

        ids: list[str] = self.copy.manifest["runs"]
        sums = rows.group_by("run", maintain_order=True).agg(
            pl.len(), first=pl.col("completed").min(), last=pl.col("completed").max()
        )
        for run, number, first, last in sums.iter_rows():
            told = source["runs"].setdefault(str(run), _nothing_told())
            told["rows"] += number
            told["first"] = min(filter(_known, (told["first"], first)), default=None)
            told["last"] = max(filter(_known, (told["last"], last)), default=None)
        for run, stack, build in _unlike(rows, "run", "stack", "build"):
            source["runs"][str(run)]["builds"][stack] = build
        seen: dict[int, dict[str, str | None]] = {}
        for run, text in _unlike(rows, "run", "inventory"):
            told = source["runs"][str(run)]
            nodes = seen.setdefault(run, dict(self._inventory(told["inventory"])))
            add_seen(nodes, text)
        for run, nodes in seen.items():
            source["runs"][str(run)]["inventory"] = self._kept(nodes)
        number_of = {run: str(index) for index, run in enumerate(ids)}
        for (run_id, word), count in legs.items():
            if run_id in number_of:
                told = source["runs"].setdefault(number_of[run_id], _nothing_told())
                told["legs"][word] = told["legs"].get(word, 0) + count

    def _inventory(self, index: int | None) -> Mapping[str, str | None]:
        return self.copy.manifest["inventories"][index] if index is not None else {}

    def _kept(self, nodes: Mapping[str, str | None]) -> int:
        """Return where an inventory stands in the manifest; most nights have the last one's."""
        known: list[Mapping[str, str | None]] = self.copy.manifest["inventories"]
        if self._inventories is None:
            self._inventories = {
                tuple(sorted(each.items())): index for index, each in enumerate(known)
            }
        index = self._inventories.setdefault(tuple(sorted(nodes.items())), len(known))
        if index == len(known):
            known.append(nodes)
        return index

    def join_small(self, source: dict[str, Any]) -> None:
        """Join the small segments that single nights left, once there are many."""
        small = [each for each in source["segments"] if each["rows"] < SEGMENT_ROWS // 2]
        if len(small) <= _SMALL_SEGMENTS:
            return
        joined: list[dict[str, Any]] = []
        for group in _groups(source["segments"]):
            if len(group) == 1:
                joined += group
                continue
            table = self.copy.scan([each["name"] for each in group]).collect()
            segment = self.copy.put("rows", table)
            segment["runs"] = sorted({run for each in group for run in each["runs"]})
            joined.append(segment)
        source["segments"] = joined


def _legs(waiting: Iterable[Parsed], repeated: set[str]) -> Counter[tuple[str, str]]:
    """Return how many legs of which run have which verdict, but of runs that are there already."""
    found: Counter[tuple[str, str]] = Counter()
    for parsed in waiting:
        found.update({each: n for each, n in parsed.legs.items() if each[0] not in repeated})
    return found


def _groups(segments: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield neighbouring segments that make one of the usual size together."""
    group: list[dict[str, Any]] = []
    for each in segments:
        if group and sum(one["rows"] for one in group) + each["rows"] > SEGMENT_ROWS:
            yield group
            group = []
        group.append(each)
    yield group


def add_seen(nodes: dict[str, str | None], text: str) -> None:
    """Add ``n1=digest,n2=`` to node -> digest; None where nobody saw it or it changed."""
    for node, _, digest in (each.partition("=") for each in text.split(",")):
        if node:
            nodes[node] = digest or None if nodes.get(node, digest) == digest else None


def _unlike(rows: pl.DataFrame, *columns: str) -> Iterator[tuple[Any, ...]]:
    return rows.select(columns).unique(maintain_order=True).iter_rows()


def _nothing_told() -> dict[str, Any]:
    return {
        "rows": 0, "first": None, "last": None, "builds": {}, "inventory": None, "legs": {},
    }  # fmt: skip


def _known(value: float | None) -> bool:
    return value is not None
