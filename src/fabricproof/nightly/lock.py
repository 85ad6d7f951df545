"""One night of a site at a time, on any of its machines.

The lock is one of ``fasteners``, which ReFrame brings: ``fcntl`` record locks, which NFS carries
from machine to machine (NLM up to version 3, part of the protocol since 4) and the kernel drops
when the process ends, however.  They are a process's own: a second lock in it is no second night.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import fasteners

from fabricproof.core.errors import ExitStatus, FabricproofError, OutputError
from fabricproof.core.units import stamp

LOCK_FILE = "lock"


class NightRunsError(FabricproofError):
    """Another night of this site is running; come again later."""

    exit_status = ExitStatus.BUSY


@contextlib.contextmanager
def night_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of the site whose state lies in ``folder``.

    Raises:
        NightRunsError: another process holds it; says which.
        OutputError: the lock's file cannot be made.
    """
    path = folder / LOCK_FILE
    lock = fasteners.InterProcessLock(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = lock.acquire(blocking=False)
        if not taken:
            lock.lockfile.close()
            holder = path.read_text(encoding="utf-8", errors="replace").strip()
            raise NightRunsError(
                "a night of this site is running",
                source=str(path),
                got=holder or "its lock is held",
                next_step="wait for it, or end that process: its lock goes with it",
            )
        # By its own handle: another one, closed, would drop the lock (fcntl(2)).
        lock.lockfile.truncate(0)
        lock.lockfile.write(f"{socket.gethostname()}, process {os.getpid()}, since {stamp()}\n")
        lock.lockfile.flush()
    except (OSError, threading.ThreadError) as error:  # the latter of fasteners: no such lock here
        if lock.acquired:
            lock.release()
        raise OutputError(
            f"cannot take the lock: {getattr(error, 'strerror', None) or error}",
            source=str(path),
            next_step="make room, or mend the permissions",
        ) from None
    try:
        yield
    finally:
        lock.release()
