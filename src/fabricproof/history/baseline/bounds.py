"""Bounds of a baseline: the median, less or more the larger of a floor and k times the spread.

Per quantity, on logarithms.  The spread is the standard deviation from run to run, moderated by
that of like quantities (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3:3, section 6).  k makes it a
prediction bound for one more run: Student's t at the false alarm rate of a night divided among the
quantities.  Half of the rate is for the few that carry a verdict, half for the many points of
curves (weighted Bonferroni; Rosenthal and Rubin 1983, Psychol. Bull. 94, 540).  docs/baselines.md
has the formulas and what simulations made of them.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fabricproof.core.student import student_quantile
from fabricproof.core.units import by_key

_Name = TypeVar("_Name")

#: share of nights without any change in which even one number is below (above) its bound
FALSE_ALARMS = 0.01

#: unit to the tightest bound, as a fraction of the median.  Below the first, rates of one fabric
#: differ with temperature, firmware of the far end and neighbours; times are noisier.
FLOORS: Mapping[str, float] = {"MB/s": 0.015, "MiB/s": 0.015, "us": 0.05, "ms": 0.05}

#: for all other units
OTHER_FLOOR = 0.05

#: with fewer numbers none is an outlier: three of four cannot outvote the fourth
LEAST_NUM = 5

#: an outlier is so many robust deviations from the median (Iglewicz and Hoaglin 1993: 3.5) times
#: 1 + 5 / number of numbers, and so many deviations of its kind
_APART, _FEW, _APART_OF_KIND = 3.5, 5.0, 6.0

#: the median absolute deviation as a standard deviation (Hampel 1974)
_TO_NORMAL = 1.4826

#: more than this share away from the rest is no outlier, but a second state of the machine
MOST_OUTLIERS = 0.25

#: variance of the median of normal samples, over that of their mean, for many of them
MEDIAN_PRICE = math.pi / 2

#: no run-to-run deviation is believed to be smaller: printed numbers repeat by chance
LEAST_DEVIATION = 0.001

#: quantities of a kind that can lend each other their scatter, and degrees of freedom at most
_LEAST_ALIKE, _MOST_LENT = 3, 200.0

#: noise has longer tails than the normal's: however many runs, k is that of so many degrees
MOST_FREEDOM = 9.0

_DIGITS = 6

#: OSU and IMB print two decimals; more than four are a number that was calculated: it has no step
_LEAST_DECIMALS, _MOST_DECIMALS = 2, 4

#: a bound that the step of the print would take to zero or below stays above it
_LEAST_LOW = 1e-3


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The numbers of one quantity.

    Attributes:
        values: run to value, positive.
        kind: quantities of one kind lend each other their scatter.
        family: families share the false alarm rate evenly, quantities that of their family.
    """

    values: Mapping[str, float]
    unit: str
    kind: tuple[object, ...]
    family: str = "all"


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What was learnt of one quantity.

    Attributes:
        median: of the kept values.
        spread: relative standard deviation from run to run, moderated.
        aside: runs whose numbers are outliers, with the reason.
    """

    median: float
    spread: float
    low: float
    high: float
    aside: Mapping[str, str]


def learn(
    samples: Mapping[_Name, Samples], *, false_alarms: float = FALSE_ALARMS
) -> dict[_Name, Bounds]:
    """Return the bounds of every quantity."""
    robust = by_key((each.kind, _robust(each.values)) for each in samples.values())
    usual = {kind: statistics.median(several) for kind, several in robust.items()}
    aside = {name: _outliers(each, usual[each.kind]) for name, each in samples.items()}
    kept = {
        name: [math.log(value) for run, value in sorted(each.values.items()) if run not in out]
        for (name, each), out in zip(samples.items(), aside.values(), strict=True)
    }
    variances = {
        name: max(statistics.variance(logs), LEAST_DEVIATION**2) for name, logs in kept.items()
    }
    of_kinds = by_key(
        (each.kind, (variances[name], len(kept[name]) - 1)) for name, each in samples.items()
    )
    lent = {kind: prior(several) for kind, several in of_kinds.items()}
    sizes = Counter(each.family for each in samples.values())
    found = {}
    for name, each in samples.items():
        freedom, variance = lent[each.kind]
        own = len(kept[name]) - 1
        spread = math.sqrt((freedom * variance + own * variances[name]) / (freedom + own))
        tail = false_alarms / len(sizes) / sizes[each.family]
        # Half degrees of freedom are precise enough, and their quantiles are calculated once.
        k = student_quantile(tail, min(round(2 * (freedom + own)) / 2, MOST_FREEDOM))
        reach = k * math.sqrt(1 + MEDIAN_PRICE / len(kept[name])) * spread
        found[name] = _bounds(each, kept[name], spread, reach, aside[name])
    return found


def _robust(values: Mapping[str, float]) -> float:
    logs = [math.log(each) for each in values.values()]
    middle = statistics.median(logs)
    deviation = statistics.median(abs(each - middle) for each in logs) * _TO_NORMAL
    return max(deviation, 2 * LEAST_DEVIATION)


def _outliers(each: Samples, usual: float) -> dict[str, str]:
    """Return the runs that are far off, with the reason; none if they are too many."""
    num = len(each.values)
    if num < LEAST_NUM:
        return {}
    median = statistics.median(each.values.values())
    own = _APART * (1 + _FEW / num) * _robust(each.values)
    width = max(own, _APART_OF_KIND * usual, FLOORS.get(each.unit, OTHER_FLOOR))
    found = {
        run: f"{value / median:.1%} of the median {median:.5g} {each.unit} of {num} runs"
        for run, value in each.values.items()
        if abs(math.log(value / median)) > width
    }
    return found if len(found) <= MOST_OUTLIERS * num else {}


def prior(variances: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Return the degrees of freedom and the variance that quantities of a kind lend each other.

    From mean and variance of the log variances (Smyth 2004), each of d degrees of freedom, with
    psi(x) = ln x - 1/2x - 1/12x^2 and psi'(x) = 1/x + 1/2x^2.  No freedom if they are too few.
    """
    if len(variances) < _LEAST_ALIKE:
        return 0.0, 1.0
    logs = [math.log(each) + _bias(d / 2) for each, d in variances]
    chance = statistics.fmean(2 / d + 2 / d**2 for _, d in variances)
    excess = statistics.variance(logs) - chance
    half = _MOST_LENT / 2
    if excess > 0:
        half = min(half, (1 + math.sqrt(1 + 2 * excess)) / (2 * excess))
    return 2 * half, math.exp(statistics.fmean(logs) - _bias(half))


