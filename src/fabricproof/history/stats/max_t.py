"""How sure the difference of each row is: step-down max-T over relabelled runs.

For a labelling with n and m runs on the sides and difference d of the means,

    t^2 = d^2 n m / (n + m) / v,   v = (d0 s0^2 + SS) / (d0 + n + m - 2)

with SS the sum of squares within the sides, and d0, s0^2 what rows of one kind lend each other:
the moderated t of Smyth 2004 ("Linear models and empirical Bayes methods for assessing differential
expression", section 6.2).  Of rows with variance s^2 on f degrees of freedom, whose true variances
lie around s0^2 as if known with d0 degrees of freedom,

    e = ln s^2 - digamma(f/2) + ln(f/2),   E e = ln s0^2 - digamma(d0/2) + ln(d0/2),
    Var e = trigamma(f/2) + trigamma(d0/2)

so both follow from the mean and the scatter of e, for every labelling by itself.  t^2 is turned
into the square of the normal deviate that is as rare, so that rows of all kinds may be held against
each other.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.stats.power import can_be_sure, digamma, trigamma, wallace
from fabricproof.history.stats.relabel import LEAST_NOISE, row_medians

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]

#: numbers held at a time, of each intermediate result
_IN_CACHE = 100_000

#: rows of a kind from which what they lend each other is estimated, for every labelling
_MOST_OF_A_KIND = 100

#: what the variances of rows of one kind are taken to differ by before any row was seen, as
#: trigamma(d0/2), that is d0 = 11; and as many rows count as much as this does
_USUAL_EXCESS, _USUAL_ROWS = 0.19, 5.0

#: a variance below this share of the typical one is taken for it: a row that prints one number ten
#: times has none
_LEAST_SHARE = 1e-3

#: half of d0 from its greatest to its least, its trigamma from the least to the greatest
_HALVES = np.exp(np.linspace(math.log(5000.0), math.log(0.25), 3000))
_EXCESSES = np.log(trigamma(_HALVES))

#: no row surer than this: whether others changed beside it is not asked
_HOPELESS = 0.2

#: equal labellings may differ by so much in their last digits
_ROUNDING = 1e-9

#: how many standard errors of itself the variance of the ratios within a kind is lowered by, with
#: as many runs on both sides and with two thirds or more on one: there a wild row on the small side
#: is taken for a change of level, so doubt is added.  Chosen by simulation (``false_alarms.py``,
#: tables ``scatter`` and ``power``); in between in proportion to (n - m) / (n + m)
_LOWERED_EVEN, _LOWERED_UNEVEN, _UNEVEN = 2.0, -0.5, 0.4

#: of rows that are lent so many degrees of freedom what all rows of a night share counts half as
#: doubt; rows that scatter alike are lent many, and it is no doubt of theirs
_HALF_DOUBT = 4.0

#: a scatter less unlike than this is not told, however sure it is
LEAST_TOLD = 1.25


@dataclass(frozen=True, kw_only=True, slots=True)
class MaxT:
    """What the relabellings say.

    Attributes:
        p: shape (rows,), adjusted.
        critical: what an undecided row must pass, as a normal deviate.
        noise: shape (rows,), moderated standard deviation within the sides, such that the error of
            the difference is noise * sqrt(1/n + 1/m).
        lent: shape (rows,), degrees of freedom that the kind of the row lends it.
        scatter: shape (rows,), how many times the second side of its kind scatters as much as the
            first, NaN where no rate of errors lets it be said.
    """

    p: Values
    critical: float
    noise: Values
    lent: Values
    scatter: Values


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sums:
    """Of each row with each labelling: d^2 n m / (n + m), SS, and the degrees of freedom."""

    between: Values
    within: Values
    freedom: Values


def _sums(x: Values, here: Values, labels: Values, least: float = 0.0) -> _Sums:
    """Return the sums; d is 0 where the numbers could be shared out in fewer ways than ``least``.

    A mirror image is no way of its own.  What cannot be sure must not hide what can.
    """
    freedom = np.maximum(here.sum(axis=1, keepdims=True) - 2.0, 0.0)
    total = (x * x).sum(axis=1, keepdims=True)
    between = (x @ labels) ** 2
    counted = labels
    is_whole = bool(here.all())
    if is_whole:  # all rows and labellings have as many
        here, counted = here[:1], labels[:, :1]
    there, second = here.sum(axis=1, keepdims=True), here @ counted
    information = second * (there - second) / np.maximum(there, 1.0)
    information[information <= 0] = np.inf
    between /= information
    within = np.maximum(total - between, 0.0)
    if least and not is_whole:
        ways = _ways(here.shape[1])[there.astype(np.int64), second.astype(np.int64)]
        between[ways < least * np.where(2 * second == there, 2.0, 1.0) - _ROUNDING] = 0.0
    return _Sums(between=between, within=within, freedom=freedom)


@functools.lru_cache
def _ways(most: int) -> Values:
    """Return the binomial coefficients up to ``most``."""
    counts = range(most + 1)
    return np.array([[float(math.comb(n, k)) for k in counts] for n in counts])


def _lent(within: Values, freedom: Values) -> tuple[Values, Values]:
    """Return s0^2 and d0 of a kind from rows with some freedom, shape (labellings,) each."""
    variance = within / freedom
    floor = _LEAST_SHARE * np.median(variance) + LEAST_NOISE**2
    half = freedom / 2.0
    e = np.log(np.maximum(variance, floor)) - digamma(half, np.log) + np.log(half)
    mean = e.mean(axis=0)
    excess = ((e - mean) ** 2).sum(axis=0) - (len(e) - 1) * trigamma(half).mean()
    excess = (excess + _USUAL_ROWS * _USUAL_EXCESS) / (len(e) - 1 + _USUAL_ROWS)
    halves = np.interp(np.log(np.maximum(excess, 1e-9)), _EXCESSES, _HALVES)
    return np.exp(mean + digamma(halves, np.log) - np.log(halves)), 2.0 * halves


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rows:
    """Rows with what their kinds lend them, shape (kinds, labellings) each."""

    x: Values
    here: Values
    kind: Whole
    scale: Values
    lent: Values

    def squared(self, labels: Values, least: float, rows: Whole | slice = slice(None)) -> Values:
        """Return the square of a normal deviate as rare as t, shape (rows, labellings)."""
        sums = _sums(self.x[rows], self.here[rows], labels, least)
        kind, num = self.kind[rows], labels.shape[1]
        scale, lent = self.scale[kind, :num], self.lent[kind, :num]
        freedom = lent + sums.freedom
        t2 = sums.between * freedom / (lent * scale + sums.within)
        return np.asarray(freedom * wallace(freedom) * np.log1p(t2 / freedom))


def _rows_of(x: Values, here: Values, kind: Whole, labels: Values) -> _Rows:
    shape = int(kind.max()) + 1, labels.shape[1]
    scale, lent = np.full(shape, LEAST_NOISE**2), np.full(shape, 4.0)
    freedom = here.sum(axis=1) - 2.0
    total = (x * x).sum(axis=1)
    for each in range(shape[0]):
        of = np.flatnonzero((kind == each) & (freedom > 0))
        if of.size:  # evenly spread by their scatter, whatever their order
            at = np.linspace(0, of.size - 1, min(of.size, _MOST_OF_A_KIND)).astype(np.int64)
            of = of[np.argsort(total[of], kind="stable")][at]
            sums = _sums(x[of], here[of], labels)
            scale[each], lent[each] = _lent(sums.within, sums.freedom)
    return _Rows(x=x, here=here, kind=kind, scale=scale, lent=lent)


def step_down(x: Values, kind: Whole, labels: Values, alpha: float, weight: float = 1.0) -> MaxT:
    """Return the adjusted p of each row: step-down max-T over whole relabelled columns.

    Westfall and Young 1993, algorithm 4.1, in the form of Ge, Dudoit and Speed 2003 ("Resampling-
    based multiple testing for microarray data analysis", box 4), twice: with the numbers as they
    are, which is exact if nothing changed in any row, and with what is left of them without the
    rows' own differences, in which rows that changed do not move the yardstick of those that did
    not.  The larger p counts.  A row counts as no further apart than with the scatter of each side
    by itself.  Rows are taken from the least sure to the surest in pieces, so memory does not grow
    with their number.

    Args:
        x: rows of :func:`fabricproof.history.stats.relabel.prepared`.
        kind: of each row, from 0; rows of a kind lend each other their scatter.
        labels: shape (runs, labellings), the real one first.
        alpha: error rate over all rows.
        weight: for how many independent runs one run counts.
    """
    here = np.isfinite(x).astype(np.float64)
    x = np.nan_to_num(x)
    real = labels[:, 0] > 0
    rows = _rows_of(x, here, kind, labels)
    sizes = int((~real).sum()), int(real.sum())
    least = 1.0 / alpha if can_be_sure(sizes, alpha) else 0.0
    pooled = rows.squared(labels[:, :1], least)[:, 0]
    sides = _sides_of(rows, labels, alpha)
    own, noise = _by_own_scatter(rows, real, sides)
    observed = weight * np.minimum(pooled, own)
    left = x.copy()
    for side in (real, ~real):
        num = here[:, side].sum(axis=1, keepdims=True)
        left[:, side] -= left[:, side].sum(axis=1, keepdims=True) / np.maximum(num, 1.0)
        left[:, side] *= here[:, side] * np.sqrt(num / np.maximum(num - 1.0, 1.0))
    order = np.argsort(observed, kind="stable")
    reached = observed[order] * (1.0 - _ROUNDING)
    num = labels.shape[1]
    nth = num - 1 - min(int(alpha * num + _ROUNDING), num - 1)
    p, critical = np.zeros(len(x)), 0.0
    for is_left in (False, True):
        if p.min() > _HOPELESS:
            break
        part = _rows_of(left, here, kind, labels) if is_left else rows
        counts, passed = np.zeros(len(x)), []
        largest = np.zeros(num)
        step = max(1, _IN_CACHE // num)
        for start in range(0, len(order), step):
            piece = slice(start, start + step)
            squared = part.squared(labels, least, order[piece])
            squared[:, 0] = np.maximum(squared[:, 0], reached[piece])
            np.maximum(squared[0], largest, out=squared[0])
            np.maximum.accumulate(squared, axis=0, out=squared)
            counts[piece] = (squared >= reached[piece, None]).sum(axis=1)
            largest = squared[-1]
            passed.append((start, float(np.partition(largest, nth)[nth])))
        sorted_p = np.maximum.accumulate((counts / num)[::-1])[::-1]
        p[order] = np.maximum(p[order], sorted_p)
        undecided = max(int((sorted_p > alpha).sum()), 1)
        critical = max(critical, [value for start, value in passed if start < undecided][-1])
    return MaxT(
        p=p,
        critical=(critical / weight) ** 0.5,
        noise=noise,
        lent=rows.lent[kind, 0],
        scatter=sides.told[kind],
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sides:
    """How the sides of each kind scatter, shape (kinds,) each.

    Attributes:
        log_ratio: logarithm of the variance of the second side over that of the first, drawn to 0
            as far as labellings show the same (James and Stein's positive part).
        doubt: variance of that logarithm from row to row, and what all rows of a night share.
        told: how many times the second side scatters as much; NaN where that is not sure.
    """

    log_ratio: Values
    doubt: Values
    told: Values


def _sides_of(rows: _Rows, labels: Values, alpha: float) -> _Sides:
    """Return how the sides of each kind scatter.

    Tails make ratios differ in labellings too, and so do nights that all rows share; neither is
    taken for a side that scatters more.  With few runs on one side tails cannot be told from a few
    rows that scatter more there, so there they add doubt.
    """
    real = labels[:, 0] > 0
    less = np.where(rows.here > 0, rows.x, np.nan)  # less the medians of the real sides
    for side in (real, ~real):
        less[:, side] -= row_medians(less[:, side])[:, None]
    less = np.nan_to_num(less)
    less -= (less.sum(axis=1) / np.maximum(rows.here.sum(axis=1), 1.0))[:, None] * rows.here
    uneven = min(abs(2.0 * real.mean() - 1.0) / _UNEVEN, 1.0)
    log_ratio, doubt, measured = np.zeros((3, len(rows.scale)))
    apart = np.zeros((2, len(rows.scale), labels.shape[1]))
    for kind in range(len(rows.scale) if labels.shape[1] > 1 else 0):
        of = np.flatnonzero(rows.kind == kind)
        at = np.linspace(0, of.size - 1, min(of.size, _MOST_OF_A_KIND)).astype(np.int64)
        of = of[np.argsort((rows.x[of] ** 2).sum(axis=1), kind="stable")][at]
        found = [_log_ratios(values[of], rows.here[of], labels) for values in (rows.x, less)]
        (means, excess, error, num), (less_means, less_excess, _, _) = found
        if not num:
            continue
        chance = max(float((less_means[1:] ** 2).mean()), 1e-12)
        tails = max(*(float(np.median(each[1:])) for each in (excess, less_excess)), 0.0)
        tails *= 1.0 - uneven
        lowered = _LOWERED_EVEN + uneven * (_LOWERED_UNEVEN - _LOWERED_EVEN)
        rest = excess[0] - tails - lowered * (error + tails) * (3.0 / num) ** 0.5
        shared = max(chance - (error + tails) / num, 0.0)
        weight = _HALF_DOUBT / (_HALF_DOUBT + rows.lent[kind, 0])
        doubt[kind] = max(rest, 0.0) + (uneven + (1.0 - uneven) * weight) * shared
        measured[kind] = means[0]
        log_ratio[kind] = means[0] * max(0.0, 1.0 - chance / max(means[0] ** 2, 1e-12))
        apart[:, kind] = np.abs([means, less_means]) / chance**0.5
        apart[1, kind, 0] = apart[0, kind, 0]
    largest = apart.max(axis=1)[:, None, :]
    p = (largest >= apart[:, :, :1] * (1 - _ROUNDING)).mean(axis=2).max(axis=0)
    ratio = np.exp(0.5 * measured)
    sure = (p <= alpha) & (np.abs(measured) >= 2.0 * math.log(LEAST_TOLD))
    return _Sides(log_ratio=log_ratio, doubt=doubt, told=np.where(sure, ratio, np.nan))


def _log_ratios(x: Values, here: Values, labels: Values) -> tuple[Values, Values, float, int]:
    """Return mean and excess of ln of the variance of the second side over the first.

    The excess is the variance from row to row beyond chance; both have shape (labellings,).  Beside
    them the variance of one by chance, and how many rows have two numbers on each of the real
    sides.
    """
    logs, errors = [], []
    known = np.ones((len(x), labels.shape[1]), dtype=np.bool_)
    for of in (1.0 - labels, labels):
        num = here @ of
        known = known & (num > 1)
        half = np.maximum(num - 1.0, 1.0) / 2.0
        squares = np.maximum((x * x) @ of - (x @ of) ** 2 / np.maximum(num, 1.0), 0.0)
        floor = _LEAST_SHARE * np.median(squares / (2.0 * half)) + LEAST_NOISE**2
        logs.append(
            np.log(np.maximum(squares / (2 * half), floor)) - digamma(half, np.log) + np.log(half)
        )
        errors.append(trigamma(half))
    rows = known.sum(axis=0)
    least = np.maximum(rows, 1)
    ratios = np.where(known, logs[1] - logs[0], 0.0)
    mean = ratios.sum(axis=0) / least
    chance = np.where(known, errors[0] + errors[1], 0.0).sum(axis=0) / least
    squares = (np.where(known, ratios - mean, 0.0) ** 2).sum(axis=0)
    excess = np.where(rows > 1, squares / np.maximum(rows - 1, 1) - chance, 0.0)
    return mean, excess, float(chance[0]), int(rows[0])


def _by_own_scatter(
    rows: _Rows, real: npt.NDArray[np.bool_], sides: _Sides
) -> tuple[Values, Values]:
    """Return the squared deviate of each row, each side with its own scatter, and its noise.

    A side's variance is estimated from its own sum of squares SS on f degrees of freedom and from
    what kind and other side say, v' on d' degrees: (d' v' + SS) / (d' + f), where d' falls with the
    doubt t^2 that both sides are alike: 1/d' = 1/(d0 + f') + t^2/2, as ln s^2 has the variance 2/d.
    """
    half = np.exp(0.5 * sides.log_ratio[rows.kind])
    doubt = sides.doubt[rows.kind]
    scale, lent = rows.scale[rows.kind, 0], rows.lent[rows.kind, 0]
    num, mean, like = [], [], []
    for side, unit in ((~real, half), (real, 1.0 / half)):
        num.append(rows.here[:, side].sum(axis=1))
        mean.append(rows.x[:, side].sum(axis=1) / np.maximum(num[-1], 1.0))
        off = (rows.x[:, side] - mean[-1][:, None]) * rows.here[:, side]
        like.append((off**2).sum(axis=1) * unit)
    free = [np.maximum(each - 1.0, 0.0) for each in num]
    parts, spread = [], []
    for at, unit in ((0, 1.0 / half), (1, half)):
        of_other = lent + free[1 - at]
        trusted = 1.0 / (1.0 / of_other + doubt / 2.0)
        usual = (lent * scale + like[1 - at]) / of_other
        degrees = trusted + free[at]
        variance = (trusted * usual + like[at]) / degrees
        parts.append(variance * unit / np.maximum(num[at], 1.0))
        spread.append(np.sqrt(2.0 / degrees))
    total = parts[0] + parts[1]
    # Satterthwaite 1946; both rest on the same numbers as far as the sides are taken for alike.
    errors = [trigamma(np.maximum(each, 1.0) / 2.0) for each in free]
    error = errors[0] + errors[1]
    first, second = (part / total * each for part, each in zip(parts, spread, strict=True))
    freedom = 2.0 / (first**2 + second**2 + 2.0 * error / (error + doubt) * first * second)
    t2 = (mean[1] - mean[0]) ** 2 / total
    squared = freedom * wallace(freedom) * np.log1p(t2 / freedom)
    compared = (num[0] > 0) & (num[1] > 0)
    per_run = 1.0 / np.maximum(num[0], 1.0) + 1.0 / np.maximum(num[1], 1.0)
    return np.where(compared, squared, 0.0), np.sqrt(total / per_run)
