"""Our own perflog: one JSON line per quantity, message size and attempt, complete in itself.

Lines are only ever appended, so that a torn last line is the worst that a crash can do;
:func:`read_records` names it.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

from fabricproof.core.errors import InputMissingError, OutputError, ParseError
from fabricproof.core.measure import QUANTITY_KEYS, QUANTITY_PREFIX, Quantity, Verdict

FORMAT = 1

#: what a record may be of; what a later version adds is passed over with a note
KINDS = frozenset({"confirmation", "environment", "leg", "pair matrix", "quantity"})

#: how the fields of a quantity are read whose keys a record lacks; all others as None
_ABSENT: Mapping[str, Any] = {"reason": "", "named": False, "is_open": False}

#: how the record file of a run is named
_OF_ONE_RUN = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}\.jsonl")

#: what the next writer puts behind a line that a crash left without its end
TORN = b" #torn"


def append_records(
    path: Path,
    records: Iterable[Mapping[str, Any]],
    *,
    next_step: str = "make room; the job's own output is still in the stage folder",
) -> None:
    """Append all of the records or, with an OutputError, none; a torn last line is closed first."""
    data = b"".join(
        json.dumps({"format": FORMAT, **record}, sort_keys=True).encode() + b"\n"
        for record in records
    )
    if not data:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            start = file.seek(0, os.SEEK_END)
            file.seek(max(0, start - 1))
            if file.read(1) not in {b"", b"\n"}:
                data = TORN + b"\n" + data
            try:
                while data:
                    data = data[os.write(file.fileno(), data) :]
                os.fsync(file.fileno())
            except OSError:
                # If even this fails, the next writer finds a torn line and marks it.
                with contextlib.suppress(OSError):
                    os.ftruncate(file.fileno(), start)
                raise
    except OSError as error:
        problem = f"cannot keep the records: {error.strerror}"
        raise OutputError(problem, source=str(path), next_step=next_step) from None


def record_file(partition_folder: Path, run_id: str) -> Path:
    """Return the file in which a run keeps what it measured on a partition."""
    return partition_folder / f"{run_id or 'records'}.jsonl"


def record_files(site_folder: Path, run_id: str = "") -> list[Path]:
    """Return the record files of every partition of a site, as :func:`partition_files` does.

    With ``run_id`` those that may hold records of that run: none that another run is named by.
    """
    files = partition_files(site_folder)
    found = [path for path in files if is_named(path, "*.jsonl", "*.jsonl.gz")]
    return [
        path
        for path in found
        if not run_id or path.name.startswith(run_id) or not _OF_ONE_RUN.match(path.name)
    ]


def is_named(path: Path, *patterns: str) -> bool:
    """Tell whether the name of a file is as one of some patterns of the shell."""
    return any(fnmatchcase(path.name, each) for each in patterns)


def partition_files(site_folder: Path) -> list[Path]:
    """Return what lies in the partitions of a site, sorted; none if it has no folder.

    Folders that begin with a dot (``.inventory``, ``.night``) are no partitions.

    Raises:
        InputMissingError: a folder cannot be read, or a link to one leads nowhere: its disk may
            not be mounted.  A glob would pass over both.
    """
    folders = (each for each in _listed(site_folder) if not each.name.startswith("."))
    return sorted(path for folder in folders for path in _listed(folder))


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except NotADirectoryError:
        return []
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not may_exist(folder):
            return []  # there is none, or it was taken away since it was listed
        raise unreadable(folder, error) from None


def may_exist(path: Path) -> bool:
    """Tell whether something has this name, or may have.

    So do, unlike ``Path.exists``, a link to a disk that is not mounted and a name in a folder that
    cannot be searched: opening them says what is wrong.
    """
    try:
        path.lstat()
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)
    return True


def unreadable(path: Path, error: OSError) -> InputMissingError:
    """Return the error of a file or folder of the history that cannot be read."""
    return InputMissingError(
        f"cannot be read: {error.strerror or error}",
        source=str(path),
        next_step="make it readable; a history without it would be a shorter one in silence",
    )


def read_json(path: Path) -> Any:
    """Return what a JSON file says; OSError and ValueError are the caller's to explain."""
    return json.loads(path.read_bytes())


