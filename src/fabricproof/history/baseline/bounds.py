"""From the numbers of a few good runs to bounds that a night of many quantities may be held to.

Per quantity, on the logarithm: outliers are set aside, the median is the centre, and the variance
from run to run is moderated by that of like quantities (Smyth 2004, *Linear models and empirical
Bayes methods*, Stat. Appl. Genet. Mol. Biol. 3:3, section 6).  The bound is a prediction bound for
one more run, its tail the false alarm rate of a whole night divided among the quantities: half of
it among the few that carry a verdict, half among the many points of curves, so that the many do
not blunt the few (weighted Bonferroni; Rosenthal and Rubin 1983, Psychol. Bull. 94, 540).  Where
the residuals of like quantities have a longer tail than Student's t on that side, an exponential
tail through their largest (Pickands 1975, Ann. Stat. 3, 119, with shape 0) replaces it.  It is
never tighter than a floor.  docs/baselines.md has the formulas and what simulations made of them.

What a set of good measurements is like (:func:`summarise`) goes by the median and the median
absolute deviation, as a standard deviation (Hampel 1974) with the small-sample factor of Croux and
Rousseeuw 1992.  Latencies have a long tail to the right, and the numbers in it are no errors: a
side whose own deviations are larger gets its own, wider scatter (the double MAD), never a narrower
one.
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
from fabricproof.history.stats.power import digamma, inverse_trigamma, trigamma

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
    """

    median: float
    spread: float
    low: float
    high: float
    outliers: tuple[bool, ...]


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
    )


def _scatter(deviations: Sequence[float]) -> float:
    """Return the standard deviation that normal noise with these deviations would have."""
    num = len(deviations)
    factor = _SMALL.get(num, num / (num - 0.8)) if num > 1 else 1.0
    return max(statistics.median(deviations) * _TO_NORMAL * factor, LEAST_SPREAD)


_Name = TypeVar("_Name")

#: share of nights without any change in which even one number is below (above) its bound
FALSE_ALARMS = 0.01

#: unit to the tightest bound, as a fraction of the median.  Below the first, rates of one fabric
#: differ with temperature, firmware of the far end and neighbours; times are noisier.
FLOORS: Mapping[str, float] = {"MB/s": 0.015, "MiB/s": 0.015, "us": 0.05, "ms": 0.05}

#: for all other units
OTHER_FLOOR = 0.05

#: what stands apart from its own median (:func:`summarise`) is an outlier where it is
#: also this many deviations of its kind away: five numbers alone may lie close together by chance
OUTLIER_DEVIATIONS = 6.0

#: more than this share away from the rest is no outlier, but a second state of the machine
MOST_OUTLIERS = 0.25

#: variance of the median of normal samples, over that of their mean, for many of them
MEDIAN_PRICE = math.pi / 2

#: the tail of the residuals begins at this quantile
TAIL_BEGINS = 0.9

#: fewer residuals beyond it say nothing of a tail
LEAST_EXCESSES = 10

#: no run-to-run deviation is believed to be smaller: printed numbers repeat by chance
LEAST_DEVIATION = 0.001

_DIGITS = 6

#: OSU and IMB print two decimals; fewer are zeros that a float does not keep, more than four a
#: number that was calculated and has no step
_LEAST_DECIMALS, _MOST_DECIMALS = 2, 4

