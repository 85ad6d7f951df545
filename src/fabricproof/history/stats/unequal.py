"""Sides of which one scatters more: how much, how sure, and what then is left of a difference.

Where nothing changed runs may be exchanged, and relabelling is exact.  Where the level stayed and
one side scatters more they may not (Behrens and Fisher's question), and large differences are
commoner than among the labellings.  So, with the real labelling only, where it costs no exactness:

- how many times the variance of the first side the second has, for each kind of row, drawn towards
  1 as far as labellings show the same (James and Stein's positive part), and by how much rows of a
  kind differ in it;
- a difference counts as no more than with the variance of each side by itself, moderated by that of
  the other side as far as they are alike (degrees of freedom as in Satterthwaite 1946);
- what is left of the rows without their differences is brought to one scatter on both sides.

By itself it is a test of scatter: of each kind the mean of the logarithms of the ratio, against the
labellings, with one rate over all kinds (maxT).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.stats import prior
from fabricproof.history.stats.power import trigamma, wallace
from fabricproof.history.stats.relabel import Rows, information, row_medians

if TYPE_CHECKING:
    import numpy.typing as npt

    from fabricproof.history.stats.prior import Prior

    Values = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]

#: numbers of a kind, and its rows, from which it is told how far ratios differ by chance
_OF_A_KIND, _LEAST_ROWS, _ROWS = 60_000, 12, 100

#: rows of a kind from which its ratio is estimated
_MOST_ROWS = 400

#: a scatter less unlike than this is not told, however sure it is
LEAST_TOLD = 1.25

#: how many standard errors of itself the variance of the ratios within a kind is lowered by, with
#: as many runs on both sides and with two thirds or more on one: there a wild row on the small side
#: is taken for a change of level, so doubt is added.  Chosen by simulation (``false_alarms.py``,
#: tables ``scatter`` and ``power``); in between in proportion to (n - m) / (n + m).
_LOWERED_EVEN, _LOWERED_UNEVEN, _UNEVEN = 2.0, -0.5, 0.4

#: of rows that are lent so many degrees of freedom the ratio of the kind, where it is known badly,
#: counts half as doubt; rows that scatter alike are lent many, and what all their nights share is
#: no doubt of theirs.  Of 1, 4 and 16 the middle one, by simulation: 4.7 % of false words at 5 v 5
#: with unlike rows became 3.4 %, and no row of table ``power`` lost more than 0.1 points
_HALF_DOUBT = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """What kinds of row show of the scatter of the sides, shape (kinds,) each.

    Attributes:
        log_ratio: logarithm of the variance of the second side over that of the first, drawn to 0.
        doubt: variance of that logarithm from row to row.
        shared: variance by chance that the kind's logarithm has beyond that of rows by themselves.
        measured: the logarithm as measured; NaN where a side has one run.
        p: of "both sides of the kind scatter alike", adjusted over the kinds.
    """

    log_ratio: Values
    doubt: Values
    shared: Values
    measured: Values
    p: Values


def told(sides: Sides, alpha: float) -> Values:
    """Return how many times the second side of each kind scatters as much; NaN where not sure."""
    ratio = np.exp(0.5 * sides.measured)
    sure = (sides.p <= alpha) & (np.abs(sides.measured) >= 2.0 * np.log(LEAST_TOLD))
    return np.where(sure, ratio, np.nan)


def within_of(rows: Rows, second: Values) -> tuple[tuple[Values, Values], tuple[Values, Values]]:
    """Return sums of squares around the mean of each side, and their degrees of freedom.

    Its numbers sum to 0.
    """
    num, others = counts(rows, second)
    summed = (rows.x @ second) ** 2
    squares = (rows.x * rows.x) @ second
    first = rows.total[:, None] - squares - summed / np.maximum(others, 1.0)
    last = squares - summed / np.maximum(num, 1.0)
    within = np.maximum(first, 0.0), np.maximum(last, 0.0)
    return within, (np.maximum(others - 1.0, 0.0), np.maximum(num - 1.0, 0.0))


def counts(rows: Rows, second: Values) -> tuple[Values, Values]:
    """Return how many numbers a row has on the second and on the first side.

    One row and one column where no number is absent.
    """
    whole = rows.is_whole
    here = rows.here[:1] if whole else rows.here
    num = here @ (second[:, :1] if whole else second)
    return num, here.sum(axis=1)[:, None] - num


def sides_of(rows: Rows, second: Values) -> Sides:
    """Return how the sides scatter."""
    kinds = int(rows.kind.max()) + 1
    found = np.zeros((3, kinds))
    measured = np.full(kinds, np.nan)
    rows_by_lot = min(max(_OF_A_KIND // second.shape[1], _LEAST_ROWS), _ROWS)
    uneven = min(abs(2.0 * float(second[:, 0].sum()) / len(second) - 1.0) / _UNEVEN, 1.0)
    apart = np.zeros((2, kinds, second.shape[1]))
    order = np.lexsort((rows.total, rows.kind))
    ends = np.searchsorted(rows.kind[order], np.arange(kinds + 1))
    for kind in range(kinds):
        of = order[ends[kind] : ends[kind + 1]]
        spread, _, count = _means(rows.take(_evenly(of, _MOST_ROWS)), second[:, :1])
        if not count or second.shape[1] < 2:
            continue
        few = rows.take(_evenly(of, rows_by_lot))
        raw, error, _ = _means(few, second)
        by_lot = np.array([raw, _means(_less_medians(few, second[:, 0]), second)[0]])
        measured[kind] = spread[0, 0]
        sizes = len(few.x), count
        found[:, kind], chance = _shrunk(spread[:, 0], by_lot[:, :, 1:], error, sizes, uneven)
        apart[:, kind] = np.abs(by_lot[:, 0]) / chance
        apart[:, kind, 0] = abs(measured[kind]) / chance
    return Sides(
        log_ratio=found[0], doubt=found[1], shared=found[2], measured=measured, p=_max_t(apart)
    )


def _less_medians(rows: Rows, real: Values) -> Rows:
    """Return rows less the medians of their real sides, and of mean 0.

    Not the means: those spread the share of a wild run over its side, and tails would look short.
    """
    x = np.where(rows.here > 0, rows.x, np.nan)
    for of in (real > 0, real <= 0):
        x[:, of] -= row_medians(x[:, of])[:, None]
    x = np.where(rows.here > 0, x, 0.0)
    mean = x.sum(axis=1) / np.maximum(rows.here.sum(axis=1), 1.0)
    x = (x - mean[:, None]) * rows.here
    return replace(rows, x=x, total=(x * x).sum(axis=1))


def _shrunk(
    real: Values, by_lot: Values, error: float, sizes: tuple[int, int], uneven: float
) -> tuple[tuple[float, float, float], float]:
    """Return log ratio, doubt and what is shared, and how far the mean is from 0 by chance.

    Tails make ratios differ in labellings too, and so do nights that all rows share; neither
    is taken for a side that scatters more.  With few runs on one side tails cannot be told from
    a few rows that scatter more there, so there they add doubt.

    Args:
        real: mean and excess of the real labelling.
        by_lot: of the others, the numbers as they are and less the medians of their real sides,
            shape (2, 2, labellings).
        error: variance of one ratio where the noise is normal.
        sizes: rows that ``by_lot`` is of, and those that ``real`` is of.
        uneven: 0 with as many runs on both sides, 1 with two thirds on one.
    """
    chance = max(float((by_lot[1, 0] ** 2).mean()), 1e-12)
    tails = max(float(np.median(by_lot[:, 1], axis=1).max()), 0.0) * (1.0 - uneven)
    mean, excess = real.tolist()
    lowered = _LOWERED_EVEN + uneven * (_LOWERED_UNEVEN - _LOWERED_EVEN)
    doubt = max(excess - tails - lowered * (error + tails) * (3.0 / sizes[1]) ** 0.5, 0.0)
    shared = max(chance - (error + tails) / sizes[0], 0.0)
    drawn = mean * max(0.0, 1.0 - chance / max(mean * mean, 1e-12))
    return (drawn, doubt + uneven * shared, (1.0 - uneven) * shared), chance**0.5


def _evenly(of: Whole, most: int) -> Whole:
    """Return at most so many of the rows, evenly spread."""
    if len(of) <= most:
        return of
    chosen: Whole = of[((np.arange(most) + 0.5) * len(of) / most).astype(np.int64)]
    return chosen


def _max_t(apart: Values) -> Values:
    """Return the p of each kind: the larger with the numbers as they are, and with what is left."""
    largest = apart.max(axis=1)
    p = (largest[:, None, :] >= apart[:, :, :1] * (1 - 1e-9)).mean(axis=2)
    found: Values = p.max(axis=0)
    return found


def log_ratios(rows: Rows, second: Values) -> tuple[Values, Values, Values]:
    """Return ln of the variance of the second side over the first, its error, and if it is known.

    Without bias where the noise is normal (Smyth 2004, section 6.2).
    """
    within, freedom = within_of(rows, second)
    free = [np.maximum(each, 1.0) for each in freedom]
    logs = [
        np.log(np.maximum(w / f, prior.LEAST_SHARE * rows.noise[:, None])) - prior.bias(f)
        for w, f in zip(within, free, strict=True)
    ]
    error = trigamma(free[0] / 2.0) + trigamma(free[1] / 2.0)
    known = (freedom[0] > 0) & (freedom[1] > 0)
    shape = logs[0].shape
    return logs[1] - logs[0], np.broadcast_to(error, shape), np.broadcast_to(known, shape)


def _means(rows: Rows, second: Values) -> tuple[Values, float, int]:
    """Return mean of the log ratios and the variance beyond chance, shape (2, labellings).

    Beside it the variance of one by chance, and how many rows are known, both of the real sides.
    """
    logs, error, known = log_ratios(rows, second)
    num = known.sum(axis=0)
    least = np.maximum(num, 1)
    mean = np.where(known, logs, 0.0).sum(axis=0) / least
    chance = np.where(known, error, 0.0).sum(axis=0) / least
    squares = (np.where(known, logs - mean, 0.0) ** 2).sum(axis=0)
    excess = np.where(num > 1, squares / np.maximum(num - 1, 1) - chance, 0.0)
    return np.array([mean, excess]), float(chance[0]), int(num[0])


def at_most(rows: Rows, real: Values, known: Prior, sides: Sides) -> Values:
    """Return the squared normal deviate of each row, each side with its own scatter.

    A side's variance is estimated from its own sum of squares SS on f degrees of freedom and from
    what kind and other side say, v' on d' degrees: (d' v' + SS) / (d' + f), where d' falls with the
    doubt t^2 that both sides are alike: 1/d' = 1/(d0 + f') + t^2/2, as ln s^2 has the variance 2/d.
    """
    within, freedom = within_of(rows, real)
    num, others = (np.maximum(each[:, 0], 1.0) for each in counts(rows, real))
    half = np.exp(0.5 * sides.log_ratio[rows.kind])
    weight = _HALF_DOUBT / (_HALF_DOUBT + known.lent[:, 0])
    doubt = (sides.doubt + weight * sides.shared)[rows.kind]
    like = within[0][:, 0] * half, within[1][:, 0] / half
    free = tuple(np.broadcast_to(each[:, 0], half.shape) for each in freedom)
    scale, lent, wild = (each[rows.kind, 0] for each in (known.scale, known.lent, known.wild))
    own = np.maximum(rows.freedom, 1.0)
    lent = np.where((like[0] + like[1] > wild * scale * own) & (rows.freedom > 0), 1e-6, lent)
    parts, degrees = [], []
    for side, count, unit in ((0, others, 1.0 / half), (1, num, half)):
        of_other = lent + free[1 - side]
        usual = (lent * scale + like[1 - side]) / of_other
        trusted = 1.0 / (1.0 / of_other + doubt / 2.0)
        degrees.append(trusted + free[side])
        parts.append((trusted * usual + like[side]) / degrees[-1] * unit / count)
    return _deviate(rows, real, (parts[0], parts[1]), _freedom(parts, degrees, free, doubt), known)


def _freedom(
    parts: list[Values], degrees: list[Values], free: tuple[Values, ...], doubt: Values
) -> Values:
    """Return Satterthwaite's degrees of freedom of the sum of two variances.

    Both rest on the same numbers as far as the sides are taken for alike.
    """
    error = sum(trigamma(np.maximum(each, 1.0) / 2.0) for each in free)
    alike = error / (error + doubt)
    total = parts[0] + parts[1]
    spread = [each / total * np.sqrt(2.0 / d) for each, d in zip(parts, degrees, strict=True)]
    found: Values = 2.0 / (spread[0] ** 2 + spread[1] ** 2 + 2.0 * alike * spread[0] * spread[1])
    return found


def _deviate(
    rows: Rows, real: Values, parts: tuple[Values, Values], freedom: Values, known: Prior
) -> Values:
    """Return t^2 as the square of the normal deviate that is as rare."""
    own = rows.freedom
    freedom = np.minimum(freedom, np.maximum(known.num[rows.kind] * own, 1.0))
    difference = (rows.x @ real)[:, 0] / information(rows, real)[:, 0]
    t2 = difference**2 / (parts[0] + parts[1])
    found: Values = freedom * wallace(freedom) * np.log1p(t2 / freedom)
    return found


def levelled(left: Rows, rows: Rows, real: Values, sides: Sides) -> Rows:
    """Return what is left of the rows, with one scatter on both sides."""
    ratio, doubt = sides.log_ratio[rows.kind], sides.doubt[rows.kind]
    if not ratio.any() and not doubt.any():
        return left
    logs, error, known = (each[:, 0] for each in log_ratios(rows, real))
    ratio = ratio + np.where(known, doubt / (doubt + error) * (logs - ratio), 0.0)
    root = np.exp(0.25 * ratio)[:, None]
    x = np.where(real[:, 0] > 0, left.x / root, left.x * root)
    return replace(left, x=x, total=(x * x).sum(axis=1))
