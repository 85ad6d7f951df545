"""What a leg is held against beside physics: the leg of a pair before it, and a baseline.

A collective should take the cheapest well-known algorithm's modelled time, with what a message
costs by the point-to-point leg that ran before it in the same job, times a factor that the site
allows.  Without numbers of that leg nothing is made up: the collective stays UNJUDGED.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fabricproof.benchmarks.catalogue import collective_of
from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import FabricproofError
from fabricproof.core.measure import Table
from fabricproof.core.units import at_size
from fabricproof.job.evidence.leg_folder import RankRecord, read_status, read_text
from fabricproof.job.leg import MOST_ATTEMPTS, Leg, shell_name
from fabricproof.job.script import INVENTORY_FOLDER
from fabricproof.nodes.inventory.changed import why_changed
from fabricproof.physics.collective_models import Channel, best_model
from fabricproof.verdict.objections import Objection, ObjectionKind
from fabricproof.verdict.references import STAGE_FILE, Facts, judge_by_baseline, read_baseline
from fabricproof.verdict.value import Report, Rules, Source, at_most


def after_baseline(
    report: Report, leg: Leg, ranks: Sequence[RankRecord], table: Table, job_folder: Path
) -> Report:
    """Return the report after the baseline that the site judges by, if it has one.

    One that cannot be read leaves no PASS.
    """
    if not leg.baseline:
        return report
    try:
        baseline = read_baseline(job_folder / STAGE_FILE, leg.name)
    except FabricproofError as error:
        why = f"baseline {leg.baseline} was to judge and did not: {error}"
        unreadable = Objection(kind=ObjectionKind.REFERENCES_UNREADABLE, reason=why)
        return report.objected([unreadable])
    nodes = sorted({rank.node for rank in ranks})
    ran = replace(
        baseline.legs[leg.name],
        nodes=",".join(nodes),
        tool_version=table.version or "",
        settings=baseline.settings_of(table.attributes),
    )
    changed = [
        why_changed(node, baseline.facts_of(node), _facts(job_folder, node)) for node in nodes
    ]
    return judge_by_baseline(report, baseline, ran, "; ".join(filter(None, changed)))


def _facts(job_folder: Path, node: str) -> Facts | None:
    """Return what a node's look left; None if nobody saw it."""
    if not (text := read_text(job_folder / INVENTORY_FOLDER / f"{node}.txt")):
        return None
    # It brings the schema of site files, half of what starting the judge in a job would cost.
    from fabricproof.nodes.inventory.read import read_machine  # noqa: PLC0415 - few legs have a baseline

    return read_machine(text, node).facts or None


def rules_of(leg: Leg, job_folder: Path, channel_attempt: int = 0) -> Rules:
    """Return what ``leg`` is judged by, with what its point-to-point leg says it should take.

    A number that the site gives stands before a modelled one.  ``channel_attempt`` is the attempt
    of that leg that counts; 0 for its latest.
    """
    rules = leg.rules()
    channel, program = None, collective_of(leg.suite, leg.program)
    if leg.channel_leg:
        channel = measured_channel(job_folder, leg.channel_leg, channel_attempt)
    if channel is None or program is None or rules.layout is None:
        return rules
    channel = replace(channel, alpha_us=max(channel.alpha_us, leg.stated_alpha_us))
    found = {}
    for size in leg.expected_sizes if program.has_size else (0,):
        # If the printed size may be one rank's share, the larger reading is the slower one.
        moved = size * rules.layout.num_ranks if program.share_sized else size
        algorithm, time = best_model(program.operation, moved, rules.layout, channel)
        reference = at_most(
            time,
            tolerance=leg.model_factor - 1,
            origin=f"{algorithm} model: {channel.alpha_us:.4g} us a message and "
            f"{1 / max(channel.beta_us_per_byte, 1e-9):.4g} MB/s, from {leg.channel_leg}",
        )
        name = at_size("latency", size if program.has_size else None)
        found[name] = replace(reference, source=Source.PAIR)
    return replace(rules, references={**found, **leg.references})


def measured_channel(job_folder: Path, name: str, attempt: int = 0) -> Channel | None:
    """Return what a message costs by leg ``name``, None if nothing says so.

    By its latest whole attempt if ``attempt`` is 0.
    """
    for number in (attempt,) if attempt else range(MOST_ATTEMPTS, 0, -1):
        folder = job_folder / "legs" / f"{shell_name(name)}.{number}"
        with contextlib.suppress(FabricproofError):
            if read_status(folder) == 0:
                return channel_of(parse_text(read_text(folder / "stdout"), str(folder)))
    return None


def channel_of(tables: tuple[Table, ...]) -> Channel | None:
    """Return alpha and beta of Hockney's model from the ends of a latency curve.

    Alpha is the time of the smallest message, beta what each byte of the largest adds to it.
    """
    rows = [
        (size, time)
        for table in tables
        if {"message_size", "latency_us"} <= set(table.columns)
        for size, time in zip(table.column("message_size"), table.column("latency_us"), strict=True)
        if size > 0 and time > 0
    ]
    if len({size for size, _ in rows}) < 2:
        return None
    (first, alpha), (last, time) = min(rows), max(rows)
    return Channel(alpha_us=alpha, beta_us_per_byte=max(0.0, time - alpha) / (last - first))
