"""Judge all legs of a job: those that say what others should take first, and whether to believe it.

A collective that is held against a pair that was slow, or went over another path, passes too
easily; against one that was impossibly fast it fails without a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fabricproof.core.measure import Verdict
from fabricproof.job.outcome import Attempt, Outcome, judge_leg, mended
from fabricproof.job.plan.leg import Leg
from fabricproof.traffic import PathState
from fabricproof.verdict.value import Judgement, Report, missing


def judge_legs(folder: Path, legs: Sequence[Leg]) -> tuple[Outcome, ...]:
    """Judge every leg below job folder ``folder``, in the order of ``legs``.

    What cannot be judged for a fault of our own is MISSING, and costs no other leg its records.
    """
    channels = {leg.channel_leg for leg in legs if leg.channel_leg}
    pairs = {leg.name: _judged(folder, leg) for leg in legs if leg.name in channels}
    return tuple(pairs.get(leg.name) or _against_pair(folder, leg, pairs) for leg in legs)


def _judged(folder: Path, leg: Leg, channel_attempt: int = 0) -> Outcome:
    try:
        return judge_leg(folder, leg, channel_attempt)
    except Exception as error:  # the records of the other legs are worth more
        report = missing(leg.required or (leg.name,), f"its judge itself failed: {error!r}")
        return Outcome(leg=leg, attempts=(), report=report)


def _against_pair(folder: Path, leg: Leg, pairs: dict[str, Outcome]) -> Outcome:
    pair = pairs.get(leg.channel_leg)
    if pair is None:
        return _judged(folder, leg)
    sound = next((each.number for each in pair.attempts if not why_unsound(each)), 0)
    outcome = _judged(folder, leg, sound)
    if sound or not pair.attempts:
        return outcome
    why = f"leg {pair.leg.name}, which says what it should take, is no measure"
    return _doubted(outcome, f"{why}: {why_unsound(pair.attempts[-1])}")


def why_unsound(pair: Attempt) -> str:
    """Return why an attempt of a pair does not say what a message costs; empty where it does.

    What counts of it are its ends: the smallest message and the largest.
    """
    net_path = pair.report.net_path
    if pair.foreign or net_path is None or net_path.state is not PathState.PROVEN:
        return pair.foreign or (net_path.reason if net_path else _first_reason(pair.report))
    sized = [each for each in pair.report.quantities if each.message_size]
    if not sized:
        return _first_reason(pair.report)
    ends = {max(sized, key=_size), min(sized, key=_size)}
    return next((each.reason for each in ends if not _stands(each)), "")


def _size(judgement: Judgement) -> int:
    return judgement.message_size or 0


def _stands(judgement: Judgement) -> bool:
    """Tell whether a number is good, or nobody says what it should be."""
    open_ = judgement.verdict is Verdict.UNJUDGED and judgement.reference is None
    return judgement.value is not None and (open_ or judgement.verdict is Verdict.PASS)


def _first_reason(report: Report) -> str:
    return report.quantities[0].reason if report.quantities else "it left nothing"


def _doubted(outcome: Outcome, why: str) -> Outcome:
    """Return the outcome with all that was held against the pair UNJUDGED."""

    def doubt(each: Judgement) -> Judgement:
        stood = each.verdict in {Verdict.PASS, Verdict.FAIL}
        if not stood or each.source is None or not each.source.rests_on_pair:
            return each
        return replace(each, verdict=Verdict.UNJUDGED, reason=why)

    return mended(outcome, doubt)
