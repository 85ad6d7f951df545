"""While ReFrame runs: a watch over the scheduler, and what the checks tell of their jobs.

With accounting up and the controller dead, ``sacct`` goes on saying RUNNING, and ReFrame would wait
for ever.  A controller that restarts is back within minutes; one that is not is a dead daemon.

The checks print one line of JSON for each of their jobs.  Records say what was measured, and
nothing is judged by these lines: they only say how far a run is.  They are told where somebody
listens, which :data:`LISTENS_VARIABLE` says.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

#: how long the scheduler may be silent during a run, in seconds; the variable overrides it
PATIENCE_SECONDS = 180.0
PATIENCE_VARIABLE = "FABRICPROOF_SCHEDULER_PATIENCE"

#: how often it is asked, as a share of the patience
ASKS_PER_PATIENCE = 6

#: how long ReFrame may take to cancel its jobs when it is told to stop
FAREWELL_SECONDS = 30.0


def patience_seconds() -> float:
    """Return the patience in force, in seconds; a value that is no positive number is ignored."""
    try:
        chosen = float(os.environ.get(PATIENCE_VARIABLE, ""))
    except ValueError:
        return PATIENCE_SECONDS
    return chosen if 0 < chosen < float("inf") else PATIENCE_SECONDS


class Watch:
    """Ends a process once ``alive`` has said no for as long as the patience.

    A context manager around the time in which the process runs; ``gave_up`` tells afterwards.
    """

    def __init__(
        self,
        process: subprocess.Popen[str],
        alive: Callable[[], bool],
        *,
        patience: float,
        farewell: float = FAREWELL_SECONDS,
    ) -> None:
        self.gave_up = False
        self._process = process
        self._alive = alive
        self._patience = patience
        self._farewell = farewell
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        silent_since: float | None = None
        while not self._over.wait(self._patience / ASKS_PER_PATIENCE):
            asked = time.monotonic()
            if self._alive():
                silent_since = None
                continue
            silent_since = asked if silent_since is None else silent_since
            if time.monotonic() - silent_since >= self._patience:
                self.gave_up = True
                self._process.send_signal(_ending_signal())
                try:
                    self._process.wait(self._farewell)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                return


@contextlib.contextmanager
def ends_as_interrupt() -> Iterator[None]:
    """Take SIGTERM and SIGHUP as Ctrl-C: what runs is told too, and what had finished is kept.

    A timer, ``timeout`` or ``kill`` ends the main process only: ReFrame and its jobs would go on.
    Threads cannot take signals (Python's signal module): in one this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for child in _children():
            with contextlib.suppress(OSError):
                os.kill(child, _ending_signal())
        raise KeyboardInterrupt

    # polars, once imported, has reading go on after Ctrl-C (SA_RESTART) until somebody writes.
    signal.siginterrupt(signal.SIGINT, True)
    before: dict[int, Callable[..., Any] | int | None] = {
        number: signal.signal(number, interrupted) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ending_signal() -> signal.Signals:
    """Return what a child of ours listens to: it ignores SIGINT where we were started so.

    A shell without job control starts ``fabricproof run &`` with SIGINT ignored, and every child
    inherits that.  SIGTERM then has ReFrame cancel its jobs likewise.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return signal.SIGTERM if ignored else signal.SIGINT


def _children() -> list[int]:
    """Return the processes that this one started and that still run."""
    found = []
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in task.read_text(encoding="ascii").split()]
    return found


#: set where the reader of ReFrame's output takes these lines
LISTENS_VARIABLE = "FABRICPROOF_LISTENS"

_START = '{"fabricproof_job": '


class JobEvent(StrEnum):
    """What became of a job."""

    PLANNED = "planned"
    SUBMITTED = "submitted"
    JUDGED = "judged"


def tell(event: JobEvent, facts: Mapping[str, Any]) -> None:
    """Print one event, where somebody listens; that nobody does any more is no trouble."""
    if os.environ.get(LISTENS_VARIABLE):
        with contextlib.suppress(OSError):
            sys.stdout.write(json.dumps({"fabricproof_job": event, **facts}) + "\n")
            sys.stdout.flush()


def heard(line: str) -> tuple[JobEvent, dict[str, Any]] | None:
    """Return the event of a line of ReFrame's output; None where the line is none."""
    if not line.startswith(_START):
        return None
    with contextlib.suppress(ValueError, TypeError, KeyError):
        facts = json.loads(line)
        return JobEvent(facts.pop("fabricproof_job")), facts
    return None
