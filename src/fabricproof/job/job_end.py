"""How a job ended, by its own last file.

A scheduler without accounting forgets how a job ended, and one that does not answer looks the same
as one that no longer knows the job.  So the job script writes a last file of its own, and that
decides; the scheduler lends words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricproof.core.errors import FabricproofError
from fabricproof.core.hostlist import expand
from fabricproof.job.evidence.leg_folder import read_text
from fabricproof.job.outcome import Outcome
from fabricproof.job.script import JOB_END_FILE
from fabricproof.verdict.objections import Objection, ObjectionKind

#: What Slurm says of a job whose output file slurmd could not open on the node (ExitCode 0:53).
_NO_FILES = 53
_UNOPENED = "slurmd could not open the job's files; do all nodes see this folder at this path?"

#: First of all in the job script, before any module is loaded: whatever ends it writes the file.
#: Bash runs a trap on EXIT after a fatal signal too, then with any status: so the last command of
#: the script must have said that it was reached.  The name is absolute, as a module may change the
#: folder; the file appears whole or not at all.  A site that submits with ``--export=NONE`` would
#: have srun start each rank with nothing of what modules and legs set (sbatch(1), --export).
RECORD_END = f"""\
fabricproof_end=$PWD/{JOB_END_FILE} fabricproof_reached=no
export SLURM_EXPORT_ENV=ALL
rm -f "$fabricproof_end"
fabricproof_ends() {{ # how this job ended, for who judges it
    local status=$?
    printf 'job %s\\nnodes %s\\nreached %s\\nstatus %s\\n' \\
        "${{SLURM_JOB_ID:-none}}" "${{SLURM_JOB_NODELIST:-none}}" \\
        "$fabricproof_reached" "$status" >"$fabricproof_end.part" &&
        mv -f "$fabricproof_end.part" "$fabricproof_end"
}}
trap fabricproof_ends EXIT"""

#: the last command of the job script
REACHED_END = "fabricproof_reached=yes"


@dataclass(frozen=True, kw_only=True)
class JobEnd:
    """What the job script left at its end."""

    job_id: str | None  # None outside Slurm
    nodes: tuple[str, ...]  # that the job had; empty outside Slurm
    reached: bool  # whether it came to its last command
    status: int  # of one that a signal ended it says nothing


@dataclass(frozen=True, kw_only=True)
class SchedulerSays:
    """What the scheduler knows of a job that has ended; None and empty if it does not know."""

    state: str | None = None  # in Slurm's words, ``COMPLETED``
    exit_status: int | None = None
    nodes: tuple[str, ...] = ()

    @property
    def unfinished(self) -> bool:
        """Whether it says that the job has not ended."""
        return self.state in {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "STOPPED"}

    def __str__(self) -> str:
        """Return it as the end of a sentence."""
        words = [self.state] if self.state else []
        words += [f"exit status {self.exit_status}"] if self.exit_status else []
        return f"; the scheduler says {', '.join(words)}" if words else ""


def read_end(folder: Path) -> JobEnd | None:
    """Return what the job in ``folder`` left at its end; None if it left nothing whole."""
    text = read_text(folder / JOB_END_FILE)
    if not text.endswith("\n"):
        return None
    try:
        facts = dict(line.split(" ", 1) for line in text.splitlines())
        return JobEnd(
            job_id=None if facts["job"] == "none" else facts["job"],
            nodes=() if facts["nodes"] == "none" else expand(facts["nodes"]),
            reached=facts["reached"] == "yes",
            status=int(facts["status"]),
        )
    except (ValueError, KeyError, FabricproofError):
        return None


def find_doubt(
    end: JobEnd | None, job_id: str, says: SchedulerSays, last_words: str = ""
) -> Objection | None:
    """Return what is wrong with the end of a job; None if it came to its last command."""
    if end is not None and end.job_id in {None, job_id}:
        if end.reached and end.status == 0:
            return None
        where = "" if end.reached else " before its last command"
        words = f": {last_words}" if last_words else ""
        reason = f"the job ended{where}, with exit status {end.status}{says}{words}"
    elif says.unfinished:
        reason = f"the job has not ended: the scheduler says {says.state}"
    else:
        unopened = f": {_UNOPENED}" if says.exit_status == _NO_FILES else ""
        reason = f"the job did not come to its end: it left no {JOB_END_FILE}{says}{unopened}"
    return Objection(kind=ObjectionKind.JOB_CUT_OFF, reason=reason)


def find_strangers(end: JobEnd | None, outcomes: Sequence[Outcome]) -> Objection | None:
    """Return an objection if ranks of a job ran on nodes that it did not have; None if none did.

    A launcher that goes by a list of nodes of its own starts them elsewhere.  A leg may leave nodes
    of its job idle; outside Slurm a job has no list.  A domain behind a name is no other node.
    """
    if end is None or not end.nodes:
        return None
    own = {node.partition(".")[0] for node in end.nodes}
    ran_on = {rank.node for each in outcomes for rank in each.ranks}
    strange = sorted({node for node in ran_on if node.partition(".")[0] not in own})
    if not strange:
        return None
    there = ", ".join(end.nodes)
    reason = f"the job had {there}, and its ranks say that they ran on {', '.join(strange)}"
    return Objection(kind=ObjectionKind.STRANGE_NODES, reason=reason)
