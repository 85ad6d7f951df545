"""What is done when a cluster could not be brought up: its logs are kept, and named."""

from __future__ import annotations

import contextlib
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from vcluster.errors import UnavailableError
from vcluster.paths import Paths, failure_logs


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
    return UnavailableError(
        failure.problem,
        source=str(kept / Path(failure.source or "").name),
        line=failure.line,
        expected=failure.expected,
        got=failure.got,
        next_step=failure.next_step,
    )


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