#: a bound that the step would take to zero or below stays above it
_LEAST_LOW = 1e-3


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The numbers of one quantity.

    Attributes:
        values: run to value, positive.
        kind: quantities of one kind have noise of one scale, more or less, and lend each other
            their scatter.
        family: families share the false alarm rate evenly, quantities that of their family; one
            with an empty name is never judged and takes no part.
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
        low: lower bound.
        high: upper bound.
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
    summaries = {name: summarise([*each.values.values()]) for name, each in samples.items()}
    scales = _scales(samples, summaries)
    aside = {
        name: _outliers(each, summaries[name], scales[each.kind]) for name, each in samples.items()
    }
    kept = {
        name: [math.log(value) for run, value in each.values.items() if run not in aside[name]]
        for name, each in samples.items()
    }
    variances = {name: max(variance_of(v), LEAST_DEVIATION**2) for name, v in kept.items()}
    priors = _priors(samples, variances, kept)
    spreads = {}
    for name, each in samples.items():
        freedom, variance = priors[each.kind]
        spreads[name] = _moderated(variances[name], len(kept[name]) - 1, variance, freedom)
    tails = _tails(samples, kept, spreads)
    rates = _rates(samples, false_alarms)
    found = {}
    for name, each in samples.items():
        (moderated, freedom), tail = spreads[name], rates[each.family]
        usual = student_quantile(tail, freedom)
        price = math.sqrt(1 + MEDIAN_PRICE / len(kept[name]))
        low, high = (price * max(usual, side.reaches(tail)) for side in tails[each.kind])
        found[name] = _bounds(each, kept[name], math.sqrt(moderated), (low, high), aside[name])
    return found


