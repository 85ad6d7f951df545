"""What the rows of one kind lend each other: their usual scatter, and how far it may be trusted.

Smyth 2004 ("Linear models and empirical Bayes methods for assessing differential expression",
section 6.2): of rows with scatter s^2 on f degrees of freedom, whose true scatters lie around
s0^2 as if known with d0 degrees of freedom,

    e = ln s^2 - digamma(f/2) + ln(f/2),   E e = ln s0^2 - digamma(d0/2) + ln(d0/2),
    Var e = trigamma(f/2) + trigamma(d0/2)

so d0 follows from how much more e scatters than trigamma(f/2).  Rows that scatter alike have a
large d0, and the scatter of each is then as good as known; rows that scatter unlike have a small
one.  Beside it stands how many times the second side scatters as much as the first.  Each is
found for every labelling by itself, from the scatter within its sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.stats.power import digamma, trigamma

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

#: what the scatter of rows of one kind is taken to differ by before any row was seen, as
#: trigamma(d0/2), that is d0 = 11; and as many rows count as much as this does
_USUAL_EXCESS, _USUAL_ROWS = 0.19, 5.0

#: variance of the logarithm of the sides' ratio of scatter before any row was seen: twice the
#: standard deviation is two such scatters
_USUAL_RATIO = 0.5

#: a scatter below this share of the usual variance is taken for it, in these estimates only: a row
#: that prints one number ten times has none
LEAST_SHARE = 1e-3

#: d0 is kept within these
_LEAST_LENT, _MOST_LENT = 0.5, 1e4

#: a row with more scatter than one in 200 of its kind should have stands by its own (as in Phipson
#: et al. 2016, "Robust hyperparameter estimation protects against hypervariable genes")
_WILD = 2.5758

#: below this d0 no scatter is unlikely
_LEAST_LENT_OF_WILD = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Prior:
    """What kinds of row lend their rows, shape (kinds, labellings) each.

    Attributes:
        ratio: standard deviation of the second side over that of the first.
        scale: s0^2, geometric mean of the variances of the sides.
        lent: d0, degrees of freedom with which it is known.
        wild: a row with so many times s0^2 is lent nothing.
        num: rows of the kind, shape (kinds,).
        uneven: whether the ratio may be other than 1.
    """

    ratio: Values
    scale: Values
    lent: Values
    wild: Values
    num: Values
    uneven: bool

    def of_first(self) -> Prior:
        """Return what they lend with the first labelling."""
        return replace(
            self,
            ratio=self.ratio[:, :1],
            scale=self.scale[:, :1],
            lent=self.lent[:, :1],
            wild=self.wild[:, :1],
        )


#: half of d0 from its greatest to its least, its trigamma from the least to the greatest, the bias
_HALVES = np.exp(np.linspace(math.log(_MOST_LENT / 2), math.log(_LEAST_LENT / 2), 3000))
_EXCESSES = np.log(trigamma(_HALVES))
_BIASES = digamma(_HALVES, np.log) - np.log(_HALVES)


def bias(freedom: Values) -> Values:
    """Return how far the mean of ln s^2 is from ln of the variance, f degrees of freedom."""
    half = np.asarray(freedom, dtype=np.float64) / 2.0
    found: Values = digamma(half, np.log) - np.log(half)
    return found


def ratio_of_sides(within: tuple[Values, Values], freedom: tuple[Values, Values]) -> Values:
    """Return scatter of the second side over that of the first, shape (labellings,).

    The mean of the logarithms over rows with two numbers or more on each side, drawn towards none
    where few rows tell.

    Args:
        within: sums of squares around the mean of each side, shape (rows, labellings), above 0.
        freedom: of each, 0 where a side has no scatter.
    """
    shape = within[0].shape
    known = np.broadcast_to((freedom[0] > 0) & (freedom[1] > 0), shape)
    free = [np.maximum(each, 1.0) for each in freedom]
    biases = [bias(each) for each in free]
    logs = np.log(within[1] / within[0])
    logs += np.log(free[0] / free[1]) - biases[1] + biases[0]
    error = np.broadcast_to(trigamma(free[0] / 2.0) + trigamma(free[1] / 2.0), shape)
    count = known.sum(axis=0)
    error_of = np.where(known, error, 0.0).sum(axis=0) / np.maximum(count, 1)
    mean = np.where(known, logs, 0.0).sum(axis=0) / np.maximum(count, 1)
    ratio: Values = np.exp(0.5 * mean * count / np.maximum(count + error_of / _USUAL_RATIO, 1e-9))
    return ratio


def scale_of_kind(scatter: Values, freedom: Values) -> tuple[Values, Values]:
    """Return s0^2 and d0 of a kind, shape (labellings,) each."""
    num = len(scatter)
    e = np.log(scatter) - bias(freedom)[:, None]
    mean = e.mean(axis=0)
    excess = ((e - mean) ** 2).sum(axis=0) - (num - 1) * trigamma(freedom / 2.0).mean()
    excess = (excess + _USUAL_ROWS * _USUAL_EXCESS) / (num - 1 + _USUAL_ROWS)
    at = np.log(np.maximum(excess, 1e-9))
    lent = 2.0 * np.interp(at, _EXCESSES, _HALVES)
    return np.exp(mean + np.interp(at, _EXCESSES, _BIASES)), lent


def wild_from(freedom: float, lent: Values) -> Values:
    """Return the quantile of F(f, d0) that one scatter in 200 is above (Paulson 1942)."""
    own, of_kind = 2.0 / (9.0 * freedom), 2.0 / (9.0 * np.maximum(lent, _LEAST_LENT_OF_WILD))
    a = (1.0 - of_kind) ** 2 - _WILD**2 * of_kind
    b = (1.0 - of_kind) * (1.0 - own)
    c = (1.0 - own) ** 2 - _WILD**2 * own
    known = (a > 1e-6) & (lent >= _LEAST_LENT_OF_WILD)
    root = (b + np.sqrt(np.maximum(b * b - a * c, 0.0))) / np.where(known, a, 1.0)
    return np.where(known, root**3, np.inf)


def floored(scatter: Values, usual: float) -> Values:
    """Return variances none of which is next to nothing."""
    floor: Values = np.maximum(scatter, LEAST_SHARE * usual)
    return floor
