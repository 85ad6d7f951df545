"""Files that only grow: which there are, whether one is still the same, what is new in it."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from fabricproof.core.errors import InputMissingError, ParseError
from fabricproof.core.records import is_named, partition_files, unreadable

#: bytes that are parsed at a time; bounds the memory
PIECE_BYTES = 16 << 20

#: bytes at the beginning, and before the place read up to, that must still be the same
_PROOF_BYTES = 4096

#: names of record files; rotated ones too
_RECORDS = ("*.jsonl", "*.jsonl.gz")


@dataclass(frozen=True, kw_only=True)
class ReadMark:
    """How far a file was read, and by what it is known again.

    Attributes:
        size: when it was last looked at, bytes.
        touched_ns: time of its last change of any kind, then; nobody can set that one.
        offset: read up to here, bytes; always behind a whole line.
        lines: how many line ends lie before that.
        head: digest of its first bytes, up to ``offset``.
        tail: digest of the bytes before ``offset``.
    """

    size: int
    changed_ns: int
    inode: int
    touched_ns: int
    offset: int
    lines: int
    head: str
    tail: str

    def plain(self) -> dict[str, Any]:
        """Return the standing as plain data."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class FilePiece:
    """Some whole lines of a file.

    ``end`` is the offset behind them, ``lines`` how many line ends lie before that; ``is_whole``
    is False for the last line of a file where it has no end.
    """

    data: bytes
    first_line: int
    end: int
    lines: int
    is_whole: bool = True


def count_bytes(data: bytes, wanted: bytes) -> int:
    """Return how often one byte stands in ``data``; ``bytes.count`` is slow where it does often."""
    import numpy as np  # noqa: PLC0415 - start-up time

    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord(wanted)))


def passed_over(site_folder: Path) -> tuple[str, ...]:
    """Return a note on what is not read: records by another name, hidden, perflogs without any."""
    files = partition_files(site_folder)
    recorded = {path.parent for path in files if is_named(path, *_RECORDS)}
    logged = {path.parent for path in files if is_named(path, "*.log", "*.log.h[0-9]*")}
    misnamed = [
        f"{path}: not read, its name is not *.jsonl or *.jsonl.gz; "
        "records.jsonl.1 is read as records-1.jsonl"
        for path in files
        if is_named(path, "records*", "*.jsonl.*") and not is_named(path, *_RECORDS)
    ]
    lost = [
        f"{folder}: ReFrame's perflogs are there and no records; what was measured there is in "
        "no comparison (reframe --performance-compare reads ReFrame's own)"
        for folder in sorted(logged - recorded)
    ]
    hidden = [
        f"{path}: not read, its folder begins with a dot; a partition's does not"
        for path in sorted(site_folder.glob(".*/records*"))
    ]
    return (*misnamed, *lost, *hidden)


def is_packed(path: Path) -> bool:
    """Tell whether a file is compressed; such a one is read whole or not at all."""
    return path.suffix == ".gz"


def look(path: Path, offset: int, lines: int) -> ReadMark:
    """Return the standing of a file that was read up to ``offset``.

    Raises:
        InputMissingError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            head, tail = _proofs(file, state.st_size if is_packed(path) else offset)
    except OSError as error:
        raise unreadable(path, error) from None
    return ReadMark(
        size=state.st_size, changed_ns=state.st_mtime_ns, inode=state.st_ino,
        touched_ns=state.st_ctime_ns, offset=offset, lines=lines, head=head, tail=tail,
    )  # fmt: skip


def is_current(path: Path, standing: ReadMark) -> bool:
    """Tell whether nothing has happened to a file since ``standing``.

    Raises:
        InputMissingError: it cannot be looked at.
    """
    try:
        state = path.stat()
    except OSError as error:
        raise unreadable(path, error) from None
    return (state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns) == (
        standing.size,
        standing.changed_ns,
        standing.inode,
        standing.touched_ns,
    )


def has_only_grown(path: Path, standing: ReadMark) -> bool:
    """Tell whether what was read of a file is still its beginning, by its two ends.

    A file of the same size and a later time was written over, not appended to; one of another
    inode was put in its place.
    """
    try:
        now = look(path, standing.offset, standing.lines)
    except InputMissingError:
        return False
    untouched = now.size > standing.size or now.changed_ns == standing.changed_ns
    is_same_file = now.inode == standing.inode and untouched and now.size >= standing.offset
    if is_packed(path) and now.size != standing.size:
        return False
    return is_same_file and (now.head, now.tail) == (standing.head, standing.tail)


def _proofs(file: IO[bytes], offset: int) -> tuple[str, str]:
    length = min(offset, _PROOF_BYTES)
    head = file.read(length)
    file.seek(offset - length)
    return _digest(head), _digest(file.read(length))


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=12).hexdigest()


def pieces(
    path: Path, offset: int, lines: int, piece_bytes: int = PIECE_BYTES
) -> Iterator[FilePiece]:
    """Yield a file from ``offset`` on in pieces of whole lines; last what has no line end yet.

    Raises:
        InputMissingError: it cannot be read.
        ParseError: a compressed file that is damaged.
    """
    try:
        with gzip.open(path, "rb") if is_packed(path) else path.open("rb") as file:
            file.seek(offset)
            yield from _cut(file, offset, lines, piece_bytes)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ParseError(
            "damaged compressed records",
            source=str(path),
            expected="a whole gzip file",
            got=str(error),
            next_step="compress the plain file again, or take this one away",
        ) from None
    except OSError as error:
        raise unreadable(path, error) from None


def _cut(
    file: gzip.GzipFile | IO[bytes], offset: int, lines: int, piece_bytes: int
) -> Iterator[FilePiece]:
    rest = b""
    while more := file.read(piece_bytes):
        data, newline, after = more.rpartition(b"\n")
        if not newline:
            rest += more
            continue
        data = rest + data
        rest = after
        offset += len(data) + 1
        first, lines = lines + 1, lines + count_bytes(data, b"\n") + 1
        yield FilePiece(data=data, first_line=first, end=offset, lines=lines)
    if rest.strip():
        end = offset + len(rest)
        yield FilePiece(data=rest, first_line=lines + 1, end=end, lines=lines, is_whole=False)
