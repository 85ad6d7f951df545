"""How far apart two sides of a row are, in units of its noise, for one labelling or thousands.

For a labelling with n and m runs on the sides and difference d of the means,

    t^2 = d^2 / (u v),   u = 1/(n h) + h/m,   v = (d0 s0^2 + h SS1 + SS2/h) / (d0 + n + m - 2)

with SS the sums of squares within the sides and d0, s0^2 and h (how many times the scatter of the
first side the second has) those of the kind of row: the moderated t of Smyth (2004), with a second
side that may scatter unlike the first.  Where both sides have as many runs, so that it hardly
matters, h is 1; d and u are those of least squares.

t^2 is then turned into the square of the normal deviate that is as rare, so that rows of all kinds
may be held against each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.stats import prior, unequal
from fabricproof.history.stats.power import can_be_sure, wallace
from fabricproof.history.stats.prior import Prior
from fabricproof.history.stats.relabel import ROUNDING, Labellings, Rows, information

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]

#: numbers held at a time, of each intermediate result
_IN_CACHE = 100_000

#: numbers of a kind, and its rows, from which what they lend each other is estimated
_OF_A_KIND, _LEAST_OF_A_KIND, _MOST_OF_A_KIND = 400_000, 80, 400

#: no row surer than this: whether others changed beside it is not asked
_HOPELESS = 0.2

#: d0 where no row of a kind has any scatter to estimate it from
_UNKNOWN_LENT = 4.0


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


def fit(rows: Rows, second: Values) -> Prior:
    """Return what kinds lend their rows with each labelling."""
    kinds = int(rows.kind.max()) + 1
    found = np.ones((4, kinds, second.shape[1]))
    found[2], found[3] = _UNKNOWN_LENT, np.inf
    uneven = sides_may_differ(second)
    for kind in range(kinds):
        of = np.flatnonzero(rows.kind == kind)
        found[1, kind] = rows.noise[of[0]]
        of = of[rows.freedom[of] > 0]
        if of.size:
            _fit_kind(
                rows.take(_some(of, rows.total, second.shape[1])), second, uneven, found[:, kind]
            )
    return Prior(
        ratio=found[0],
        scale=found[1],
        lent=found[2],
        wild=found[3],
        uneven=uneven,
        num=np.bincount(rows.kind, minlength=kinds).astype(np.float64),
    )


def sides_may_differ(second: Values) -> bool:
    """Tell whether it matters that one side scatters more: unlike numbers of runs on the sides."""
    return 2 * int(second[:, 0].sum()) != len(second)


def _some(of: Whole, total: Values, num_labellings: int) -> Whole:
    """Return enough rows, evenly spread by their scatter, whatever their order."""
    most = min(max(_OF_A_KIND // num_labellings, _LEAST_OF_A_KIND), _MOST_OF_A_KIND)
    if of.size <= most:
        return of
    at = ((np.arange(most) + 0.5) * of.size / most).astype(np.int64)
    chosen: Whole = of[np.argsort(total[of], kind="stable")][at]
    return chosen


def _fit_kind(rows: Rows, second: Values, uneven: bool, found: Values) -> None:
    """Put ratio, scale, lent and wild of one kind, shape (4, labellings), in place."""
    usual = float(rows.noise[0])
    freedom = rows.freedom
    if uneven:
        within, free = unequal.within_of(rows, second)
        lifted = tuple(
            prior.floored(w / np.maximum(f, 1.0), usual) * np.maximum(f, 1.0)
            for w, f in zip(within, free, strict=True)
        )
        found[0] = prior.ratio_of_sides((lifted[0], lifted[1]), free)
        total = within[0] * found[0] + within[1] / found[0]
    else:
        total = rows.total[:, None] - (rows.x @ second) ** 2 / information(rows, second)
    scatter = prior.floored(total / freedom[:, None], usual)
    found[1], found[2] = prior.scale_of_kind(scatter, freedom)
    found[3] = prior.wild_from(float(np.median(freedom)), found[2])


def squared_normal(rows: Rows, second: Values, known: Prior, least: float = 0.0) -> Values:
    """Return the square of a normal deviate as rare as t, shape (rows, labellings).

    Args:
        rows: the rows.
        second: shape (runs, labellings), 1.0 where the run is of the second side.
        known: of :func:`fit` for the same labellings.
        least: 0 for a row that could be shared out in fewer ways; see
            :func:`fabricproof.history.stats.relabel.information`.
    """
    between, within = _apart(rows, second, known, least)
    scale, lent = known.scale[rows.kind], known.lent[rows.kind]
    own = rows.freedom[:, None]
    freedom = np.minimum(lent + own, np.maximum(known.num[rows.kind][:, None] * own, 1.0))
    scale = np.broadcast_to(scale, within.shape)
    variance = lent * scale
    variance = (variance + within) / (lent + own)
    wild = (within > known.wild[rows.kind] * scale * np.maximum(own, 1.0)) & (own > 0)
    if wild.any():
        variance = np.where(wild, within / np.maximum(own, 1.0), variance)
        freedom = np.where(wild, own, freedom)
    between /= variance
    between /= freedom
    np.log1p(between, out=between)
    between *= freedom * wallace(freedom)
    return between


def _apart(rows: Rows, second: Values, known: Prior, least: float) -> tuple[Values, Values]:
    """Return d^2 / u and h SS1 + SS2 / h of each row with each labelling."""
    summed: Values = rows.x @ second
    summed *= summed
    told = information(rows, second, least)
    if not known.uneven:
        between = summed / told
        return between, np.maximum(rows.total[:, None] - between, 0.0)
    num, others = unequal.counts(rows, second)
    first, last = 1.0 / np.maximum(others, 1.0), 1.0 / np.maximum(num, 1.0)
    # Where no number is absent, all rows of a kind have these in common.
    of = known.ratio if rows.is_whole else known.ratio[rows.kind]
    shared = (of, 1.0 / of - of, first * of + last / of, told * told * (first / of + of * last))
    ratio, turned, lost, spread = (each[rows.kind] if rows.is_whole else each for each in shared)
    within = (rows.x * rows.x) @ second
    within *= turned
    within += ratio * rows.total[:, None]
    within -= summed * lost
    np.maximum(within, 0.0, out=within)
    summed /= spread
    return summed, within


def left_over(rows: Rows, real: Values) -> Rows:
    """Return the rows less their own differences between the real sides.

    Each side is widened by sqrt(n / (n - 1)), which its own mean took from it.
    """
    x = rows.x.copy()
    for of in (real > 0, real <= 0):
        num = rows.here[:, of].sum(axis=1)[:, None]
        x[:, of] -= x[:, of].sum(axis=1)[:, None] / np.maximum(num, 1.0)
        x[:, of] *= rows.here[:, of] * np.sqrt(num / np.maximum(num - 1.0, 1.0))
    return replace(rows, x=x, total=(x * x).sum(axis=1))


def step_down(rows: Rows, labels: Labellings, alpha: float) -> MaxT:
    """Return the adjusted p of each row: step-down maxT over whole relabelled columns.

    Westfall and Young 1993, algorithm 4.1, in the form of Ge, Dudoit and Speed 2003 ("Resampling-
    based multiple testing for microarray data analysis", box 4), twice: with the numbers as they
    are, which is exact if nothing changed in any row, and with what is left of them without the
    rows' own differences, in which rows that changed do not move the yardstick of those that did
    not, on sides of one scatter.  The larger p counts.  A row counts as no further apart than with
    the scatter of each side by itself (``history.stats.unequal``).  Rows are taken from the
    least sure to the surest in pieces, so memory does not grow with their number.
    """
    real = labels.second[:, :1]
    ways = least_ways(labels, alpha)
    known = fit(rows, labels.second)
    first = known.of_first()
    observed = squared_normal(rows, real, first, ways)[:, 0]
    left = left_over(rows, real[:, 0])
    sides = unequal.sides_of(rows, labels.second)
    observed = np.minimum(observed, unequal.at_most(rows, real, first, sides))
    left = unequal.levelled(left, rows, real, sides)
    scatter = unequal.told(sides, alpha)[rows.kind]
    order = np.argsort(observed, kind="stable")
    reached = observed[order] * (1.0 - ROUNDING)
    allowed = min(int(alpha * labels.num + ROUNDING), labels.num - 1)
    p = np.zeros(len(order))
    critical = 0.0
    for part in (rows, left):
        if p.min() > _HOPELESS:
            break
        lent_by = known if part is rows else fit(part, labels.second)
        counts, criticals = _count(part, labels, lent_by, ways, order, reached, allowed)
        sorted_p = np.maximum.accumulate((counts / labels.num)[::-1])[::-1]
        p[order] = np.maximum(p[order], sorted_p)
        undecided = max(int((sorted_p > alpha).sum()), 1)
        critical = max(critical, [value for start, value in criticals if start < undecided][-1])
    noise, lent = _noise_within(rows, real, first)
    return MaxT(p=p, critical=critical**0.5, noise=noise, lent=lent, scatter=scatter)


def _count(
    rows: Rows,
    labels: Labellings,
    known: Prior,
    ways: float,
    order: Whole,
    reached: Values,
    allowed: int,
) -> tuple[Whole, list[tuple[int, float]]]:
    """Return in how many labellings a row or a less sure one is as far apart as it really is.

    Beside it, for some ranks, what the surest row up to there has to pass.
    """
    counts = np.zeros(len(order), dtype=np.int64)
    largest = np.zeros(labels.num)
    criticals: list[tuple[int, float]] = []
    step = max(1, _IN_CACHE // labels.num)
    for start in range(0, len(order), step):
        piece = order[start : start + step]
        squared = squared_normal(rows.take(piece), labels.second, known, ways)
        squared[:, 0] = np.maximum(squared[:, 0], reached[start : start + step])
        np.maximum(squared[0], largest, out=squared[0])
        np.maximum.accumulate(squared, axis=0, out=squared)
        counts[start : start + step] = np.count_nonzero(
            squared >= reached[start : start + step, None], axis=1
        )
        largest = squared[-1]
        nth = labels.num - 1 - allowed
        criticals.append((start, float(np.partition(largest, nth)[nth])))
    return counts, criticals


def least_ways(labels: Labellings, alpha: float) -> float:
    """Return in how many ways a row must be shared out to be sure; 0 where no row can be."""
    real = labels.second[:, 0]
    seconds = int(real.sum())
    return 1.0 / alpha if can_be_sure((len(real) - seconds, seconds), alpha) else 0.0


def _noise_within(rows: Rows, real: Values, known: Prior) -> tuple[Values, Values]:
    """Return the standard deviation that explains the error of each row's difference.

    Were it that of both sides, the error would be what it is.  Beside it the freedom it was lent.
    """
    told = information(rows, real)[:, 0]
    _, within = _apart(rows, real, known, 0.0)
    scale, lent = known.scale[rows.kind][:, 0], known.lent[rows.kind][:, 0]
    own = rows.freedom
    wild = (within[:, 0] > known.wild[rows.kind][:, 0] * scale * np.maximum(own, 1.0)) & (own > 0)
    variance = (lent * scale + within[:, 0]) / (lent + own)
    variance = np.where(wild, within[:, 0] / np.maximum(own, 1.0), variance)
    if known.uneven:
        num = (rows.here @ real)[:, 0]
        others = rows.here.sum(axis=1) - num
        ratio = known.ratio[rows.kind][:, 0]
        both = np.isfinite(told)
        spread = 1.0 / np.maximum(others, 1.0) / ratio + ratio / np.maximum(num, 1.0)
        variance = np.where(both, variance * spread * np.where(both, told, 1.0), variance)
    return np.sqrt(variance), np.where(wild, 0.0, lent)
