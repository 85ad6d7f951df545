"""What a set of good measurements is like: its middle, its scatter, and what stands apart from it.

On logarithms, since noise of a measurement is a share of it.  The middle is the median.  The
scatter is the median absolute deviation, scaled to the standard deviation of a normal distribution
(Hampel 1974) with the small-sample factor of Croux and Rousseeuw 1992.  Latencies have a long tail
to the right, and the numbers in it are no errors: a side whose own deviations are larger gets its
own, wider scatter (the double MAD), never a narrower one.  What is further than
:data:`APART` scatters from the median is an outlier.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

#: with fewer numbers none is called an outlier: three of four cannot outvote the fourth
LEAST_NUM = 5

#: a number is an outlier where it is further from the median, in scatters (Iglewicz and Hoaglin
#: 1993, "How to detect and handle outliers": 3.5) ...
APART = 3.5

#: ... times 1 + this / number of numbers, so that few of them do not cry wolf
_FEW = 5.0

#: a scatter is at least this share: what two prints of the same number may differ by
LEAST_SPREAD = 0.002

_TO_NORMAL = 1.4826

#: factor for the median absolute deviation of n numbers; above 9: n / (n - 0.8)
_SMALL = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """What numbers of one quantity are like.

    Attributes:
        median: in the unit of the quantity; outliers take part, since half of them would have to
            be wrong to move it far.
        spread: scatter as a share of the median: 0.02 is a standard deviation of 2 %.
        low: a number below it stands apart, in the unit of the quantity.
        high: a number above it stands apart.
        outliers: for each number, in the order given, whether it stands apart.
        num: how many numbers.
    """

    median: float
    spread: float
    low: float
    high: float
    outliers: tuple[bool, ...]
    num: int


def summarise(values: Sequence[float]) -> Summary:
    """Return what ``values`` are like.

    Args:
        values: positive and finite, at least one.

    Raises:
        ValueError: there is none, or one is zero, negative or not finite.
    """
    if not values or any(not 0.0 < each < math.inf for each in values):
        raise ValueError("at least one positive, finite value is needed")
    logs = [math.log(each) for each in values]
    middle = statistics.median(logs)
    apart = [each - middle for each in logs]
    spread = _scatter([abs(each) for each in apart])
    below = max(spread, _scatter([-each for each in apart if each <= 0]))
    above = max(spread, _scatter([each for each in apart if each >= 0]))
    cut = APART * (1.0 + _FEW / len(logs))
    told = len(logs) >= LEAST_NUM
    return Summary(
        median=statistics.median(values),
        spread=math.expm1(spread),
        low=math.exp(middle - cut * below),
        high=math.exp(middle + cut * above),
        outliers=tuple(told and not -cut * below <= each <= cut * above for each in apart),
        num=len(values),
    )


def _scatter(deviations: Sequence[float]) -> float:
    """Return the standard deviation that normal noise with these deviations would have."""
    num = len(deviations)
    factor = _SMALL.get(num, num / (num - 0.8)) if num > 1 else 1.0
    return max(statistics.median(deviations) * _TO_NORMAL * factor, LEAST_SPREAD)
