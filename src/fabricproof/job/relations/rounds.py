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
#: time is spent, it is UNJUDGED.  One took 336 s of a ten-minute run beside other load; bursts of
#: load that come and go leave some rounds of twelve.
MOST_LOST, MOST_SECONDS = 2 * LEAST_RED, 60.0

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
    """What a ratio is held against; None if there is no such bound."""

    lower: float | None = None
    upper: float | None = None
    most: float | None = None  # what physics allows: surely above it is impossible, not bad


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What the rounds of one ratio say."""

    standing: RatioStanding
    centre: float  # geometric mean of the rounds
    low: float  # end of the interval that decided, or that leaves it open
    high: float
    rounds: int
    would_tell: int | None  # rounds in all, were they like these; None if no reasonable number


def decide_rounds(ratios: Sequence[float], bounds: RoundBounds) -> Decision:
    """Decide about one ratio.

    ``ratios``: one of each round, at least one; 0 if one side measured nothing.
    """
    logs = [math.log(max(each, _NOTHING)) for each in ratios]
    centre, count = fmean(logs), len(logs)
    scatter = stdev(logs) if count > 1 else math.inf
    most, upper = (math.log(each) if each else math.inf for each in (bounds.most, bounds.upper))
    lower = math.log(bounds.lower) if bounds.lower else -math.inf
    region = RatioStanding.INSIDE, lower, upper
    if centre > most:
        region = RatioStanding.IMPOSSIBLE, most, math.inf
    elif centre < lower:
        region = RatioStanding.BELOW, -math.inf, lower
    elif centre > upper:
        region = RatioStanding.ABOVE, upper, math.inf
    standing, begin, end = region
    is_good = standing is RatioStanding.INSIDE
    tail, least = (GREEN_TAIL, LEAST) if is_good else (RED_TAIL, LEAST_RED)

    def half(rounds: int) -> float:
        if count < 2:
            return math.inf
        return student_quantile(tail, rounds - 1) * scatter / math.sqrt(rounds)

    def decided(rounds: int) -> bool:
        return begin <= centre - half(rounds) and centre + half(rounds) <= end

    would_tell: int | None = count
    if count < least or not decided(count):
        standing = RatioStanding.OPEN
        totals = range(max(count + 1, least), _UNTOLD)
        # The interval only shrinks with the rounds; nobody knows the scatter of one.
        first = bisect_left(totals, 1, key=decided) if count > 1 else 0
        would_tell = totals[first] if first < len(totals) else None
    return Decision(
        standing=standing,
        centre=math.exp(centre),
        low=math.exp(centre - half(count)),
        high=math.exp(min(centre + half(count), 700.0)),
        rounds=count,
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