def variance_of(values: Sequence[float]) -> float:
    """Return what ``statistics.variance`` does, to the last bit, in a quarter of its time."""
    ratios = [each.as_integer_ratio() for each in values]
    # A float is a whole number over a power of two: all are whole over the largest of these.
    common = max(below for _, below in ratios)
    whole = [above * (common // below) for above, below in ratios]
    num = len(whole)
    squares = num * sum(each * each for each in whole) - sum(whole) ** 2
    return squares / (num * (num - 1) * common * common)


def _rates(samples: Mapping[_Name, Samples], false_alarms: float) -> dict[str, float]:
    counts = Counter(each.family for each in samples.values())
    judged = max(1, len([family for family in counts if family]))
    return {
        family: false_alarms / count / (judged if family else 1) for family, count in counts.items()
    }


@dataclass(frozen=True, kw_only=True)
class Tail:
    """How far the residuals of one kind reach on one side, in moderated deviations.

    Attributes:
        begins: where the tail begins.
        share: of the residuals, beyond it; 0 where they are too few to say anything.
        decays: mean excess beyond it.
    """

    begins: float = 0.0
    share: float = 0.0
    decays: float = 0.0

    def reaches(self, tail: float) -> float:
        """Return what is exceeded with probability ``tail``; 0 where nobody knows."""
        if self.share <= tail:
            return 0.0
        return self.begins + self.decays * math.log(self.share / tail)


def _tails(
    samples: Mapping[_Name, Samples],
    kept: Mapping[_Name, Sequence[float]],
    spreads: Mapping[_Name, tuple[float, float]],
) -> dict[tuple[object, ...], tuple[Tail, Tail]]:
    """Return kind -> the tails below and above the medians."""
    residuals: dict[tuple[object, ...], list[float]] = {}
    for name, each in samples.items():
        logs, spread = kept[name], math.sqrt(spreads[name][0])
        centre = statistics.median(logs)
        # A median lies nearer to its own samples than to the next one.
        scale = spread * math.sqrt(1 - 1 / len(logs))
        residuals.setdefault(each.kind, []).extend((log - centre) / scale for log in logs)
    return {
        kind: (_tail([-each for each in several]), _tail(several))
        for kind, several in residuals.items()
    }


def _tail(residuals: Sequence[float]) -> Tail:
    ranked = sorted(residuals)
    begins = ranked[int(TAIL_BEGINS * (len(ranked) - 1))]
    excesses = [each - begins for each in ranked if each > begins]
    if len(excesses) < LEAST_EXCESSES or begins <= 0:
        return Tail()
    return Tail(begins=begins, share=len(excesses) / len(ranked), decays=statistics.fmean(excesses))


def _bounds(
    each: Samples,
    kept: Sequence[float],
    spread: float,
    factors: tuple[float, float],
    aside: Mapping[str, str],
) -> Bounds:
    floor = FLOORS.get(each.unit, OTHER_FLOOR)
    median = math.exp(statistics.median(kept))
    # Beyond a factor of e^7 a bound says nothing any more, and a float stays a float.
    below, above = (min(factor * spread, 7.0) for factor in factors)
    # A median and the next number are each printed up to half a step away from what they are.
    step = print_step(each.values.values())
    low = median * min(1 - floor, math.exp(-below))
    low = max(low - step, low * _LEAST_LOW)
    high = median * max(1 + floor, math.exp(above)) + step
    return Bounds(
        median=median,
        spread=spread,
        low=_rounded(min(low, math.exp(min(kept))), up=False),
        high=_rounded(max(high, math.exp(max(kept))), up=True),
        aside=aside,
    )


def print_step(values: Iterable[float]) -> float:
    """Return by how much two prints of a quantity differ at least, 0 where there is no such step.

    By the decimals of the numbers: 0.02 and 0.15 are printed in steps of 0.01.
    """
    decimals = 0
    for each in values:
        whole, _, rest = repr(each).partition(".")
        if "e" in rest or "e" in whole:
            return 0.0
        decimals = max(decimals, len(rest.rstrip("0")))
        if decimals > _MOST_DECIMALS:
            return 0.0
    return 10.0 ** -max(decimals, _LEAST_DECIMALS)


def _rounded(bound: float, *, up: bool) -> float:
    """Return the bound in few digits, a hair away from the median: no sample is cut off by it."""
    step = 10.0 ** (math.floor(math.log10(bound)) - _DIGITS + 2)
    moved = (math.ceil(bound / step) + 1 if up else math.floor(bound / step) - 1) * step
    return float(f"{moved:.{_DIGITS}g}")


def _scales(
    samples: Mapping[_Name, Samples], summaries: Mapping[_Name, Summary]
) -> dict[tuple[object, ...], float]:
    found = by_key((each.kind, summaries[name].spread) for name, each in samples.items())
    return {kind: statistics.median(several) for kind, several in found.items()}


def _outliers(each: Samples, summary: Summary, scale: float) -> dict[str, str]:
    """Return the runs that stand far off, with the reason; none where they are too many."""
    runs = list(each.values)
    width = max(OUTLIER_DEVIATIONS * scale, FLOORS.get(each.unit, OTHER_FLOOR))
    found = {
        run: f"{each.values[run] / summary.median:.1%} of the median {summary.median:.5g} "
        f"{each.unit} of {len(runs)} runs, which lie within {max(summary.spread, scale):.1%} "
        "of it as a rule"
        for run, apart in zip(runs, summary.outliers, strict=True)
        if apart and abs(math.log(each.values[run] / summary.median)) > width
    }
    few = len(found) <= MOST_OUTLIERS * len(runs)
    return found if few and len(runs) - len(found) >= 3 else {}


def _priors(
    samples: Mapping[_Name, Samples],
    variances: Mapping[_Name, float],
    kept: Mapping[_Name, Sequence[float]],
) -> dict[tuple[object, ...], tuple[float, float]]:
    """Return kind -> (degrees of freedom, variance) of what like quantities lend each other."""
    members = by_key(
        (each.kind, (variances[name], len(kept[name]) - 1)) for name, each in samples.items()
    )
    return {kind: prior(several) for kind, several in members.items()}


def prior(variances: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Return the degrees of freedom and the variance of Smyth's prior.

    No freedom where the quantities are too few or too unlike to lend each other anything; an
    infinite one where all have the same noise.
    """
    if len(variances) < 3:
        return 0.0, 1.0
    e = [math.log(each) - digamma(d / 2) + math.log(d / 2) for each, d in variances]
    mean, count = statistics.fmean(e), len(e)
    excess = statistics.fmean(
        (each - mean) ** 2 * count / (count - 1) - trigamma(d / 2)
        for each, (_, d) in zip(e, variances, strict=True)
    )
    if excess <= 0:
        return math.inf, math.exp(mean)
    half = inverse_trigamma(excess)
    return 2 * half, math.exp(mean + digamma(half) - math.log(half))


def _moderated(own: float, freedom: int, lent: float, lent_freedom: float) -> tuple[float, float]:
    if math.isinf(lent_freedom):
        return lent, math.inf
    total = freedom + lent_freedom
    return (freedom * own + lent_freedom * lent) / total, total
