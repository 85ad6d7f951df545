"""Run a command in a process group of its own: all of it ends at Ctrl-C and at its time limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

#: seconds that a group has to end by itself, where it is asked first
PATIENCE_SECONDS = 20.0

#: seconds that a killed command has to be gone; one that waits for a device may stay
_END_SECONDS = 5.0


def run_group(
    command: Sequence[str],
    seconds: float,
    *,
    environment: Mapping[str, str] | None = None,
    text: str = "",
    apart: bool = False,
    first: int | None = None,
    stays: bool = False,
) -> tuple[int | None, str, str]:
    """Run a command; return its exit status, None where it had to be ended, and what it printed.

    Args:
        command: the program and its arguments; OSError if it cannot be started.
        seconds: after which all of it is ended.
        environment: None for our own.
        text: what it reads from its input.
        apart: each stream by itself; else the first has both, in order.
        first: the signal that asks it to end before it is killed; None for no such signal.
        stays: what it left behind goes on if it ended by itself.
    """
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE if text else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if apart else subprocess.STDOUT,
        start_new_session=True,
    )
    status = None
    try:
        output, errors = process.communicate(text.encode(errors="replace"), timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired as error:
        output, errors = error.stdout or b"", error.stderr or b""
    finally:
        if status is None or not stays:
            end_group(process, first)
    return status, output.decode(errors="replace"), (errors or b"").decode(errors="replace")


def end_group(
    process: subprocess.Popen[bytes] | subprocess.Popen[str],
    first: int | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
) -> None:
    """End ``process``, which leads a group, and whatever of the group still runs.

    ``first`` asks the leader to end, and an interrupt shortens the waiting.  What is left may hold
    the pipes, and what ``sudo`` runs cannot be killed by us: we wait for neither.
    """

    def send(sign: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)

    try:
        if first is not None and process.poll() is None:
            send(first)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=patience_seconds)
    finally:
        send(signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_END_SECONDS)
