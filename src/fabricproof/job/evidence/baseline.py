"""Hold a leg against what known-good runs measured, with what its job saw of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fabricproof.core.errors import ParseError
from fabricproof.core.measure import Finding, Table
from fabricproof.job.evidence.ranks import RankRecord
from fabricproof.job.plan.leg import Leg
from fabricproof.job.plan.script import INVENTORY_FOLDER
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.verdict.baseline.apply import Seen, with_baseline
from fabricproof.verdict.baseline.stage import read_stage
from fabricproof.verdict.value import Report


def after_baseline(
    report: Report, leg: Leg, ranks: Sequence[RankRecord], table: Table, job_folder: Path
) -> Report:
    """Return the report after the baseline that the site judges by, where it has one.

    Args:
        report: of one attempt, as physics and the site's references judged it.
        leg: what ran.
        ranks: where.
        table: what it printed.
        job_folder: where plan, baseline and inventories of the job lie.
    """
    if not leg.baseline:
        return report
    try:
        known = read_stage(job_folder, leg.name)
    except ParseError as error:
        note = f"baseline {leg.baseline} was to judge and did not: {error}"
        return replace(report, findings=(*report.findings, Finding(text=note)))
    nodes = sorted({rank.node for rank in ranks})
    machines = {node: _machine(job_folder / INVENTORY_FOLDER, node) for node in nodes}
    return with_baseline(
        report,
        known,
        Seen(
            nodes=nodes,
            machines={node: each.facts if each else None for node, each in machines.items()},
            digests={node: each.digest if each else None for node, each in machines.items()},
            tool_version=table.version or "",
            attributes=table.attributes,
        ),
    )


def _machine(folder: Path, node: str) -> Machine | None:
    """Return what a node's look left; None where nobody saw it."""
    try:
        text = (folder / f"{node}.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # It brings the schema of site files, half of what starting the judge in a job would cost.
    from fabricproof.nodes.inventory.read import read_machine  # noqa: PLC0415 - few legs have a baseline

    machine = read_machine(text, node)
    return machine if machine.facts else None
