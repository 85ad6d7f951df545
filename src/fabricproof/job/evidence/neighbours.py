"""Other jobs on the nodes of a leg while it ran, as the scheduler told the job's own script.

The script asks once after each leg: squeue lists also what has ended, for ``MinJobAge`` (300 s
where nobody says, slurm.conf(5)), so that a short job between two looks is not missed.  What a site
hides from its users (``PrivateData=jobs``) is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from fabricproof.core.errors import FabricproofError
from fabricproof.core.measure import Finding, Verdict, as_notes, worst
from fabricproof.nodes.topology_text import expand
from fabricproof.traffic.disturbance import DisturbanceKind
from fabricproof.verdict.value import Judgement, Report

#: what the script of the legs leaves in the folder of an attempt
JOBS_FILE = "jobs"

#: rates and times: what another job on the node takes from; a damaged packet is nobody's load
_DISTURBED_UNITS = frozenset({"MB/s", "us"})


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """Another job that was on nodes of a leg while it ran."""

    job_id: str
    user: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        return f"job {self.job_id} of {self.user} was on {', '.join(self.nodes)} during this leg"


def with_neighbours(report: Report, folder: Path, nodes: Collection[str]) -> Report:
    """Return the report of the attempt in ``folder`` with the other jobs on its nodes named.

    Outside Slurm nobody was asked, and nothing is said.
    """
    if not (folder / JOBS_FILE).exists():
        return report
    return beside(report, read_neighbours(folder, nodes))


def read_neighbours(folder: Path, nodes: Collection[str]) -> tuple[Neighbour, ...] | None:
    """Return the other jobs that were on ``nodes`` while the attempt in ``folder`` ran.

    None where the scheduler was not asked or did not answer: then nobody knows.
    """
    try:
        lines = (folder / JOBS_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
        own, begin, end = lines[0].split(" ")
        if lines[-1] != "answered":
            return None
        rows = [line.split("|") for line in lines[1:-1]]
        found = [_neighbour(row, nodes, float(begin), float(end)) for row in rows]
    except (OSError, ValueError, IndexError, FabricproofError):
        return None
    return tuple(each for each in found if each is not None and each.job_id != own)


def _neighbour(
    row: list[str], nodes: Collection[str], begin: float, end: float
) -> Neighbour | None:
    """Return the job of one row where it overlaps; times are whole seconds, touching is none."""
    job_id, user, started, ended, where = row
    shared = tuple(sorted({*expand(where)} & {*nodes}))
    if not shared or _seconds(started) >= end or _seconds(ended) <= begin:
        return None
    return Neighbour(job_id=job_id, user=user, nodes=shared)


def _seconds(text: str) -> float:
    """Return a time of squeue; of a job without an end (``NONE``, ``N/A``) it is never."""
    return float(text) if text.isdecimal() else math.inf


def beside(report: Report, found: tuple[Neighbour, ...] | None) -> Report:
    """Return the report of an attempt beside which other jobs ran, red for no load of theirs.

    What passed although they were there stays PASS: it is within its bounds.
    """
    if found is None:
        red = any(each.verdict is Verdict.FAIL for each in report.quantities)
        note = "not known: whether other jobs were on the nodes, squeue did not answer"
        return replace(report, findings=(*report.findings, Finding(text=note))) if red else report
    if not found:
        return report
    notes = [f"disturbed: {each}" for each in found]
    more = f" (and {len(found) - 1} more jobs)" if len(found) > 1 else ""
    quantities = tuple(_excused(each, f"{notes[0]}{more}") for each in report.quantities)
    unlike = any(new is not old for new, old in zip(quantities, report.quantities, strict=True))
    verdict = worst([each.verdict for each in quantities]) if unlike else report.verdict
    return replace(
        report,
        verdict=verdict,
        quantities=quantities,
        findings=(*report.findings, *as_notes(notes)),
    )


def _excused(judgement: Judgement, why: str) -> Judgement:
    told = replace(judgement, reason=f"{why}; {judgement.reason}")
    if judgement.verdict in {Verdict.MISSING, Verdict.UNJUDGED}:
        return told
    if judgement.verdict is not Verdict.FAIL or judgement.unit not in _DISTURBED_UNITS:
        return judgement
    kind = DisturbanceKind.OTHER_JOB.value
    return replace(told, verdict=Verdict.UNJUDGED, disturbance=kind)
