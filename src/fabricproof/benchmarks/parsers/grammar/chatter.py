"""What else stands in a job's output: harmless chatter, and the news that the job died.

Anything may stand between two rows as long as it cannot be a piece of a row.  A line that could
be one is damage: guessing is how a shortened table becomes a green verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fabricproof.benchmarks.parsers.grammar.text import TextSection

#: The job was killed or gave up.  Sources: Slurm's slurmstepd and srun messages, Open MPI's
#: help-mpirun/help-mpi-api texts, Hydra's "BAD TERMINATION" banner, bash's job messages, MPICH's
#: and Intel MPI's fatal error texts, the kernel's and cgroup's out-of-memory news, timeout(1) -v,
#: PBS ("job killed: walltime 3600 exceeded") and LSF ("job killed after reaching LSF run time").
_DEATH = re.compile(
    r"CANCELLED|DUE TO (?:TIME LIMIT|NODE FAILURE|PREEMPTION|JOB REQUEUE)"
    r"|srun: (?:error: .*task|Job step aborted|Force Terminated|First task exited)"
    r"|srun: error: .*(?:failed|Timed out|Unable|Aborting)"
    r"|^\s*(?:Killed|Terminated|Aborted|Segmentation fault|Bus error|Floating point exception)\b"
    r"|(?:mpirun|mpiexec|prterun|orterun|mpiexec\.hydra)\s+(?:noticed|detected|has exited)"
    r"|BAD TERMINATION|KILLED BY SIGNAL|APPLICATION TERMINATED WITH"
    r"|MPI_ABORT was invoked|MPI_Abort\(|MPI_ERRORS_ARE_FATAL|[Ff]atal error in|^Abort\(\d+\)"
    r"|Process received signal|Caught signal|[Ss]egmentation [Ff]ault|SIG(?:KILL|SEGV|TERM|BUS)\b"
    r"|(?:ORTE|PRTE) has lost communication|daemon .*unexpectedly"
    r"|oom[-_]kill|[Oo]ut [Oo]f [Mm]emory|OUT_OF_MEMORY|Transport retry count exceeded"
    r"|slurmstepd: error: .*(?:STEP|JOB|Exceeded)"
    r"|srun: (?:error: Node failure|forcing job termination)"
    r"|abort is already in progress|sending signal \w+ to command|[Jj]ob killed"
    r"|^\s*(?:Illegal instruction|Hangup|Alarm clock|User defined signal \d)\b"
)

#: The program ended with a status other than 0.  After a failed validation this is expected.
_EXITED = re.compile(
    r"[Ee]xited with exit code|non-zero (?:exit )?status|non-zero exit code|exited with status"
)

#: Chatter that begins with a digit: dates, clock times, sentences ("1 more process has sent ...").
#: In a row at least two blanks follow the size, so a cut row is no sentence.  No row holds a
#: percentage first ("0% [Working]" of apt), or an address followed by a name ("4deb78a flags=0x0)",
#: the second half of a line of UCX).
_DIGIT_CHATTER = re.compile(
    r"\s*(?:\d{1,3}% |(?:0x[0-9a-f]{1,16}|(?=[0-9]+[a-f])[0-9a-f]{6,16}),? [a-z]+=|"
    r"\d+(?:[-/]\d+){2}|\d+:\d\d|\d+(?:\.\d+)*\.? [A-Za-z(\[])"
)

#: Searching costs the square of a line's length; no row and no news is longer than this.
_LONG = 2000

_ROW_START = re.compile(r"\s*[-+.]?\d")
_ROW_INSIDE = re.compile(r"\d[ \t]{2,}\d+\.\d|\d[ \t]+\d+\.\d\d(?!\d)\s*$")


def death(line: str) -> bool:
    """Tell whether ``line`` says that the job was killed, crashed or ended badly."""
    line = line[:_LONG]
    return _DEATH.search(line) is not None or is_exit_status(line)


def is_exit_status(line: str) -> bool:
    """Tell whether ``line`` reports nothing worse than an exit status other than 0."""
    return _EXITED.search(line) is not None


def first_death(lines: Iterable[str]) -> int | None:
    """Return the index of the first line that says the job died, or None."""
    return next((index for index, line in enumerate(lines) if death(line)), None)


def check_chatter(section: TextSection, index: int, expected: str, *, rows: bool = True) -> None:
    """Accept the line at ``index`` as chatter.

    ``rows``: it may be a row, or hide one; not so within a plot.

    Raises:
        ParseError: the line could be a damaged row, or says that the job died.
    """
    line = section.lines[index]
    if not line.strip():
        return
    if len(line) > _LONG:
        line = f"{line[: _LONG // 2]} {line[1 - _LONG // 2 :]}"
    if death(line):
        raise section.error(index, "the job ended badly", expected="a run that ended well")
    begins = _ROW_START.match(line)
    if rows and (not _DIGIT_CHATTER.match(line) if begins else _ROW_INSIDE.search(line)):
        raise section.error(index, "damaged row", expected=expected)
