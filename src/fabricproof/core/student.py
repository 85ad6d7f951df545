"""Student's t, far out in its tail and with degrees of freedom that are no whole numbers."""

from __future__ import annotations

import functools
import math


def student_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t is above ``t`` (0 or more).

    Half the regularised incomplete beta function I_x(v/2, 1/2) at x = v/(v + t^2) (Abramowitz and
    Stegun 1964, 26.7.1 and 26.5.8).
    """
    if math.isinf(freedom):
        return math.erfc(t / math.sqrt(2)) / 2
    return beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2


@functools.lru_cache(maxsize=4096)
def student_quantile(tail: float, freedom: float) -> float:
    """Return the t that Student's t exceeds with probability ``tail``, above 0 and at most 0.5.

    ``freedom`` is 1 or more; infinite for the normal distribution.
    """
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > tail:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > tail else (low, middle)
    return high


def beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), 0 below x = 0 and 1 above 1.

    By its continued fraction with Lentz's method (Numerical Recipes 6.4).
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(front + a * math.log(x) + b * math.log1p(-x))
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, 500):  # it converges in tens
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            total *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return front * total / a
