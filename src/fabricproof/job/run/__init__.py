"""One acceptance run: what was due, what ReFrame did, what the records say."""

from __future__ import annotations

from fabricproof.job.run.collection import (
    RunNote,
    collect,
    left_a_note_only,
    read_report,
    read_run,
    selects_nothing,
)
from fabricproof.job.run.join import ALL_LEGS, assemble, useful_words
from fabricproof.job.run.result import BUILD_PROGRAM, OF_REFRAME, LegResult, RunResult
from fabricproof.job.run.scheduler import (
    check_scheduler,
    ready_to_run,
    refused_troubles,
    scheduler_answers,
    scheduling_troubles,
)
from fabricproof.job.run.start import (
    KEPT_STAGES,
    LISTENS_VARIABLE,
    NODES_VARIABLE,
    PLANS_VARIABLE,
    JobEvent,
    Workplace,
    describe_checks,
    ends_as_interrupt,
    heard,
    knows_exit_statuses,
    new_run_id,
    prune_stages,
    reframe_command,
    refuse_full_disk,
    run_reframe,
    session_environment,
    tell,
    unloadable,
    wants_run,
    workplace,
)

# fmt: off
__all__ = [
    "ALL_LEGS", "BUILD_PROGRAM", "KEPT_STAGES", "LISTENS_VARIABLE", "NODES_VARIABLE", "OF_REFRAME",
    "PLANS_VARIABLE", "JobEvent", "LegResult", "RunNote", "RunResult", "Workplace", "assemble",
    "check_scheduler", "collect", "describe_checks", "ends_as_interrupt", "heard",
    "knows_exit_statuses",
    "left_a_note_only", "new_run_id", "prune_stages", "read_report", "read_run", "ready_to_run",
    "reframe_command", "refuse_full_disk", "refused_troubles", "run_reframe", "scheduler_answers",
    "scheduling_troubles", "selects_nothing", "session_environment", "tell", "unloadable",
    "useful_words", "wants_run", "workplace",
]
# fmt: on
