"""Other programs: call one with a time limit, find those that run, tell whether one is the same."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vcluster.errors import UnavailableError

_PROC = Path("/proc")
#: field 22 of /proc/PID/stat, counted from the state, which is field 3 (proc(5)).
_STARTTIME = 22 - 3


@dataclass(frozen=True, kw_only=True)
class Process:
    """A process by number and start, so that a reused number is not mistaken for it.

    Attributes:
        start: clock ticks from boot to its start.
    """

    pid: int
    start: int

    def alive(self) -> bool:
        """Tell whether this very process runs (a zombie does not)."""
        return start_time(self.pid) == self.start

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal, unless the process is gone."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks after boot; None if it does not run."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[_STARTTIME])


def process(pid: int) -> Process | None:
    """Return the running process of that number."""
    start = start_time(pid)
    return None if start is None else Process(pid=pid, start=start)


def all_pids() -> Iterator[int]:
    """Yield the number of every process."""
    yield from (int(entry) for entry in os.listdir(_PROC) if entry.isdigit())  # noqa: PTH208


def namespace(pid: int, kind: str) -> str | None:
    """Return the identity (``net:[4026531840]``) of a process's namespace."""
    try:
        return str((_PROC / str(pid) / "ns" / kind).readlink())
    except OSError:
        return None


def name_of(pid: int) -> str:
    """Return the name of a process, cut at 15 characters by the kernel; empty if gone."""
    try:
        return (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def in_namespaces(kind: str, wanted: Iterable[str]) -> list[int]:
    """Return the processes that live in one of the namespaces."""
    names = set(wanted)
    return [pid for pid in all_pids() if namespace(pid, kind) in names]


def marked(entry: str) -> list[int]:
    """Return the processes with ``entry`` (``NAME=value``) in their initial environment."""
    needle = entry.encode()
    found = []
    for pid in all_pids():
        try:
            environment = (_PROC / str(pid) / "environ").read_bytes()
        except OSError:
            continue
        if needle in environment.split(b"\0"):
            found.append(pid)
    return found


def end(victims: Iterable[Process], *, timeout_s: float = 5.0) -> list[Process]:
    """Kill processes and wait until they are gone; return those that are not."""
    left = list(victims)
    for victim in left:
        victim.kill()
    deadline = time.monotonic() + timeout_s
    while left and time.monotonic() < deadline:
        left = [victim for victim in left if victim.alive()]
        time.sleep(0.01 if left else 0)
    return left


#: daemons and tools of administrators live in the sbin folders, which users may not have.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_environment(**extra: str) -> dict[str, str]:
    """Return the environment of every daemon: nothing of the caller's shell in it."""
    return {"PATH": SYSTEM_PATH, "LANG": "C", "LC_ALL": "C", "HOME": "/root", **extra}


def run(
    argv: Sequence[str],
    *,
    stdin: str | None = None,
    timeout_s: float = 20.0,
    environment: dict[str, str] | None = None,
    check: bool = True,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return its output.

    Without ``environment`` it gets :func:`clean_environment`; it is killed after ``timeout_s``.

    Raises:
        UnavailableError: it is not there, failed or did not end in time.
    """
    try:
        done = subprocess.run(  # noqa: PLW1510 (checked below, with a better message)
            list(argv),
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=environment if environment is not None else clean_environment(),
            start_new_session=True,
            cwd=cwd,
        )
    except FileNotFoundError as error:
        raise UnavailableError(
            f"program {argv[0]!r} is not there", next_step="ci/bootstrap.sh packages"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{' '.join(argv)!r} did not end within {timeout_s:g} s") from error
    if check and done.returncode != 0:
        says = (done.stderr or done.stdout).strip().splitlines()
        raise UnavailableError(
            f"{' '.join(argv)!r} failed with status {done.returncode}",
            got=" / ".join(says[-3:]) or "no message",
        )
    return done


def find_program(name: str) -> str | None:
    """Return the full path of a program in the system's folders."""
    return shutil.which(name, path=SYSTEM_PATH)
