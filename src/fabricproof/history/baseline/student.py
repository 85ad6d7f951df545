"""Quantiles of Student's t far out in the tail, and the moments of a logarithm of chi-squared.

A night has a thousand quantities and may raise one false alarm in a hundred nights: tails of one
in a hundred thousand, with degrees of freedom that are no whole numbers.
"""

from __future__ import annotations

import math

#: terms of the continued fraction; it converges in tens
_TERMS = 500


def upper_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t is above ``t`` (0 or more).

    Half the regularised incomplete beta function I_x(v/2, 1/2) at x = v/(v + t^2) (Abramowitz and
    Stegun 1964, 26.7.1 and 26.5.8).
    """
    if math.isinf(freedom):
        return math.erfc(t / math.sqrt(2)) / 2
    return _beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2


def quantile(tail: float, freedom: float) -> float:
    """Return the t that Student's t exceeds with probability ``tail``.

    Args:
        tail: above 0, at most 0.5.
        freedom: degrees of freedom, 1 or more; infinite for the normal distribution.
    """
    low, high = 0.0, 1.0
    while upper_tail(high, freedom) > tail:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if upper_tail(middle, freedom) > tail else (low, middle)
    return high


def _beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), by its continued fraction."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    # Lentz's method, Numerical Recipes 6.4.
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, _TERMS):
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


def digamma(x: float) -> float:
    """Return the derivative of the logarithm of the gamma function (A. and S. 6.3.18)."""
    below = 0.0
    while x < 6:
        below -= 1 / x
        x += 1
    inverse = 1 / (x * x)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse / 240)))
    return below + math.log(x) - 0.5 / x - series


def trigamma(x: float) -> float:
    """Return its second derivative (A. and S. 6.4.12)."""
    below = 0.0
    while x < 6:
        below += 1 / (x * x)
        x += 1
    inverse = 1 / (x * x)
    series = 1 + inverse * (1 / 6 - inverse * (1 / 30 - inverse * (1 / 42 - inverse / 30)))
    return below + 0.5 * inverse + series / x


def inverse_trigamma(y: float) -> float:
    """Return x with ``trigamma(x) == y``, for y above 0."""
    low, high = 1e-8, 1e8
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if trigamma(middle) > y else (low, middle)
    return high
