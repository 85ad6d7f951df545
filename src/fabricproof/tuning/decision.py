"""Where does a stack's own choice of an algorithm lose, by how much, and how sure is that?

Times of one operation under the own choice and under each algorithm, all of one job and repeated in
turns, so that a drift of the machine hits all alike.  A winner is named only where

* it was measured at least twice, and so was the own choice,
* each of its times lies below every time of the own choice,
* its gain is larger than the noise explains, and
* the gain is worth the trouble (:data:`SURE_FACTOR`).

The noise is that of the job itself: times are compared as logarithms, and what repetitions of one
and the same thing differ by is pooled over all algorithms of a message size (one-way analysis of
variance).  Student's t gives the gain that such noise explains, at a rate of false alarms for the
whole sweep, divided by the number of comparisons (Bonferroni), since the best of many is always a
lucky one.  Requirement two keeps a single stall from making anybody a loser: stalls have a heavier
tail than Student's t knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from fabricproof.core.student import student_quantile

#: series that are no algorithm: the choice that is judged, and the library's own where the site's
#: environment forces another
OWN, AUTO = "own", "auto"

#: a gain below this is not worth a variable
SURE_FACTOR = 1.25

#: an own choice that loses by more than this is red; the source documents had 3 to 5
LOSS_LIMIT = 1.5

#: how often a sweep of a machine without any bad choice may name one
FALSE_ALARMS = 0.01

#: how often, for one message size, an own choice that loses by the limit may pass for noise
MISSES = 0.05


class ChoiceResult(StrEnum):
    """The own choice, for one message size."""

    AS_GOOD = "as good"
    LOSES = "loses"
    LOSES_BADLY = "loses badly"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, kw_only=True)
class Bar:
    """How large a loss is one; each as the constant of its name."""

    sure_factor: float = SURE_FACTOR
    loss_limit: float = LOSS_LIMIT
    false_alarms: float = FALSE_ALARMS


@dataclass(frozen=True, kw_only=True)
class Times:
    """All times of one message size in bytes, None for an operation without messages.

    Each in the order of measurement: those of the own choice, and of others by their id.
    """

    size: int | None
    own_us: tuple[float, ...]
    others_us: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What is known about the own choice for one message size.

    Attributes:
        size: in bytes, None for an operation without messages.
        own_us: geometric mean of the own choice's times, in us.
        best: id of the fastest sure winner, without one of the fastest algorithm; None where none
            was measured.
        best_us: its geometric mean, in us; NaN without one.
        gain: own over best: 2 means that the best takes half the time.
        at_least: what is left of the gain after the noise of the whole sweep, at least 0.
        at_most: what the gain may be for all that the noise says; inf where nothing was repeated.
        noise: standard deviation of one time, as a fraction.
        drift: last over first time of the own choice.
    """

    size: int | None
    standing: ChoiceResult
    own_us: float
    best: str | None
    best_us: float
    gain: float
    at_least: float
    at_most: float
    noise: float
    drift: float


def decide(tables: Sequence[Times], bar: Bar | None = None) -> tuple[Choice, ...]:
    """Decide about every message size of one sweep.

    Times are above zero; sizes without a time of the own choice are for the caller to refuse.
    """
    bar = bar or Bar()
    comparisons = sum(len(table.others_us) for table in tables)
    return tuple(_choice(table, bar, comparisons) for table in tables)


def _choice(table: Times, bar: Bar, comparisons: int) -> Choice:
    own_us = _mean(table.own_us)
    noise, freedom = pooled_noise([table.own_us, *table.others_us.values()])
    means = {name: _mean(times) for name, times in table.others_us.items() if times}
    rivals = {
        name: _rival(table.own_us, table.others_us[name], (noise, freedom), bar, comparisons)
        for name in sorted(means, key=means.__getitem__)
    }
    sure = [name for name, each in rivals.items() if each.is_sure]
    best = next(iter([*sure, *rivals]), None)
    found = rivals[best] if best is not None else _NOBODY
    return Choice(
        size=table.size,
        standing=found.standing,
        own_us=own_us,
        best=best,
        best_us=means[best] if best is not None else math.nan,
        gain=found.gain,
        at_least=found.at_least,
        at_most=found.at_most,
        noise=math.expm1(noise),
        drift=table.own_us[-1] / table.own_us[0],
    )


@dataclass(frozen=True, kw_only=True)
class _Rival:
    """One algorithm against the own choice; the fields as in :class:`Choice`."""

    standing: ChoiceResult
    gain: float
    at_least: float
    at_most: float

    @property
    def is_sure(self) -> bool:
        return self.standing in {ChoiceResult.LOSES, ChoiceResult.LOSES_BADLY}


_NOBODY = _Rival(standing=ChoiceResult.UNCERTAIN, gain=math.nan, at_least=0.0, at_most=math.inf)


def _rival(
    own: Sequence[float],
    others: Sequence[float],
    noise: tuple[float, int],
    bar: Bar,
    comparisons: int,
) -> _Rival:
    spread, freedom = noise
    gain = _mean(own) / _mean(others)
    error = spread * math.sqrt(1 / len(own) + 1 / len(others))
    at_least = gain / _explained(bar.false_alarms / max(comparisons, 1), freedom, error)
    at_most = gain * _explained(MISSES, freedom, error)
    apart = len(own) > 1 and len(others) > 1 and max(others) < min(own)
    standing = ChoiceResult.AS_GOOD
    if apart and at_least > 1 and gain >= bar.sure_factor:
        standing = ChoiceResult.LOSES_BADLY if gain > bar.loss_limit else ChoiceResult.LOSES
    elif at_most > bar.loss_limit:
        # A loss that could not have been seen was not looked for.
        standing = ChoiceResult.UNCERTAIN
    return _Rival(standing=standing, gain=gain, at_least=at_least, at_most=at_most)


def _explained(tail: float, freedom: int, error: float) -> float:
    """Return the ratio of two means that noise exceeds with probability ``tail``."""
    if freedom < 1:
        return math.inf
    return math.exp(min(student_quantile(tail, freedom) * error, 700.0))


def pooled_noise(series: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Return the standard deviation of one logarithm of a time, and its degrees of freedom.

    The within-group variance of a one-way analysis of variance.
    """
    squares, freedom = 0.0, 0
    for times in series:
        if len(times) < 2:
            continue
        logarithms = [math.log(each) for each in times]
        middle = fmean(logarithms)
        squares += sum((each - middle) ** 2 for each in logarithms)
        freedom += len(times) - 1
    return (math.sqrt(squares / freedom) if freedom else 0.0), freedom


def _mean(times: Sequence[float]) -> float:
    return math.exp(fmean(math.log(each) for each in times))
