"""The strongest rules in use elsewhere for "which of many rows changed", each with its own p.

Written anew from their papers, for the tables of ``false_alarms.py`` only.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fabricproof.history.stats.power import digamma, trigamma

Values = npt.NDArray[np.float64]

_log_gamma = np.vectorize(math.lgamma, otypes=[float])


def student_p(t: Values, freedom: float) -> Values:
    """Return the two-sided p of Student's t, any freedom.

    The incomplete beta function by its continued fraction (Abramowitz and Stegun 1964, 26.5.8, with
    the algorithm of Lentz 1976).
    """
    x = freedom / (freedom + t * t)
    a, b = np.full_like(x, freedom / 2), np.full_like(x, 0.5)
    turned = x > (a + 1) / (a + b + 2)
    a, b, x = np.where(turned, b, a), np.where(turned, a, b), np.where(turned, 1 - x, x)
    front = _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
    front += a * np.log(np.maximum(x, 1e-300)) + b * np.log1p(-np.minimum(x, 1 - 1e-16))
    c, d = np.ones_like(x), 1 / (1 - (a + b) * x / (a + 1))
    total = d.copy()
    for m in range(1, 200):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / (1 + term * d), 1 + term / c
            total *= d * c
        if np.abs(d * c - 1).max() < 1e-12:
            break
    found = np.exp(front) / a * total
    return np.where(turned, 1 - found, found)


def lent_freedom(excess: float) -> float:
    """Return d0 of trigamma(d0 / 2) = ``excess``, by bisection; infinite where there is none."""
    if excess <= trigamma(np.array(5e5)):
        return 1e6
    low, high = 1e-3, 5e5
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if trigamma(np.array(middle)) > excess else (low, middle)
    return 2 * low


def moderated_p(values: Values, num_first: int) -> Values:
    """Return p of the moderated t of each row (Smyth 2004; d0 and s0 of section 6.2).

    Args:
        values: shape (rows, runs), no number absent.
        num_first: columns of the first side.
    """
    logs = np.log(values)
    sides = logs[:, :num_first], logs[:, num_first:]
    n, m = (side.shape[1] for side in sides)
    f = n + m - 2
    s2 = sum(((each - each.mean(axis=1)[:, None]) ** 2).sum(axis=1) for each in sides) / f
    s2 = np.maximum(s2, 1e-5 * np.median(s2))
    e = np.log(s2) - digamma(np.array(f / 2)) + math.log(f / 2)
    d0 = lent_freedom(float(e.var(ddof=1) - trigamma(np.array(f / 2))))
    s02 = math.exp(float(e.mean() + digamma(np.array(d0 / 2)) - math.log(d0 / 2)))
    v = (d0 * s02 + f * s2) / (d0 + f)
    t = (sides[1].mean(axis=1) - sides[0].mean(axis=1)) / np.sqrt(v * (1 / n + 1 / m))
    return student_p(t, min(d0 + f, f * len(values), 1e5))


def holm(p: Values) -> Values:
    """Return adjusted p (Holm 1979)."""
    order = np.argsort(p)
    found = np.empty(len(p))
    found[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return found


def benjamini_hochberg(p: Values) -> Values:
    """Return adjusted p (Benjamini and Hochberg 1995)."""
    order = np.argsort(p)[::-1]
    found = np.empty(len(p))
    stepped = np.minimum.accumulate(p[order] * len(p) / np.arange(len(p), 0, -1))
    found[order] = np.minimum(stepped, 1.0)
    return found


def plain_max_t(values: Values, second: Values) -> Values:
    """Return adjusted p of Westfall and Young's step-down maxT with the t of each row alone.

    Args:
        values: shape (rows, runs), no number absent.
        second: shape (runs, labellings), the real one first, 1.0 where a run is of the second side.
    """
    x = np.log(values)
    x -= x.mean(axis=1)[:, None]
    num = second[:, 0].sum()
    told = num * (len(second) - num) / len(second)
    between = (x @ second) ** 2 / told
    t2 = between / np.maximum((x * x).sum(axis=1)[:, None] - between, 1e-18)
    order = np.argsort(t2[:, 0])
    largest = np.maximum.accumulate(t2[order], axis=0)
    share = (largest >= t2[order, :1] * (1 - 1e-9)).mean(axis=1)
    found = np.empty(len(x))
    found[order] = np.maximum.accumulate(share[::-1])[::-1]
    return found
