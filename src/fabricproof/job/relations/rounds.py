"""What several rounds of one ratio say against its bounds: inside, beyond, or open.

A relation is measured in rounds, each of all that it relates, one after the other (near, far; far,
near; near, far ...), so that a drift of the machine hits both sides.  A round gives one ratio.  The
logarithms of ratios of times scatter about evenly, though the times themselves have a long tail to
one side; their mean and Student's t give an interval for the ratio, exact for lognormal scatter and
too wide, which is the safe side, for a heavier tail (an outlier widens it more than it moves it).

* Inside: the interval at :data:`GREEN_TAIL` lies within the bounds.
* Beyond: the one at :data:`RED_TAIL` lies outside, and there were :data:`LEAST_RED` rounds.
* Open: all else, however good the middle looks.  Noise never turns into a PASS.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev

from fabricproof.core.student import student_quantile
from fabricproof.job.script import MOST_ROUNDS

#: rounds before anything is green; three is the least for which t is not absurd (two: 12.7)
LEAST = 3

#: rounds before anything is red: a burst of load that lasts three may hit one side harder
LEAST_RED = 6

#: A relation's budget: after so many rounds that do not count, or after its first six once so much
#: time is spent, it is UNJUDGED.  One took 336 s of a ten-minute run beside other load.
MOST_LOST, MOST_SECONDS = LEAST_RED, 60.0

#: A ratio at its bound may pass with this probability each time it is looked at ...
GREEN_TAIL = 0.025

#: ... and be red with this one: a false alarm costs an administrator's night.
RED_TAIL = 0.005

#: What a ratio of 0 counts as: far below all that is measured.  One such round among others leaves
#: the ratio open.
_NOTHING = 1e-6

#: Rounds that nobody would make are not counted.
_UNTOLD = 400


class RatioStanding(StrEnum):
    """Where a ratio lies by all its rounds."""

    INSIDE = "inside"
    BELOW = "below"
    ABOVE = "above"
    IMPOSSIBLE = "impossible"
    OPEN = "open"


@dataclass(frozen=True, kw_only=True)
class RoundBounds:
    """What a ratio is held against; None where there is no such bound.

    ``most`` is what physics allows: surely above it is impossible, not bad.
    """

    lower: float | None = None
    upper: float | None = None
    most: float | None = None


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What the rounds of one ratio say.

    Attributes:
        centre: geometric mean of the rounds.
        low, high: ends of the interval that decided, or that leaves it open.
        would_tell: rounds in all that would decide, were they like these; None where the ratio
            lies on its bound, so that no reasonable number would.
    """

    standing: RatioStanding
    centre: float
    low: float
    high: float
    rounds: int
    would_tell: int | None


def decide_rounds(ratios: Sequence[float], bounds: RoundBounds) -> Decision:
    """Decide about one ratio.

    ``ratios``: one of each round, at least one; 0 where one side measured nothing.
    """
    logs = [math.log(max(each, _NOTHING)) for each in ratios]
    centre = fmean(logs)
    scatter = stdev(logs) if len(logs) > 1 else math.inf
    side = _side(centre, bounds)
    low, high = _interval(centre, scatter, len(logs), RED_TAIL if side else GREEN_TAIL)
    is_clear = _clear(side, low, high, bounds)
    enough = len(logs) >= (LEAST_RED if side else LEAST)
    standing, would_tell = RatioStanding.OPEN, _would_tell(centre, scatter, len(logs), side, bounds)
    if is_clear and enough:
        standing, would_tell = side or RatioStanding.INSIDE, len(logs)
    return Decision(
        standing=standing,
        centre=math.exp(centre),
        low=_exp(low),
        high=_exp(high),
        rounds=len(logs),
        would_tell=would_tell,
    )


def rounds_to_add(
    ratios: Sequence[float], num_lost: int, bounds: RoundBounds, seconds: float = 0.0
) -> int:
    """Return how many rounds a job should add now: 0 if it is decided, hopeless or too expensive.

    ``num_lost`` rounds were made and gave no ratio, or were disturbed; all took ``seconds``.
    """
    made = len(ratios) + num_lost
    is_spent = made >= LEAST_RED and seconds >= MOST_SECONDS
    if made >= MOST_ROUNDS or num_lost >= MOST_LOST or is_spent:
        return 0
    if len(ratios) < LEAST:
        return min(LEAST - len(ratios), MOST_ROUNDS - made)
    decision = decide_rounds(ratios, bounds)
    if decision.standing is not RatioStanding.OPEN:
        return 0
    total = decision.would_tell
    if made >= LEAST_RED and (total is None or total > MOST_ROUNDS):
        return 0
    # The scatter of few rounds is itself uncertain: not more than three on its word.
    wanted = 3 if total is None else min(3, max(1, total - len(ratios)))
    return min(wanted, MOST_ROUNDS - made)


def _side(centre: float, bounds: RoundBounds) -> RatioStanding | None:
    """Return on which side of its bounds the middle lies; None within."""
    if bounds.most is not None and centre > math.log(bounds.most):
        return RatioStanding.IMPOSSIBLE
    if bounds.lower is not None and bounds.lower > 0 and centre < math.log(bounds.lower):
        return RatioStanding.BELOW
    if bounds.upper is not None and centre > math.log(bounds.upper):
        return RatioStanding.ABOVE
    return None


def _interval(centre: float, scatter: float, count: int, tail: float) -> tuple[float, float]:
    if count < 2:
        return -math.inf, math.inf
    half = student_quantile(tail, count - 1) * scatter / math.sqrt(count)
    return centre - half, centre + half


def _clear(side: RatioStanding | None, low: float, high: float, bounds: RoundBounds) -> bool:
    match side:
        case RatioStanding.IMPOSSIBLE:
            return bounds.most is not None and low > math.log(bounds.most)
        case RatioStanding.BELOW:
            return bounds.lower is not None and high < math.log(bounds.lower)
        case RatioStanding.ABOVE:
            return bounds.upper is not None and low > math.log(bounds.upper)
        case _:
            above = not bounds.lower or low >= math.log(bounds.lower)
            return above and (bounds.upper is None or high <= math.log(bounds.upper))


def _would_tell(
    centre: float, scatter: float, count: int, side: RatioStanding | None, bounds: RoundBounds
) -> int | None:
    least = max(count + 1, LEAST_RED if side else LEAST)
    if count < 2:
        return least
    tail = RED_TAIL if side else GREEN_TAIL
    totals = range(least, _UNTOLD)
    # The interval only shrinks with the rounds.
    first = bisect_left(
        totals, 1, key=lambda total: _clear(side, *_interval(centre, scatter, total, tail), bounds)
    )
    return totals[first] if first < len(totals) else None


def _exp(logarithm: float) -> float:
    return math.exp(min(logarithm, 700.0))
