"""One acceptance run: what was due, what ReFrame did, what the records say; pure but for reading.

:mod:`~fabricproof.job.run.join` makes the verdict, :mod:`~fabricproof.job.run.collect` finds what
it is made of, right after a run or any time later.
"""

from __future__ import annotations

from fabricproof.job.run.join import (
    BUILD_PROGRAM,
    LegResult,
    SessionResult,
    assemble,
    read_report,
    read_run,
)

__all__ = [
    "BUILD_PROGRAM",
    "LegResult",
    "SessionResult",
    "assemble",
    "read_report",
    "read_run",
]
