"""What is red and was disturbed by others is UNJUDGED, where the disturbance explains it.

A disturbance explains a number that would be within its bounds had the others not been there.  It
excuses no impossible number, no wrong path and no number over errors, and makes none PASS.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fabricproof.core.measure import Verdict, as_notes, worst
from fabricproof.job.evidence.cores import counted_seconds, starved_cores
from fabricproof.job.evidence.ranks import RankRecord
from fabricproof.job.plan.leg import Leg
from fabricproof.physics import find_link
from fabricproof.traffic import Evidence, Expectation, PathState
from fabricproof.traffic.disturbance import (
    Disturbance,
    DisturbanceKind,
    each_kind,
    foreign_traffic,
    strongest,
)
from fabricproof.verdict.value import Judgement, Report, is_of_errors

#: Figures are means over the whole leg, its start included; one message size may have had twice
#: its share of what came and went.  Our choice.
CONCENTRATION = 2.0

#: nothing is explained to more than this share of the time: nobody divides by what is left
MOST = 0.95


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What others did around a leg: all figures, and what nobody could read."""

    found: tuple[Disturbance, ...] = ()
    unknown: tuple[str, ...] = ()


#: of a leg that passed a smaller share is not worth a line: our choice
NOTED = 0.1

#: nothing was read of anybody
NOBODY = Surroundings()


def around(
    leg: Leg, ranks: Sequence[RankRecord], evidence: Evidence, expected: Expectation
) -> Surroundings:
    """Return what others did around one attempt of ``leg``.

    Args:
        leg: what ran.
        ranks: what each rank's wrapper read.
        evidence: the same joined, under the names of the leg's rails.
        expected: what the leg was to move.
    """
    seconds = counted_seconds(ranks)
    rate = find_link(leg.fabric.link).data_rate_mb_s if leg.fabric else None
    traffic = foreign_traffic(evidence, expected, seconds, rate)
    cores = starved_cores(ranks)
    unknown = [] if traffic or leg.same_node else ["other traffic"]
    unknown += [] if cores else ["waits for a core"]
    return Surroundings(found=(*traffic, *cores), unknown=tuple(unknown))


def excused(report: Report, near: Surroundings, num_ranks: int = 2) -> Report:
    """Return the report with what others explain UNJUDGED; what stays red says what was ruled out.

    Args:
        report: as the judge left it.
        near: what others did meanwhile.
        num_ranks: of the leg: a collective may wait for a burst at each step.
    """
    if report.net_path is not None and report.net_path.state is not PathState.PROVEN:
        return report  # errors rose, or nobody knows the path: that comes first
    heavy = [each for each in each_kind(near.found) if each.counts]
    quantities = tuple(_excused(each, near.found, num_ranks) for each in report.quantities)
    changed = any(new is not old for new, old in zip(quantities, report.quantities, strict=True))
    verdict = worst([each.verdict for each in quantities]) if changed else report.verdict
    red = any(each.verdict is not Verdict.PASS for each in report.quantities)
    worth = [each for each in heavy if red or each.share is None or each.share >= NOTED]
    notes = [f"disturbed: {each.reason}" for each in worth]
    known = report.net_path is not None or near.found  # a relation speaks for its legs
    if known and any(each.verdict is Verdict.FAIL for each in quantities):
        notes.append(_ruled_out(near))
    return replace(
        report,
        verdict=verdict,
        quantities=quantities,
        findings=(*report.findings, *as_notes(notes)),
    )


def _excused(judgement: Judgement, found: Sequence[Disturbance], num_ranks: int) -> Judgement:
    heavy = [each for each in each_kind(found) if each.counts]
    if judgement.verdict is not Verdict.FAIL or judgement.value is None or not heavy:
        return judgement
    if is_of_errors(judgement) or not _explains(judgement, judgement.value, found, num_ranks):
        return judgement
    most = max(heavy, key=lambda each: 1.0 if each.share is None else each.share)
    return replace(
        judgement,
        verdict=Verdict.UNJUDGED,
        reason=f"disturbed: {'; '.join(each.reason for each in heavy)}; {judgement.reason}",
        disturbance=most.kind.value,
    )


def _explains(
    judgement: Judgement, value: float, found: Sequence[Disturbance], num_ranks: int
) -> bool:
    """Tell whether the number would be within its bounds without what others took."""
    if any(each.share is None for each in found):
        return _is_outside(judgement, value)
    share = min(MOST, CONCENTRATION * share_taken(found))
    if judgement.lower is not None and value < judgement.lower:
        return value / (1 - share) >= judgement.lower
    if judgement.upper is None or value <= judgement.upper:
        return False  # it is red for another reason
    traffic = strongest(found, DisturbanceKind.FOREIGN_TRAFFIC)
    queued_us = 0.0
    if traffic is not None and traffic.counts and judgement.unit == "us":
        # Each message that has to cross finds the wire taken as often as the others have it.
        steps = max(1, num_ranks - 1)
        queued_us = CONCENTRATION * (traffic.share or 0) * traffic.burst_us * steps
    return value * (1 - share) - queued_us <= judgement.upper


def _is_outside(judgement: Judgement, value: float) -> bool:
    below = judgement.lower is not None and value < judgement.lower
    return below or (judgement.upper is not None and value > judgement.upper)


def spoiling(near: Surroundings) -> Disturbance | None:
    """Return the largest of what disturbed a round so much that it does not count; None: it does.

    From :data:`NOTED` on.  Less than that is scatter, which the rounds show themselves.
    """
    worth = [e for e in near.found if e.counts and (e.share is None or e.share >= NOTED)]
    return max(worth, key=lambda each: 1.0 if each.share is None else each.share, default=None)


def share_taken(found: Iterable[Disturbance]) -> float:
    """Return what share of the leg's time others cost at most.

    A message has two ends: the two worst places of cores add up, and so do cores and wire.
    """
    figures: dict[DisturbanceKind, list[float]] = {}
    for each in found:
        if each.counts:
            figures.setdefault(each.kind, []).append(each.share or 0.0)
    ends = {DisturbanceKind.STARVED_CORES: 2}
    return sum(sum(sorted(all_)[-ends.get(kind, 1) :]) for kind, all_ in figures.items())


def _ruled_out(near: Surroundings) -> str:
    said = [
        each.reason + (", too little to explain it" if each.counts else "")
        for each in each_kind(near.found)
    ]
    text = f"ruled out: {'; '.join(said) or 'nothing'}"
    return f"{text}; not known: {', '.join(near.unknown)}" if near.unknown else text
