"""What the doctor says: findings, their levels, and the exit status that follows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fabricproof.core.errors import ExitStatus


class Level(StrEnum):
    """How much a finding matters."""

    OK = "OK"
    """Seen, and as it should be."""
    NOTE = "NOTE"
    """Worth knowing; nothing is wrong."""
    UNKNOWN = "UNKNOWN"
    """Could not be seen; neither right nor wrong."""
    WARNING = "WARNING"
    """Runs, but perhaps not as was meant."""
    ERROR = "ERROR"
    """Will not run, or runs over something else."""


#: from harmless to bad.
ORDER = tuple(Level)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        level: how much it matters.
        topic: ``MPI``, ``programs``, ``PMI``, ``launcher``, ``road``, ``node``, ``world``.
        seen: what is there.
        command: what saw it.
        means: what comes of it; empty for OK.
        mend: the line that mends it; empty where nothing need be done.
        missing: the thing to examine is not there at all.
    """

    level: Level
    topic: str
    seen: str
    command: str = ""
    means: str = ""
    mend: str = ""
    missing: bool = False

    def __post_init__(self) -> None:
        wrong = self.level in {Level.ERROR, Level.WARNING}
        assert not wrong or (self.means and self.mend), f"{self.seen}: say what it means and mends"


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level; UNKNOWN where nothing was found at all."""
    levels = [finding.level for finding in findings]
    return max(levels, key=ORDER.index) if levels else Level.UNKNOWN


def exit_status(findings: Iterable[Finding]) -> ExitStatus:
    """Return 0 without an ERROR, 69 where what should be examined is not there, else 78."""
    found = list(findings)
    if worst(found) is not Level.ERROR:
        return ExitStatus.PASS if found else ExitStatus.UNAVAILABLE
    missing = any(each.missing for each in found if each.level is Level.ERROR)
    return ExitStatus.UNAVAILABLE if missing else ExitStatus.CONFIG
