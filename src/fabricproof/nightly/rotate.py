"""Put the records of past months into files of their own: ``records-2026-10.jsonl``.

Only where somebody asks: one file is simplest.  The file that runs append to stays the same one,
because a writer that waits for its lock would else write into a file that nobody reads.
"""

from __future__ import annotations

import datetime
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from fabricproof.core.errors import OutputError
from fabricproof.core.records import parse_json
from fabricproof.core.whole_file import whole_file

_RUN = re.compile(r"(\d{4})(\d{2})\d{2}T\d{6}Z-")


def rotate(folder: Path, now: datetime.datetime) -> Iterator[str]:
    """Move the records of past months of all partitions below ``folder``; yield what was moved.

    A line without a readable run stays where it is.  Monthly files are written whole and made to
    last before anything is taken from ``records.jsonl``; a crash between leaves lines twice, which
    the next call finds and does not move again.

    Raises:
        OutputError: something could not be written; no record is lost.
    """
    for path in sorted(folder.glob("*/records.jsonl")):
        try:
            yield from _rotate(path, f"{now:%Y-%m}")
        except OSError as error:
            raise OutputError(
                f"cannot put past months aside: {error.strerror}",
                source=str(path),
                next_step="make room and ask again; no record is lost",
            ) from None


def _rotate(path: Path, this_month: str) -> Iterator[str]:
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        stays: list[bytes] = []
        months: dict[str, list[bytes]] = {}
        for line in file:
            month = _month(line)
            goes = month is not None and month < this_month
            (months.setdefault(str(month), []) if goes else stays).append(line)
        if not months:
            return
        for month, lines in months.items():
            _add(path.with_name(f"records-{month}.jsonl"), lines)
        _shorten(path, file.fileno(), b"".join(stays))
    for month, lines in sorted(months.items()):
        yield f"moved {len(lines)} records of {month} to {path.with_name(f'records-{month}.jsonl')}"


def _month(line: bytes) -> str | None:
    """Return ``2026-10`` of a record; None for what is no whole record of a run."""
    try:
        run = _RUN.match(str(parse_json(line)["run_id"]))
    except (ValueError, KeyError, TypeError):
        return None
    return f"{run[1]}-{run[2]}" if run and line.endswith(b"\n") else None


def _add(path: Path, lines: list[bytes]) -> None:
    old = path.read_bytes() if path.exists() else b""
    there = set(old.splitlines(keepends=True))
    with whole_file(path) as file:
        file.write(old + b"".join(line for line in lines if line not in there))


def _shorten(path: Path, descriptor: int, data: bytes) -> None:
    """Leave ``data`` in the open file, with a copy beside it until it is safe."""
    copy = path.with_name(f".{path.name}.staying")
    with whole_file(copy) as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    written = 0
    while written < len(data):
        written += os.write(descriptor, data[written:])
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)
    copy.unlink()
