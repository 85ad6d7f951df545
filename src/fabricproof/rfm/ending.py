"""How ReFrame's job ended, by its own file and by what the scheduler says.

ReFrame's backend ``squeue`` takes a job that squeue does not list for COMPLETED, knows no exit
status, and may know no nodes; where squeue fails, so it takes one that runs.  The verdict goes by
what is found here, and ReFrame keeps its own view.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path

from reframe.core.exceptions import ReframeError
from reframe.core.schedulers import Job

from fabricproof.job.evidence.leg_folder import last_words
from fabricproof.job.job_end import JobEnd, SchedulerSays, find_doubt, read_end
from fabricproof.rfm.slurm_nodes import ask_job
from fabricproof.verdict.objections import Objection

#: how long a file of a node may take to be seen here: a shared file system looks into a folder
#: again after some seconds
FILE_PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.2


def settle(
    job: Job, folder: Path, scheduler: str
) -> tuple[JobEnd | None, Objection | None, SchedulerSays]:
    """Return how ``job`` ended, what is wrong with that, and its state and nodes."""
    says = _says(job, scheduler)
    end = _await_end(folder, says)
    if scheduler == "squeue" and end is None:
        says = _says(job, scheduler)  # it may have ended meanwhile
    doubt = find_doubt(end, str(job.jobid), says, last_words(folder / str(job.stderr)))
    if doubt is not None and says.unfinished:
        # ReFrame took it for ended; the next one would measure beside it.
        with contextlib.suppress(ReframeError):
            job.cancel()
    if scheduler != "squeue":
        return end, doubt, replace(says, state=str(job.state), nodes=tuple(job.nodelist or ()))
    state = "COMPLETED" if doubt is None else says.state or "None"
    nodes = says.nodes or (end.nodes if end is not None else ())
    return end, doubt, replace(says, state=state, nodes=nodes)


def _says(job: Job, scheduler: str) -> SchedulerSays:
    if scheduler == "squeue":
        return ask_job(str(job.jobid))
    if scheduler != "slurm":
        return SchedulerSays(exit_status=job.exitcode)
    return SchedulerSays(state=str(job.state), exit_status=job.exitcode)


def _await_end(folder: Path, says: SchedulerSays) -> JobEnd | None:
    """Return what the job left; waited for where the scheduler knows of nothing that went wrong."""
    deadline = time.monotonic() + FILE_PATIENCE_SECONDS
    while (end := read_end(folder)) is None:
        failed = says.exit_status or (
            says.state not in {None, "COMPLETED", "COMPLETING"} and not says.unfinished
        )
        if failed or time.monotonic() > deadline:
            return None
        list(folder.iterdir())  # has NFS ask its server what the folder holds
        time.sleep(_POLL_SECONDS)
    return end
