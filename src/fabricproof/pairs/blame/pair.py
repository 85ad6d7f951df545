"""Pairs at fault: two nodes that are low together and good with all others.

Two low values of one pair are little evidence: chance makes them, too, in a matrix of many pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fabricproof.pairs.blame.explain import CHANCE, Explanation
from fabricproof.pairs.blame.measure import Measure
from fabricproof.pairs.matrix import Indices, Matrix

#: pairs that are blamed at most, in numbers and as a part of all: many bad pairs have one cause
_MOST_PAIRS, _MOST_PAIRS_PART = 3, 0.005

#: how often chance may make any pair of a matrix look bad for one to be blamed: what two low
#: values come to where no other value of the matrix is low
_PAIR_CHANCE = 0.003

#: The same at the rate of chance that would do it most often, whichever that is: it is what forbids
#: blame of a pair that was measured once each way among fewer than 13 nodes.  At 0.006, which let
#: eight nodes do, one in a thousand of their clean matrices blamed a pair (benchmarks/pairs.py).
_WORST_PAIR_CHANCE = 0.002

#: of the rows of a bad pair one in so many may be good, as of any other at fault (CAUGHT).  A row
#: that is good contradicts a bad way between two nodes: so looks chance, not a fault
_ROWS_PER_GOOD = 10

#: The rate of chance is estimated from one matrix.  That it is CHANCE counts as so many rows more.
_PRIOR_ROWS = 1 / CHANCE

#: the low values of a bad pair are alike, within 22 % (a logarithm); disturbances are not
ALIKE = 0.2


@dataclass(frozen=True, kw_only=True)
class BadPair:
    """Two nodes that are low together and good with all others.

    Attributes:
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
    is_free = explanation.by == -1
    low = np.flatnonzero(measure.low & is_free)
    pairs, counts = np.unique(matrix.pair_keys[low], return_counts=True)
    often, singles = pairs[counts > 1], int((counts == 1).sum())
    if not 0 < len(often) <= 10_000:
        return ()
    free = np.flatnonzero(is_free)
    own = free[np.isin(matrix.pair_keys[free], often)]
    of_own = np.searchsorted(often, matrix.pair_keys[own])
    good_within = np.bincount(of_own[~measure.low[own]], minlength=len(often))
    good = ~measure.low
    fine = np.bincount(matrix.source[good], minlength=len(matrix.nodes)) + np.bincount(
        matrix.destination[good], minlength=len(matrix.nodes)
    )
    found = []
    for number, key in enumerate(often.tolist()):
        ends = divmod(key, len(matrix.nodes))
        if (fine[list(ends)] > good_within[number]).all():
            mine = own[of_own == number]
            pair = _all_low(matrix, measure, mine, len(free), singles)
            found += [pair] if pair is not None else []
    # Counting the pairs of a large matrix takes longer than all before: most need no count.
    most = _MOST_PAIRS_PART
    if len(found) > _MOST_PAIRS and len(found) > most * len(np.unique(matrix.pair_keys[free])):
        return ()
    return tuple(found)


def _all_low(
    matrix: Matrix, measure: Measure, mine: Indices, num_free: int, singles: int
) -> BadPair | None:
    """Return the pair whose rows are ``mine``, where all of them are low, or all one way."""
    ways = [mine]
    if not matrix.both_ways[mine].any():
        ways += [mine[matrix.source[mine] == end] for end in np.unique(matrix.source[mine])]
    num_pairs = len(matrix.nodes) * (len(matrix.nodes) - 1) / 2
    first, second = divmod(int(matrix.pair_keys[mine[0]]), len(matrix.nodes))
    for way in ways:
        total, low = len(way), way[measure.low[way]]
        good, others = total - len(low), num_free - total
        if len(low) < 2 or good * _ROWS_PER_GOOD > total:
            continue
        # One way of a pair is one of twice as many that could be low.
        num = num_pairs * (1 if way is mine else 2) * math.comb(total, good)
        if (
            num * _chance_of(len(low), singles, others) <= _PAIR_CHANCE
            and num * _worst_chance_of(len(low), singles, others) <= _WORST_PAIR_CHANCE
            and np.ptp(measure.shortfall[low]) <= ALIKE
        ):
            return BadPair(
                first=first,
                second=second,
                num_measured=total,
                num_low=len(low),
                both_sides=bool(matrix.both_ways[low].any())
                or len(np.unique(matrix.source[low])) > 1,
            )
    return None
