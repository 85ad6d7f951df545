"""SIGTERM and SIGHUP as Ctrl-C: a timer that ends a night ends it in order."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any


@contextlib.contextmanager
def ends_as_interrupt() -> Iterator[None]:
    """Take SIGTERM and SIGHUP as Ctrl-C: what runs is told too, and what had finished is kept."""

    def interrupted(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for child in _children():
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGINT)
        raise KeyboardInterrupt

    before: dict[int, Callable[..., Any] | int | None] = {
        number: signal.signal(number, interrupted) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _children() -> list[int]:
    """Return the processes that this one started and that still run."""
    found = []
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in task.read_text(encoding="ascii").split()]
    return found
