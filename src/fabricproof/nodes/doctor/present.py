"""Show what was found: a table for a terminal, plain lines for a pipe, records for machines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fabricproof.nodes.doctor.facts import Facts
from fabricproof.nodes.doctor.findings import Finding, Level, exit_status, worst

if TYPE_CHECKING:
    from rich.table import Table

#: rich's style for each level.
_STYLES = {
    Level.OK: "green",
    Level.NOTE: "cyan",
    Level.UNKNOWN: "magenta",
    Level.WARNING: "yellow",
    Level.ERROR: "bold red",
}

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


def summary(findings: Sequence[Finding], *, hidden: int = 0) -> str:
    """Return how many findings there are of each level, worst first.

    Args:
        findings: all of them.
        hidden: how many of them were not shown.
    """
    counts = {level: sum(each.level is level for each in findings) for level in reversed(Level)}
    told = ", ".join(f"{count} {level}" for level, count in counts.items() if count)
    left_out = f" ({hidden} of them not shown, --all shows them)" if hidden else ""
    return f"{told or 'nothing was examined'}{left_out}; status {int(exit_status(findings))}"


def _details(finding: Finding) -> Iterable[tuple[str, str]]:
    """Yield the lines below a finding; where all is well, what saw it is noise."""
    for label, key in _DETAILS:
        text = getattr(finding, key)
        if text and not (key == "command" and finding.level in {Level.OK, Level.NOTE}):
            yield label, text


def plain_lines(findings: Iterable[Finding], width: int = 100) -> list[str]:
    """Return the findings as lines of text, ``width`` characters wide at most where words allow."""
    lines = []
    for finding in findings:
        lines += _wrapped(f"{finding.level:<8} {finding.topic:<9}", finding.seen, width)
        for label, text in _details(finding):
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


def table(findings: Iterable[Finding]) -> Table:
    """Return the findings as a table for a terminal."""
    from rich.table import Table as RichTable  # noqa: PLC0415 - start-up time
    from rich.text import Text  # noqa: PLC0415 - start-up time

    result = RichTable("level", "topic", "finding", box=None, pad_edge=False)
    for finding in findings:
        cell = Text(finding.seen)
        for label, text in _details(finding):
            cell.append(f"\n{label}: ", style="bold")
            cell.append(text)
        result.add_row(Text(str(finding.level), style=_STYLES[finding.level]), finding.topic, cell)
    return result


def record(facts: Facts, findings: Sequence[Finding]) -> dict[str, Any]:
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
        "findings": [
            {
                "level": str(finding.level),
                "topic": finding.topic,
                "seen": finding.seen,
                "command": finding.command,
                "means": finding.means,
                "mend": finding.mend,
            }
            for finding in findings
        ],
        "roads": [
            {
                "name": road.name,
                "transport": road.transport,
                "environment": dict(road.environment),
                "refusal": road.refusal,
            }
            for road in subject.roads
        ],
    }
