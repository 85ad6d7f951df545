"""Judge all legs of a job: some say what others should take, or which end of them is slow.

A collective that is held against a pair that was slow, or went over another path, passes too
easily; against one that was impossibly fast it fails without a fault.

What sends one way says nothing of the other: a receive queue, a cable's other pair or a switch's
port may be slow in one direction alone.  A leg of a program that sends one way is therefore run
again with the ends exchanged (``rail0.back``), and a red one of the two is explained by the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fabricproof.core.measure import Verdict
from fabricproof.job.leg import PEER_SUITES, Leg
from fabricproof.job.outcome import Attempt, Outcome, first_reason, judge_leg
from fabricproof.traffic import PathState
from fabricproof.verdict.objections import Objection, ObjectionKind
from fabricproof.verdict.value import Judgement, is_of_errors, missing

#: the largest sizes that a leg the other way has
LARGEST_SIZES = 3

BACK = "back"


def judge_legs(folder: Path, legs: Sequence[Leg]) -> tuple[Outcome, ...]:
    """Judge every leg below job folder ``folder``, in the order of ``legs``.

    What cannot be judged for a fault of our own is MISSING, and costs no other leg its records.
    """
    channels = {leg.channel_leg for leg in legs if leg.channel_leg}
    pairs = {leg.name: _judged(folder, leg) for leg in legs if leg.name in channels}
    return tuple(
        pairs.get(leg.name) or _against_pair(folder, leg, pairs.get(leg.channel_leg))
        for leg in legs
    )


def _judged(folder: Path, leg: Leg, channel_attempt: int = 0) -> Outcome:
    try:
        return judge_leg(folder, leg, channel_attempt)
    except Exception as error:  # the records of the other legs are worth more
        report = missing(leg.required or (leg.name,), f"its judge itself failed: {error!r}")
        return Outcome(leg=leg, attempts=(), report=report)


def _against_pair(folder: Path, leg: Leg, pair: Outcome | None) -> Outcome:
    if pair is None:
        return _judged(folder, leg)
    sound = next((each.number for each in pair.attempts if not _why_unsound(each)), 0)
    outcome = _judged(folder, leg, sound)
    if sound or not pair.attempts:
        return outcome
    why = f"leg {pair.leg.name}, which says what it should take, is no measure"
    reports = [outcome.report, *(each.report for each in outcome.attempts)]
    names = {
        each.name
        for report in reports
        for each in report.quantities
        if each.source and each.source.rests_on_pair
    }
    objection = Objection(
        kind=ObjectionKind.PAIR_UNSOUND,
        reason=f"{why}: {_why_unsound(pair.attempts[-1])}",
        quantities=frozenset(names),
    )
    return outcome.objected([objection])


def _why_unsound(pair: Attempt) -> str:
    """Return why an attempt of a pair does not say what a message costs; empty if it does.

    What counts of it are its ends: the smallest message and the largest.
    """
    net_path = pair.report.net_path
    if pair.foreign or net_path is None or net_path.state is not PathState.PROVEN:
        return pair.foreign or (net_path.reason if net_path else first_reason(pair.report))
    sized = [each for each in pair.report.quantities if each.message_size]
    if not sized:
        return first_reason(pair.report)
    sized.sort(key=lambda each: each.message_size or 0)
    for end in (sized[-1], sized[0]):
        # Good, or nobody says what it should be.
        is_open = end.verdict is Verdict.UNJUDGED and end.reference is None
        if end.value is None or not (is_open or end.verdict is Verdict.PASS):
            return end.reason
    return ""


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
        traffic=leg.traffic.turned,
    )


def against_directions(outcomes: Sequence[Outcome]) -> dict[str, tuple[Objection, ...]]:
    """Return by leg what the leg the other way says against it."""
    by_name = {each.leg.name: each for each in outcomes}
    found: dict[str, tuple[Objection, ...]] = {}
    for name, back in by_name.items():
        forth = by_name.get(name.removesuffix(f".{BACK}"), back)
        if back.leg.backward and forth is not back:
            found[forth.leg.name], found[name] = _beside(forth, back), _beside(back, forth)
    return found


def _beside(mine: Outcome, other: Outcome) -> tuple[Objection, ...]:
    ends, theirs = _ends(mine), _ends(other)
    name = other.leg.name
    if ends is None or theirs is None:
        kind = ObjectionKind.DIRECTION_UNKNOWN
        reason = f"nobody knows which way it sent: {name} or it did not say where it ran"
        return (Objection(kind=kind, reason=reason),) if mine.leg.backward else ()
    if ends != theirs[::-1]:
        reason = f"sent {' -> '.join(ends)} as {name} did: the other way was not measured"
        kind = ObjectionKind.SAME_DIRECTION
        return (Objection(kind=kind, reason=reason),) if mine.leg.backward else ()
    sender, receiver = ends
    here, there = _largest(mine), _largest(other)
    said = (
        f"{' -> '.join(ends)} of {'+'.join(mine.leg.rails)}: {_part(here)}, "
        f"{' -> '.join(theirs)}: {_part(there)}"
    )
    blame = ""
    if here and here.verdict is Verdict.FAIL and other.report.verdict is Verdict.PASS:
        blame = f": {receiver} receives or {sender} sends too little"
    # Words for what is red; what others disturbed blames no end.
    speeds = [each for each in mine.report.quantities if not is_of_errors(each)]
    disturbed = frozenset(each.name for each in speeds if each.disturbance)
    red = frozenset(each.name for each in speeds if each.verdict is Verdict.FAIL) - disturbed
    return tuple(
        Objection(kind=ObjectionKind.OTHER_DIRECTION, reason=words, quantities=names)
        for names, words in ((disturbed, said), (red, said + blame))
    )


def _ends(outcome: Outcome) -> tuple[str, str] | None:
    """Return the node that sent and the one that received; None if that is not known."""
    ranks = sorted({(each.rank, each.node) for each in outcome.ranks})
    if len(ranks) != 2:
        return None
    first, second = ranks[0][1], ranks[1][1]
    leg = outcome.leg
    swapped = leg.backward and leg.suite in PEER_SUITES
    if leg.traffic.exact is not None:  # who reads is sent to
        swapped = leg.traffic.exact[1] > leg.traffic.exact[0]
    return (second, first) if swapped else (first, second)


def _largest(outcome: Outcome) -> Judgement | None:
    """Return the largest message's number; None if there is none."""
    due = [each for each in outcome.report.quantities if each.name in outcome.leg.required]
    return next((each for each in due if each.value is not None), None)


def _part(known: Judgement | None) -> str:
    """Return a number as a part of what it should be."""
    if known is None or known.value is None:
        return "no number"
    if not known.reference:
        return f"{known.value:.4g} {known.unit}"
    return f"{known.value / known.reference:.0%}"