def _bias(half: float) -> float:
    """Return by how much the mean of a log variance is too low, d/2 degrees of freedom."""
    return 1 / (2 * half) + 1 / (12 * half**2)


def _bounds(
    each: Samples, kept: Sequence[float], spread: float, reach: float, aside: Mapping[str, str]
) -> Bounds:
    floor = FLOORS.get(each.unit, OTHER_FLOOR)
    median = math.exp(statistics.median(kept))
    # Beyond a factor of e^7 a bound says nothing any more, and a float stays a float.
    reach = min(reach, 7.0)
    # A median and the next number are each printed up to half a step away from what they are.
    step = print_step(each.values.values())
    low = median * min(1 - floor, math.exp(-reach))
    low = max(low - step, low * _LEAST_LOW)
    high = median * max(1 + floor, math.exp(reach)) + step
    return Bounds(
        median=median,
        spread=spread,
        low=_rounded(min(low, math.exp(min(kept))), up=False),
        high=_rounded(max(high, math.exp(max(kept))), up=True),
        aside=aside,
    )


def print_step(values: Iterable[float]) -> float:
    """Return by how much two prints of a quantity differ at least; 0 if they have no such step.

    By the decimals of the numbers: 0.02 and 0.15 are printed in steps of 0.01.
    """
    decimals = 0
    for each in values:
        whole, _, rest = repr(each).partition(".")
        if "e" in rest or "e" in whole:
            return 0.0
        decimals = max(decimals, len(rest.rstrip("0")))
    return 10.0 ** -max(decimals, _LEAST_DECIMALS) if decimals <= _MOST_DECIMALS else 0.0


def _rounded(bound: float, *, up: bool) -> float:
    """Return the bound in few digits, a hair away from the median: no sample is cut off by it."""
    step = 10.0 ** (math.floor(math.log10(bound)) - _DIGITS + 2)
    moved = (math.ceil(bound / step) + 1 if up else math.floor(bound / step) - 1) * step
    return float(f"{moved:.{_DIGITS}g}")
