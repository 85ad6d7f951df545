"""How ReFrame's job ended, by its own file and by what the scheduler says.

ReFrame's backend ``squeue`` takes a job that squeue does not list for COMPLETED, knows no exit
status, and may know no nodes; where squeue fails, so it takes one that runs.  The verdict goes by
what is found here, and ReFrame keeps its own view but for two things, which it gives no other way
to (4.8 to 4.10): the exit status that squeue does not know, for which ``trap_job_errors`` would
fail every check; and the nodes of a job, which it asks for again and again.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path

from reframe.core.exceptions import ReframeError
from reframe.core.schedulers import Job
from reframe.core.schedulers.slurm import _SlurmJob

from fabricproof.job.evidence.leg_folder import last_words
from fabricproof.job.job_end import JobEnd, SchedulerSays, find_doubt, read_end
from fabricproof.rfm.slurm_nodes import ask_job
from fabricproof.verdict.objections import Objection

#: how long a file of a node may take to be seen here: a shared file system looks into a folder
#: again after some seconds
FILE_PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.2


def ask_nodes_once() -> None:
    """Have ReFrame ask Slurm once for the nodes of a job that has ended.

    It starts ``scontrol show hostname`` whenever the list is read (4.10,
    ``core/schedulers/slurm.py``), and reads it for each line of its log and of its perflog: 63
    times for one job of four legs, beside the measurement of the next.
    """
    ask = _SlurmJob.nodelist.fget
    if ask.__name__ == "nodelist_once":
        return

    def nodelist_once(job: _SlurmJob) -> list[str]:
        known = getattr(job, "_fabricproof_nodes", None)
        if known is None or known[0] != job._nodespec:
            known = (job._nodespec, ask(job))
            # Empty: it runs yet, or Slurm did not answer.
            job._fabricproof_nodes = known if known[1] else None
        return list(known[1])

    _SlurmJob.nodelist = property(nodelist_once)


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
    if end is not None and job.exitcode is None:
        job._exitcode = end.status if end.reached or end.status else None
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
