"""What so many runs could have shown, and how many would."""

from __future__ import annotations

import bisect
import functools
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fabricproof.core.student import student_quantile

#: a number, or an array of them
Number = TypeVar("Number", float, Any)

#: runs of the first and of the second side
Sizes = tuple[int, int]

#: more degrees of freedom than these that a kind lends its rows change nothing here
_MOST_LENT = 200

#: an interval of 90 %, both sides of the ends together, needs so many labellings
_LOG_FOR_AN_INTERVAL = math.log(20) - 1e-9

#: nobody runs more than this for one question
MOST_RUNS = 1000

_NORMAL = statistics.NormalDist()

#: half the width of a two-sided interval of 95 %, in standard errors
_TWO_SIDED = _NORMAL.inv_cdf(0.975)

#: the interval of Mann and Whitney needs pi/3 times the runs of that of means where the noise is
#: normal (Lehmann 1975, section 2.4)
_LIKE_MEANS = math.sqrt(math.pi / 3.0)


def number_of_labellings(sizes: Sizes) -> int:
    """Return in how many ways runs can be shared out."""
    return math.comb(sum(sizes), sizes[1])


@functools.lru_cache(maxsize=65536)
def _log_ways(sizes: Sizes) -> float:
    """Return the logarithm of :func:`number_of_labellings`, whose digits nobody needs."""
    n, m = sizes
    return math.lgamma(n + m + 1) - math.lgamma(n + 1) - math.lgamma(m + 1)


def can_be_sure(sizes: Sizes, alpha: float) -> bool:
    """Tell whether there are labellings enough for a p of ``alpha``.

    Where both sides are as large, a labelling and its mirror image are equally far apart.
    """
    alike = 2 if sizes[0] == sizes[1] else 1
    return _log_ways(sizes) >= math.log(alike / alpha) - 1e-9


def wallace(freedom: Number) -> Number:
    """Return the factor in z^2 = factor * f ln(1 + t^2 / f), z normal where t is Student's.

    Wallace 1959, "Bounds on normal approximations to Student's and the chi-square distributions"
    (doi:10.1214/aoms/1177706092).

    Args:
        freedom: f, at least 1.
    """
    return ((8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)) ** 2


def digamma(x: Number, log: Callable[[Number], Number] = math.log) -> Number:
    """Return digamma, x > 0: shifted up by recurrence, then its asymptotic series.

    Abramowitz and Stegun 1964, 6.3.5 and 6.3.18.  ``log`` is that of arrays for an array.
    """
    # Not in place: an array stays as its owner has it.
    below: Any = 0.0
    for _ in range(8):
        below = below + 1.0 / x
        x = x + 1.0
    square = x**-2
    series = square * (1 / 12 - square * (1 / 120 - square / 252))
    found: Number = log(x) - 0.5 / x - series - below
    return found


def trigamma(x: Number) -> Number:
    """Return trigamma, x > 0: likewise (Abramowitz and Stegun 1964, 6.4.6 and 6.4.12)."""
    below: Any = 0.0
    for _ in range(8):
        below = below + x**-2
        x = x + 1.0
    square = x**-2
    series = (1 + square * (1 / 6 - square * (1 / 30 - square / 42))) / x
    found: Number = series + 0.5 * square + below
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class RowFamily:
    """What all rows of a comparison share.

    Attributes:
        alpha: error rate over all of them.
        power: for which everything here is stated.
        seen: normal deviate that the relabellings let an undecided row pass.
    """

    rows: int
    alpha: float
    power: float
    seen: float


def detectable(
    sizes: Sizes, noise: float, margin: float, family: RowFamily, lent: float = 4.0
) -> float | None:
    """Return the smallest change, as a factor above 1, that would have been found.

    Found: t is above its critical value c, and the ratio off by the margin.  The estimate is taken
    for normal around the truth; the estimated noise scatters too, by f of the d0 + f degrees of
    freedom, which widens it by 1 + c^2 f / (2 (d0 + f)^2) (Johnson and Welch 1940, for f alone).

    Args:
        sizes: runs of the first and of the second side.
        noise: standard deviation of the logarithm within the sides.
        margin: smallest change that matters, as the logarithm of a factor.
        family: what all rows share.
        lent: d0, degrees of freedom that the kind of the row lends it, at least 0.
    """
    reach = _reach(sizes, family, min(round(lent), _MOST_LENT))
    if reach is None:
        return None
    return math.exp(max(noise * reach[0], margin + noise * reach[1]))


@functools.lru_cache(maxsize=65536)
def _reach(sizes: Sizes, family: RowFamily, lent: int) -> tuple[float, float] | None:
    """Return what :func:`detectable` takes beyond 0 and beyond the margin, in noises."""
    needed = _critical(sizes, family, lent)
    if needed is None:
        return None
    freedom = max(sum(sizes) - 2, 0)
    widened = math.sqrt(1.0 + needed**2 * freedom / (2.0 * max(lent + freedom, 1.0) ** 2))
    reserve = _NORMAL.inv_cdf(family.power)
    error = _per_noise(sizes)
    return (needed + reserve * widened) * error, reserve * error


def more_runs(
    sizes: Sizes, noise: float, effect: float, margin: float, family: RowFamily, lent: float = 4.0
) -> int | None:
    """Return how many more runs on each side decide the row, were its ratio what it seems.

    Decide: WORSE or BETTER is found (:func:`detectable`), or the interval lies within the margin.
    Both come with the family's power.  None: not with :data:`MOST_RUNS`, as where the change
    seems to be just the margin.

    ``effect`` is the logarithm of the ratio, as estimated; the rest is as in :func:`detectable`.
    """
    both_ends = _NORMAL.inv_cdf((1.0 + family.power) / 2.0)

    def decided(more: int) -> bool:
        grown = sizes[0] + more, sizes[1] + more
        error = noise * _per_noise(grown)
        least = detectable(grown, noise, margin, family, lent)
        return (least is not None and abs(effect) >= math.log(least)) or (
            margin - abs(effect) >= _LIKE_MEANS * (_TWO_SIDED + both_ends) * error
            and _log_ways(grown) >= _LOG_FOR_AN_INTERVAL
        )

    if not decided(MOST_RUNS):
        return None
    return bisect.bisect_left(range(1, MOST_RUNS), True, key=decided) + 1


@functools.lru_cache(maxsize=65536)
def _per_noise(sizes: Sizes) -> float:
    """Return the standard error of the difference, in units of the noise."""
    return math.sqrt(1.0 / sizes[0] + 1.0 / sizes[1])


@functools.lru_cache(maxsize=65536)
def _critical(sizes: Sizes, family: RowFamily, lent: int) -> float | None:
    """Return the t that a row of so many runs must pass; None where no t could.

    The smaller of what the relabellings showed (it knows how rows hang together, and holds for
    the present number of runs) and Bonferroni's, which needs nothing but the number of rows.
    """
    if not can_be_sure(sizes, family.alpha):
        return None
    freedom = max(lent + max(sum(sizes) - 2, 0), 1)
    tail = family.alpha / (2.0 * family.rows)
    seen = family.seen**2 / (freedom * wallace(freedom))
    shown = math.sqrt(freedom * math.expm1(seen)) if seen < 500.0 else math.inf
    return min(shown, student_quantile(tail, freedom))
