"""How sure a change must be to be called, where somebody looks after every run.

Each look is a test of its own, and a false change at any of them is a false call.  What may be
wrong in a year is therefore shared out among its looks, most of it to the first ones, which have
few orders (alpha spending; Lan and DeMets 1983, doi:10.1093/biomet/70.3.659).  The shares add up:
the promise holds however looks depend on each other (Bonferroni), and is kept with room to spare.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabricproof.history.stats.memory import fewer_nights
from fabricproof.history.stats.step_orders import Singles, Values

#: runs before which nothing is called, runs after which each look has the same share (those that
#: trend looks at), and looks in a year
FIRST_LOOK, LAST_SHARE, YEAR = 8, 60, 365

#: runs in a row that must be further off than any before: bad nights come in twos
LEAST_AFTER = 3

#: runs at a level before something can be off it
LEAST_BEFORE = 5

#: the tail of the largest statistic of each order begins at this quantile
_TAIL_BEGINS = 0.95

#: mean excess of the square of a normal deviate far out; no tail is taken for shorter
_NORMAL_EXCESS = 2.0


def level_of_look(num_runs: int, alpha: float) -> float:
    """Return the chance of a false call that the look after run ``num_runs`` may have.

    As 1 / (n (n - 1)) up to :data:`LAST_SHARE` runs, and the same from there on: of the orders of n
    runs as few are as telling.  Adds up to ``alpha`` over the first :data:`YEAR` runs, and to about
    a half of it over each year after.
    """
    if num_runs < FIRST_LOOK:
        return 0.0
    early = 1 / (FIRST_LOOK - 1) - 1 / (LAST_SHARE - 1)
    late = (YEAR - LAST_SHARE + 1) / (LAST_SHARE * (LAST_SHARE - 1))
    share = min(num_runs, LAST_SHARE)
    return alpha / (early + late) / (share * (share - 1))


def far_out(observed: Values, highest: Singles) -> Values:
    """Return how rare each statistic is among the largest of each order, beyond what was drawn.

    An exponential tail through the largest twentieth of them (Knijnenburg et al. 2009,
    doi:10.1093/bioinformatics/btp211, with shape 0), no shorter than that of a normal deviate's
    square.  Never below the share of orders that came as far; 1 below the tail.

    Args:
        observed: of each row, NaN where it has none.
        highest: largest statistic over all rows, of each order.
    """
    ranked = np.sort(highest)
    begins = float(ranked[int(_TAIL_BEGINS * (len(ranked) - 1))])
    excess = ranked[ranked > begins] - begins
    decays = max(_NORMAL_EXCESS, float(excess.mean())) if len(excess) else _NORMAL_EXCESS
    came = 1 - np.searchsorted(ranked, observed) / len(ranked)
    tail = (1 - _TAIL_BEGINS) * np.exp(-np.maximum(observed - begins, 0) / decays)
    return np.where(observed > begins, np.maximum(tail, came), 1.0)


def alike_orders(before: int, after: int) -> float:
    """Return the share of orders that split as far apart by the very same runs."""
    return 2 / math.comb(before + after, after)


@dataclass(frozen=True, kw_only=True)
class Around:
    """How far runs were from the level that their row had at that time.

    Attributes:
        scales: scatter of each row.
        furthest: distance of the furthest run of any row, up to and with each column, in scatters.
    """

    scales: Values
    furthest: Values

    @classmethod
    def of(cls, residuals: Values, scales: Values) -> Around:
        """Return it of logarithms around their levels, NaN where absent."""
        far = np.nan_to_num(np.abs(residuals) / scales[:, None]).max(axis=0)
        return cls(scales=scales, furthest=np.maximum.accumulate(far))

    def in_a_row(
        self, row: int, at: int, before: Sequence[float], after: Sequence[float], lag: float
    ) -> float:
        """Return the chance that the newest runs of a row are all beyond any run before.

        That n of them are the furthest of all has the chance of one order in C(at + n, n), and of
        noise whose variance is finite each is r times as far as the furthest with a chance of at
        most r^-2 (as in :func:`fabricproof.history.stats.step_fit.last_run`): together r^(-2 n).
        Each n has a share of its own: a half for the least, a quarter for one more, and so on.

        Args:
            row: which.
            at: column of the first of them.
            before: logarithms of the level before.
            after: those of the newest runs.
            lag: how much one run hangs together with the next.
        """
        count, level = len(after), statistics.median(before)
        sign = math.copysign(1.0, statistics.median(after) - level)
        nearest = min(sign * (each - level) for each in after) / float(self.scales[row])
        furthest = max(float(self.furthest[at - 1]), 1e-9)
        if count < LEAST_AFTER or len(before) < LEAST_BEFORE or nearest <= furthest:
            return 1.0
        share = (count - LEAST_AFTER + 1) * math.log(2)
        beyond = 2 * count * math.log(nearest / furthest) + math.log(math.comb(at + count, count))
        return math.exp(fewer_nights(lag) * min(share - beyond, 0.0))
