"""Both directions of a rail side by side: which one is slow, and at which of two ends.

A program that sends one way says nothing of the other: a receive queue, a cable's other pair or a
switch's port may be slow in one direction alone.  Its leg is therefore run again with the ends
exchanged (``rail0.back``), and a red one of the two is explained by the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fabricproof.core.measure import Verdict
from fabricproof.job.outcome import Outcome, mended
from fabricproof.job.plan.leg import Leg
from fabricproof.job.plan.peer import PEER_SUITES
from fabricproof.verdict.value import Judgement, is_of_errors

#: the largest sizes that a leg the other way has
LARGEST_SIZES = 3

BACK = "back"


def backward(leg: Leg) -> Leg:
    """Return ``leg`` the other way; of MPI its rank 0 is on the other node, else the roles change.

    Args:
        leg: over one rail, named ``RAIL.back``, one way only.
    """
    turned = replace(leg, backward=True)
    if leg.suite not in PEER_SUITES:
        return turned
    return replace(
        turned,
        environment={**leg.environment, "FABRICPROOF_BACKWARD": "1"},
        sent_bytes=leg.sent_bytes[::-1] if leg.sent_bytes else None,
        sent_messages=leg.sent_messages[::-1] if leg.sent_messages else None,
    )


def with_directions(outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Return the outcomes, those of one rail's two directions explained by each other."""
    by_name = {each.leg.name: each for each in outcomes}
    explained: dict[str, Outcome] = {}
    for name, back in by_name.items():
        forth = by_name.get(name.removesuffix(f".{BACK}"))
        if back.leg.backward and forth is not None:
            for one, other in ((forth, back), (back, forth)):
                explained[one.leg.name] = _beside(one, other)
    return tuple(explained.get(each.leg.name, each) for each in outcomes)


def _beside(mine: Outcome, other: Outcome) -> Outcome:
    ends, theirs = _ends(mine), _ends(other)
    if ends is None or theirs is None:
        if not mine.leg.backward:
            return mine
        reason = f"nobody knows which way it sent: {other.leg.name} or it did not say where it ran"
        return mended(mine, lambda each: _unless_green(each, reason))
    if ends != theirs[::-1]:
        if not mine.leg.backward:
            return mine
        reason = f"sent {_arrow(ends)} as {other.leg.name} did: the other way was not measured"
        return mended(mine, lambda each: _spoiled(each, reason))
    sender, receiver = ends
    said = f"{_arrow(ends)} of {'+'.join(mine.leg.rails)}: {_part(mine)}"
    said = f"{said}, {_arrow(theirs)}: {_part(other)}"
    blame = f": {receiver} receives or {sender} sends too little"
    blame = blame if other.report.verdict is Verdict.PASS else ""
    return mended(mine, lambda each: _explained(each, said, blame))


def _ends(outcome: Outcome) -> tuple[str, str] | None:
    """Return the node that sent and the one that received; None where that is not known."""
    ranks = sorted(
        {(each.rank, each.node) for attempt in outcome.attempts for each in attempt.ranks}
    )
    if len(ranks) != 2:
        return None
    first, second = ranks[0][1], ranks[1][1]
    leg = outcome.leg
    swapped = leg.backward and leg.suite in PEER_SUITES
    if leg.sent_bytes is not None:  # who reads is sent to
        swapped = leg.sent_bytes[1] > leg.sent_bytes[0]
    return (second, first) if swapped else (first, second)


def _arrow(ends: tuple[str, str]) -> str:
    return " -> ".join(ends)


def _part(outcome: Outcome) -> str:
    """Return the largest message's number as a part of what it should be."""
    due = [each for each in outcome.report.quantities if each.name in outcome.leg.required]
    known = next((each for each in due if each.value is not None), None)
    if known is None or known.value is None:
        return "no number"
    if not known.reference:
        return f"{known.value:.4g} {known.unit}"
    return f"{known.value / known.reference:.0%}"


def _explained(judgement: Judgement, said: str, blame: str) -> Judgement:
    """Return what is red with both directions said; what others disturbed blames no end."""
    if is_of_errors(judgement):
        return judgement  # it names its own two ends
    if judgement.disturbance:
        return replace(judgement, reason=f"{said}; {judgement.reason}")
    if judgement.verdict is not Verdict.FAIL:
        return judgement
    return replace(judgement, reason=f"{said}{blame}; {judgement.reason}")


def _unless_green(judgement: Judgement, reason: str) -> Judgement:
    if judgement.verdict is not Verdict.PASS:
        return judgement
    return replace(judgement, verdict=Verdict.UNJUDGED, reason=reason)


def _spoiled(judgement: Judgement, reason: str) -> Judgement:
    if judgement.verdict not in {Verdict.PASS, Verdict.FAIL}:
        return judgement
    return replace(judgement, verdict=Verdict.INVALID, reason=reason)
