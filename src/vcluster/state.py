"""A cluster on file: what runs, the lock against two commands at once, the logs of a failure."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

from vcluster.errors import UnavailableError
from vcluster.guests.guest import space_from_json
from vcluster.node import Space
from vcluster.paths import BASE, Paths, failure_logs, project_root
from vcluster.plan import Plan
from vcluster.rails import faults as wrong
from vcluster.rails.faults import Fault, Place

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class State:
    """A cluster, complete or half built.

    Attributes:
        plan: what it is to be.
        spaces: what has been started, by host name (``switches``, ``head``, ``vc1``...).
        complete: whether ``up`` came to its end.
        faults: those that were put in on purpose, by place.
        acceleration: what guests run with and why, in words; empty where there are none.
        project: the checkout that brought it up; empty where an earlier version did.
    """

    plan: Plan
    spaces: dict[str, Space]
    complete: bool
    faults: dict[Place, Fault] = field(default_factory=dict)
    acceleration: str = ""
    project: str = field(default_factory=lambda: str(project_root()))


def save(paths: Paths, state: State) -> None:
    """Write the state; a crash leaves the old one or the new one."""
    data = {
        "format": _FORMAT,
        "plan": state.plan.as_json(),
        "spaces": [space.as_json() for space in state.spaces.values()],
        "complete": state.complete,
        "faults": wrong.as_json(state.faults),
        "acceleration": state.acceleration,
        "project": state.project,
    }
    fresh = paths.state.with_suffix(".new")
    fresh.write_text(json.dumps(data, indent=1))
    fresh.replace(paths.state)


def load(paths: Paths) -> State | None:
    """Return the state; None where there is none or it cannot be read."""
    try:
        data = json.loads(paths.state.read_text())
        if data["format"] != _FORMAT:
            return None
        spaces = [space_from_json(entry) for entry in data["spaces"]]
        return State(
            plan=Plan.from_json(data["plan"]),
            spaces={space.name: space for space in spaces},
            complete=data["complete"],
            faults=wrong.from_json(data["faults"]),
            acceleration=data.get("acceleration", ""),
            project=data.get("project", ""),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def locked(paths: Paths) -> Iterator[None]:
    """Hold the cluster's lock; its file is gone afterwards.

    Raises:
        UnavailableError: another command is changing the cluster.
    """
    file = _lock(paths)
    try:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
    finally:
        paths.lock.unlink(missing_ok=True)
        file.close()
        with contextlib.suppress(OSError):
            BASE.rmdir()
            BASE.parent.rmdir()


def _lock(paths: Paths) -> TextIO:
    """Open and lock the file, again if its last holder removed it in between."""
    while True:
        BASE.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            file = paths.lock.open("a+")
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            file.close()
            raise UnavailableError(
                f"another command is changing the virtual cluster {paths.name!r} (process "
                f"{holder})",
                next_step="wait until it has ended",
            ) from error
        if _still_there(paths, file):
            return file
        file.close()


def _still_there(paths: Paths, file: TextIO) -> bool:
    try:
        return paths.lock.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False


def keep_logs(paths: Paths) -> Path:
    """Keep the logs of a failed ``up`` where ``down`` does not remove them; return where."""
    target = failure_logs() / paths.name
    with contextlib.suppress(OSError):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(paths.log, target)
    return target


def is_log(paths: Paths, source: str | None) -> bool:
    """Tell whether an error names a log of the cluster, and not another file of the machine."""
    return source is not None and Path(source).parent == paths.log


def with_kept_log(failure: UnavailableError, kept: Path) -> UnavailableError:
    """Return the same error, naming the copy of the log that stays."""
    return replace(failure, source=str(kept / Path(failure.source or "").name))


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let a second Ctrl-C not stop the clean-up after the first."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
