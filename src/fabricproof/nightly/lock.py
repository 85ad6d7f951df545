"""One night of a site at a time, on any of its machines.

The lock is a file beside the perflogs that names host, process and start: made with link(2), which
is atomic on NFS too, and kept fresh while the night runs.  Network file systems may lack flock, or
emulate it on one machine only: it is not relied on.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ExitStatus, FabricproofError, OutputError
from fabricproof.core.records import read_json
from fabricproof.core.units import stamp
from fabricproof.core.whole_file import link_new

LOCK_FILE = "lock.json"

#: how often the lock is made fresh
HEARTBEAT_SECONDS = 30.0

#: A lock of another host that was not made fresh for so long is nobody's: twenty missed beats, ten
#: times what an NFS client caches attributes for (acregmax of nfs(5), 60 s).
STALE_SECONDS = 600.0


class NightRunsError(FabricproofError):
    """Another night of this site is running; come again later."""

    exit_status = ExitStatus.BUSY


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who holds the lock.

    Attributes:
        boot: identity of its kernel's start, and of the process namespace.
        ticks: when that process began, in ticks since the boot: pids come again.
        start: UTC, for a person.
    """

    host: str
    boot: str
    pid: int
    ticks: str
    start: str

    @property
    def sentence(self) -> str:
        """``admin1, process 4711, since 2026-11-21T02:00:00Z``."""
        return f"{self.host}, process {self.pid}, since {self.start}"


def myself() -> Holder:
    """Return this process as a holder."""
    return Holder(
        host=socket.gethostname(),
        boot=_boot(),
        pid=os.getpid(),
        ticks=_ticks(os.getpid()) or "",
        start=stamp(),
    )


def _boot() -> str:
    """Return what tells two starts of a host apart, and two containers with one name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _ticks(pid: int) -> str | None:
    """Return when process ``pid`` began; None where there is none."""
    try:
        # Field 22 of proc_pid_stat(5), counted behind the name, which may hold blanks.
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


@contextlib.contextmanager
def night_lock(folder: Path, *, beat: float = HEARTBEAT_SECONDS) -> Iterator[tuple[str, ...]]:
    """Hold the lock of the site whose state lies in ``folder``; yield what there is to say."""
    notes: list[str] = []
    path, mine = folder / LOCK_FILE, myself()
    _take(path, mine, notes)
    over = threading.Event()
    thread = threading.Thread(target=_keep_fresh, args=(path, over, beat), daemon=True)
    thread.start()
    try:
        yield tuple(notes)
    finally:
        over.set()
        thread.join()
        with contextlib.suppress(OSError):
            if _read(path) == vars(mine):
                path.unlink()


def _busy(lock: Path, held: Mapping[str, Any] | None) -> NightRunsError:
    holder = _holder(held) if held else None
    return NightRunsError(
        "a night of this site is running",
        source=str(lock),
        got=holder.sentence if holder else "its lock is held",
        next_step="wait for it, or end that process; a lock of a dead one goes by itself",
    )


def _take(path: Path, mine: Holder, notes: list[str]) -> None:
    draft = path.with_name(f".{path.name}.{mine.host}.{mine.pid}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(vars(mine)) + "\n", encoding="utf-8")
        try:
            for _ in range(2):
                if _link(draft, path):
                    return
                _set_aside_dead(path, draft, notes)
            raise _busy(path, _read(path))
        finally:
            draft.unlink(missing_ok=True)
    except NightRunsError:
        raise
    except OSError as error:
        raise OutputError(
            f"cannot take the lock: {error.strerror}",
            source=str(path),
            next_step="make room, or mend the permissions",
        ) from None


def _link(draft: Path, path: Path) -> bool:
    """Make ``path`` where it is not there; file systems without links get O_EXCL."""
    try:
        if not link_new(draft, path):
            with path.open("x", encoding="utf-8") as file:
                file.write(draft.read_text(encoding="utf-8"))
    except FileExistsError:
        return False
    return True


def _set_aside_dead(path: Path, draft: Path, notes: list[str]) -> None:
    """Remove a lock that nobody holds any more, and say so; else refuse.

    One at a time: of two that find it dead at once, the slower would remove what the faster took.
    """
    if not why_dead(path, _read(path), draft):
        raise _busy(path, _read(path))
    only_me = path.with_name(f"{path.name}.takeover")
    if not _link(draft, only_me):
        if _age(only_me, draft) > STALE_SECONDS:  # of one that died while doing this
            only_me.unlink(missing_ok=True)
        raise _busy(path, _read(path))
    try:
        held = _read(path)
        why = why_dead(path, held, draft)
        if not why:
            raise _busy(path, held)
        if path.exists():
            path.unlink(missing_ok=True)
            notes.append(f"{path}: a lock that nobody holds any more was taken over: {why}")
    finally:
        only_me.unlink(missing_ok=True)


def _age(path: Path, draft: Path) -> float:
    """Return how much older than ``draft`` a file is, in s; 0 where it is gone."""
    try:
        return draft.stat().st_mtime - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def why_dead(path: Path, held: Mapping[str, Any] | None, draft: Path) -> str:
    """Return why the lock at ``path`` is nobody's; empty where somebody may hold it.

    Ages are taken from the file system's own clock, as ``draft``, which was just written, has it.
    """
    try:
        age = draft.stat().st_mtime - path.stat().st_mtime
    except FileNotFoundError:
        return "it is gone"
    holder = _holder(held)
    if holder is None:
        return "it says nothing, and is old" if age > STALE_SECONDS else ""
    mine = myself()
    if holder.host == mine.host and holder.boot.split(" ")[0] != mine.boot.split(" ")[0]:
        return f"{holder.sentence}: {holder.host} was started anew since"
    if (holder.host, holder.boot) == (mine.host, mine.boot):
        ticks = _ticks(holder.pid)
        return "" if ticks == holder.ticks else f"{holder.sentence}: there is no such process"
    if age > STALE_SECONDS:
        return f"{holder.sentence}: no sign of life for {age / 60:.0f} minutes"
    return ""


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _holder(held: Mapping[str, Any] | None) -> Holder | None:
    try:
        holder = Holder(**held) if held else None
    except TypeError:
        return None
    texts = () if holder is None else (holder.host, holder.boot, holder.ticks, holder.start)
    is_sound = holder is not None and type(holder.pid) is int
    return holder if is_sound and all(isinstance(each, str) for each in texts) else None


def _keep_fresh(path: Path, over: threading.Event, beat: float) -> None:
    while not over.wait(beat):
        with contextlib.suppress(OSError):
            os.utime(path)
