"""Pairs at fault: two nodes that are low together and good with all others.

Two low values of one pair are little evidence: chance makes them, too, in a matrix of many pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabricproof.pairs.blame.explain import CHANCE, Explanation
from fabricproof.pairs.blame.measure import Measure
from fabricproof.pairs.matrix import Matrix

#: pairs that are blamed at most, in numbers and as a part of all: many bad pairs have one cause
_MOST_PAIRS, _MOST_PAIRS_PART = 3, 0.005

#: how often chance may make any pair of a matrix look bad for one to be blamed: what two low
#: values come to where no other value of the matrix is low
_PAIR_CHANCE = 0.003

#: The same at the rate of chance that would do it most often, whichever that is: it is what forbids
#: blame of a pair that was measured once each way among fewer than eight nodes.
_WORST_PAIR_CHANCE = 0.006

#: of the rows of a bad pair one in so many may be good, as of any other at fault (CAUGHT).  A row
#: that is good contradicts a bad way between two nodes: so looks chance, not a fault
_ROWS_PER_GOOD = 10

#: The rate of chance is estimated from one matrix.  That it is CHANCE counts as so many rows more.
_PRIOR_ROWS = 1 / CHANCE

#: the low values of a bad pair are alike, within 22 % (a logarithm); disturbances are not
_ALIKE = 0.2

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class BadPair:
    """Two nodes that are low together and good with all others.

    Attributes:
        first: number of a node.
        second: number of the other.
        num_measured: rows of the two.
        num_low: of these, low ones.
        both_sides: whether rows of both directions are low, or of rows that name none.
    """

    first: int
    second: int
    num_measured: int
    num_low: int
    both_sides: bool


def _chance_of(count: int, singles: int, num_rows: int) -> float:
    """Return how likely chance makes all of ``count`` rows low.

    The rate is not known: of ``num_rows`` others ``singles`` are low.  Averaged over all rates that
    fit (Gamma, the conjugate prior of a Poisson rate) it is more than the best guess to the power.
    """
    return math.prod((singles + 1 + row) / (num_rows + _PRIOR_ROWS) for row in range(count))


def _worst_chance_of(count: int, singles: int, num_rows: int) -> float:
    """Return how often chance makes ``count`` rows low, and as few others as are, at most.

    At most over all rates: where the rate is that of all rows together.
    """
    low, good = count + singles, num_rows - singles
    rate = low / (count + num_rows)
    log_ways = math.lgamma(num_rows + 1) - math.lgamma(singles + 1) - math.lgamma(good + 1)
    return math.exp(log_ways + low * math.log(rate) + (good * math.log1p(-rate) if good else 0.0))


def bad_pairs(matrix: Matrix, measure: Measure, explanation: Explanation) -> tuple[BadPair, ...]:
    """Return the pairs of which all is low, and that more often than chance would let any be."""
    rows = np.flatnonzero(measure.low & (explanation.by == -1))
    if not len(rows):
        return ()
    num = len(matrix.nodes)

    def keys(chosen: Rows) -> Rows:
        first, second = matrix.source[chosen], matrix.destination[chosen]
        low = np.minimum(first, second).astype(np.int64)
        return low * num + np.maximum(first, second)

    pairs, counts = np.unique(keys(rows), return_counts=True)
    often = pairs[counts > 1]
    singles = int((counts == 1).sum())
    if not len(often) or len(often) > 10_000:
        return ()
    free = np.flatnonzero(explanation.by == -1)
    own = free[np.isin(keys(free), often)]
    of_own = np.searchsorted(often, keys(own))
    measured = np.bincount(of_own, minlength=len(often))
    low = np.bincount(of_own, weights=measure.low[own], minlength=len(often))
    num_pairs = num * (num - 1) / 2
    found = []
    for number in np.flatnonzero(low >= 2).tolist():
        total, count = int(measured[number]), int(low[number])
        good = total - count
        ways, others = num_pairs * math.comb(total, good), len(free) - total
        chance = ways * _chance_of(count, singles, others)
        worst = ways * _worst_chance_of(count, singles, others)
        if good * _ROWS_PER_GOOD > total or chance > _PAIR_CHANCE or worst > _WORST_PAIR_CHANCE:
            continue
        first, second = divmod(int(often[number]), num)
        mine = own[(of_own == number) & measure.low[own]]
        if np.ptp(measure.shortfall[mine]) > _ALIKE:
            continue
        both = bool(matrix.both_ways[mine].any()) or len(np.unique(matrix.source[mine])) > 1
        found.append(
            BadPair(first=first, second=second, num_measured=total, num_low=count, both_sides=both)
        )
    if len(found) > max(_MOST_PAIRS, _MOST_PAIRS_PART * len(np.unique(keys(free)))):
        return ()
    return tuple(found)
