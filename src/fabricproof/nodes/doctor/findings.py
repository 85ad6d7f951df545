"""What the doctor says: findings, the exit status that follows, and both as text and records."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fabricproof.core.errors import ExitStatus
from fabricproof.core.plain import plain
from fabricproof.nodes.doctor.facts import Facts


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
class Diagnosis:
    """One thing that was looked at.

    Attributes:
        topic: ``MPI``, ``programs``, ``PMI``, ``launcher``, ``net_path``, ``node``, ``world``.
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


def fine(topic: str, seen: str, command: str = "") -> Diagnosis:
    """Return what is as it should be."""
    return Diagnosis(level=Level.OK, topic=topic, seen=seen, command=command)


def noted(topic: str, seen: str, command: str = "") -> Diagnosis:
    """Return what is worth knowing."""
    return Diagnosis(level=Level.NOTE, topic=topic, seen=seen, command=command)


def unseen(topic: str, seen: str, command: str = "") -> Diagnosis:
    """Return what could not be seen."""
    return Diagnosis(level=Level.UNKNOWN, topic=topic, seen=seen, command=command)


def worst(findings: Iterable[Diagnosis]) -> Level:
    """Return the worst level; UNKNOWN where nothing was found at all."""
    levels = [finding.level for finding in findings]
    return max(levels, key=ORDER.index) if levels else Level.UNKNOWN


def exit_status(findings: Iterable[Diagnosis]) -> ExitStatus:
    """Return 0 without an ERROR, 69 where what should be examined is not there, else 78."""
    found = list(findings)
    if worst(found) is not Level.ERROR:
        return ExitStatus.PASS if found else ExitStatus.UNAVAILABLE
    missing = any(each.missing for each in found if each.level is Level.ERROR)
    return ExitStatus.UNAVAILABLE if missing else ExitStatus.CONFIG


#: what stands below a finding, in this order.
_DETAILS = (("seen by", "command"), ("means", "means"), ("mend", "mend"))


def heading(facts: Facts) -> str:
    """Return who was examined, where, in one line."""
    subject = facts.subject
    where = "node" if facts.node.is_node and subject.uses_slurm else "machine"
    return (
        f"stack {subject.stack} ({subject.family} {subject.version}, {subject.kind}) of site "
        f"{subject.site}, partition {subject.partition}, launcher {subject.launcher}; seen on "
        f"{where} {facts.node.host}"
    )


def summary(findings: Sequence[Diagnosis], *, hidden: int = 0) -> str:
    """Return how many findings there are of each level, worst first."""
    counts = {level: sum(each.level is level for each in findings) for level in reversed(Level)}
    told = ", ".join(f"{count} {level}" for level, count in counts.items() if count)
    left_out = f" ({hidden} of them not shown, --all shows them)" if hidden else ""
    return f"{told or 'nothing was examined'}{left_out}; status {int(exit_status(findings))}"


def plain_lines(findings: Iterable[Diagnosis], width: int = 100) -> list[str]:
    """Return the findings as lines of text, ``width`` characters wide at most where words allow."""
    lines = []
    for finding in findings:
        lines += _wrapped(f"{finding.level:<8} {finding.topic:<9}", finding.seen, width)
        for label, key in _DETAILS:
            text = getattr(finding, key)
            # Where all is well, what saw it is noise.
            if text and not (key == "command" and finding.level in {Level.OK, Level.NOTE}):
                lines += _wrapped(f"{'':<18}  {label + ':':<8}", text, width)
    return lines


def _wrapped(begin: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=begin + " ",
        subsequent_indent=" " * (len(begin) + 1),
        break_long_words=False,
        break_on_hyphens=False,
    )


def record(facts: Facts, findings: Sequence[Diagnosis]) -> dict[str, Any]:
    """Return everything for ``--json``."""
    subject = facts.subject
    return {
        "site": subject.site,
        "stack": subject.stack,
        "family": subject.family,
        "version": subject.version,
        "kind": subject.kind,
        "partition": subject.partition,
        "launcher": subject.launcher,
        "host": facts.node.host,
        "on_node": facts.node.is_node,
        "worst": str(worst(findings)),
        "status": int(exit_status(findings)),
        "findings": [plain(each) for each in findings],
        "net_paths": [plain(each, "name") for each in subject.net_paths],
    }
