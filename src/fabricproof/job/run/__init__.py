"""One acceptance run: what was due, what ReFrame did, what the records say; pure but for reading.

:mod:`~fabricproof.job.run.join` makes the verdict, :mod:`~fabricproof.job.run.collection` finds
what it is made of, right after a run or any time later.
"""

from __future__ import annotations

from fabricproof.job.run.collection import (
    ALL_LEGS,
    collect,
    collect_again,
    doubted,
    left_a_log_only,
)
from fabricproof.job.run.join import (
    BUILD_PROGRAM,
    OF_REFRAME,
    LegResult,
    SessionResult,
    assemble,
    read_report,
    read_run,
)
from fabricproof.job.run.start import (
    KEPT_STAGES,
    NODES_VARIABLE,
    Workplace,
    ask,
    check_scheduler,
    describe_checks,
    new_run_id,
    prune_stages,
    reframe_command,
    refuse_troubles,
    run_reframe,
    scheduler_answers,
    scheduling_troubles,
    session_environment,
    unloadable,
    wants_run,
    workplace,
)
from fabricproof.job.run.watch import LISTENS_VARIABLE, JobEvent, ends_as_interrupt, heard, tell

__all__ = [
    "ALL_LEGS",
    "BUILD_PROGRAM",
    "KEPT_STAGES",
    "LISTENS_VARIABLE",
    "NODES_VARIABLE",
    "OF_REFRAME",
    "JobEvent",
    "LegResult",
    "SessionResult",
    "Workplace",
    "ask",
    "assemble",
    "check_scheduler",
    "collect",
    "collect_again",
    "describe_checks",
    "doubted",
    "ends_as_interrupt",
    "heard",
    "left_a_log_only",
    "new_run_id",
    "prune_stages",
    "read_report",
    "read_run",
    "reframe_command",
    "refuse_troubles",
    "run_reframe",
    "scheduler_answers",
    "scheduling_troubles",
    "session_environment",
    "tell",
    "unloadable",
    "wants_run",
    "workplace",
]