def text_of(path: Path, *, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Return the text of a file, UTF-8 by default, whatever the locale says."""
    return path.read_text(encoding=encoding, errors=errors)


def text_if_there(
    path: Path, expected: str, next_step: str, *, what: str = "cannot read"
) -> str | None:
    """Return the text of a file, None if nothing has its name; what is no UTF-8 is replaced.

    Raises an InputMissingError if it cannot be read, or is a link to where nothing is.
    """
    try:
        return text_of(path, errors="replace") if may_exist(path) else None
    except OSError as error:
        raise InputMissingError(
            f"{what}: {error.strerror}", source=str(path), expected=expected, next_step=next_step
        ) from None


@contextlib.contextmanager
def open_lines(path: Path) -> Iterator[Iterable[bytes]]:
    """Open a file of records, packed or not, to be read line by line."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        yield file


def read_records(
    path: Path, on_torn: Callable[[str], object] | None = None, *, holding: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield the records of a file, oldest first.

    Args:
        path: the file.
        on_torn: takes a note for each line that a crash tore, which is passed over.
        holding: whole lines without this text are passed over unread, for speed.

    Raises:
        InputMissingError: the file cannot be opened.
        ParseError: a line that is no record and was not torn by a crash: only the last line may
            end without a newline, and one that :func:`append_records` found so carries its mark.
    """
    wanted = holding.encode(errors="backslashreplace")
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open_lines(path))
        except OSError as error:
            raise unreadable(path, error) from None
        for number, line in enumerate(file, start=1):
            is_another = wanted not in line and line.startswith(b"{") and line.endswith(b"}\n")
            if is_another or not line.strip():
                continue
            text = line.rstrip(b"\n")
            is_torn = text.endswith(TORN) or not line.endswith(b"\n")
            try:
                record = json.loads(text.removesuffix(TORN))
            except ValueError:
                if not is_torn:
                    raise damaged(path, number, line) from None
                if on_torn is not None:
                    on_torn(torn(path, number))
                continue
            if not isinstance(record, dict) or record.get("format") != FORMAT:
                raise damaged(path, number, line)
            yield record


@dataclass(frozen=True, kw_only=True)
class QuantityRecord(Quantity):
    """A quantity as its record has it, with what the record says of the job beside it.

    Attributes:
        job_state: how the job ended, in Slurm's words; empty if unknown.
        lost_nodes: those that Slurm lost meanwhile.
    """

    nodes: tuple[str, ...] = ()
    rails: tuple[str, ...] = ()
    job_state: str = ""
    lost_nodes: tuple[str, ...] = ()

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        """Return the quantity of a leg's record; ValueError if its verdict is none."""
        own = {name: record.get(key, _ABSENT.get(name)) for name, key in QUANTITY_KEYS.items()}
        return cls(
            **{**own, "verdict": Verdict(own["verdict"])},
            nodes=tuple(record.get("nodes") or ()),
            rails=tuple(record.get("rails") or ()),
            job_state=str(record.get("job_state", "")),
            lost_nodes=tuple(record.get("lost_nodes") or ()),
        )

    def facts(self) -> dict[str, Any]:
        """Return what ``--json`` says of it: the keys of :meth:`record` without their prefix."""
        return {key.removeprefix(QUANTITY_PREFIX): value for key, value in self.record().items()}


def torn(file: str | Path, number: int) -> str:
    """Return the note on a line that a crash tore."""
    return f"{file}:{number}: a record torn by a crash was passed over"


def damaged(file: str | Path, number: int, line: bytes) -> ParseError:
    """Return the error of a line that no crash explains."""
    return ParseError(
        "damaged record",
        source=str(file),
        line=number,
        expected=f"a JSON object of format {FORMAT}",
        got=repr(line[:60].decode("utf-8", errors="replace")),
        next_step="mend the line or take it out; nothing after it is read before",
    )
