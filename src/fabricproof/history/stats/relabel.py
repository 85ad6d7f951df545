"""Rows of numbers made ready to be relabelled, and the other ways to call runs first or second.

If nothing changed between the sides, which run is on which side says nothing of its numbers, and
every way to share the runs out was as likely as the one that happened.

Of a row, x = ln(value) less its median; what is far out is drawn in, and the mean is taken off.
How far is far out must not depend on the labels: it goes by Qn (Rousseeuw and Croux 1993,
"Alternatives to the median absolute deviation"), a quantile of the differences of all pairs of
runs.  As long as a quarter of all pairs are of one side it stays bounded whatever the change.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.stats.power import number_of_labellings

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

#: no noise is below one in a million: numbers are printed with fewer digits than that
LEAST_NOISE = 1e-6

#: numbers further than so many scatters from the middle of their row are drawn in
_FAR_OUT = 4.0

#: numbers held at a time, of each intermediate result
_CELLS = 1_000_000

#: 1 / (sqrt(2) * the 5/8 quantile of the normal distribution), Rousseeuw and Croux 1993
_QN_NORMAL = 2.2219

#: more numbers than these say no more of a scatter, and their pairs would fill the memory
_QUANTILES = 64

#: Qn is too large in small samples by this factor; Croux and Rousseeuw 1992, "Time-efficient
#: algorithms for two highly robust estimators of scale"; from 10 numbers on n / (n + 1.4), odd n,
#: or n / (n + 3.8)
_QN_SMALL = (1, 1, 0.399, 0.994, 0.512, 0.844, 0.611, 0.857, 0.669, 0.872)

#: with so many labellings or fewer all are tried; else one less than this are drawn, and the real
#: one is counted among them (Phipson and Smyth 2010, "Permutation p-values should never be zero")
MOST = 5000

#: numbers beyond which fewer are drawn: 1000 tell a p of 5 % to within 0.7 %
_MANY, _FEW_DRAWN = 1_000_000, 1000


def prepared(values: Values, kinds: Whole) -> Values:
    """Return x of each row, NaN where there is no number.

    What is far out is drawn in by a logarithm, so that one wild run does not hide the others.  The
    order of the numbers stays, and no label is looked at, so no error rate depends on it.
    """
    x = np.log(values)
    x -= row_medians(x)[:, None]
    scale = qn(x)
    usual = np.full(len(x), LEAST_NOISE)
    for kind in np.unique(kinds):
        known = scale[(kinds == kind) & np.isfinite(scale)]
        if known.size:
            usual[kinds == kind] = max(float(np.median(known)), LEAST_NOISE)
    scale = np.fmax(scale, usual)[:, None]
    far = np.nan_to_num(np.abs(x) / scale)
    drawn = np.sign(x) * scale * (_FAR_OUT + np.log1p(np.maximum(far - _FAR_OUT, 0.0)))
    x = np.where(far > _FAR_OUT, drawn, x)
    here = np.isfinite(x)
    mean = np.where(here, x, 0.0).sum(axis=1) / np.maximum(here.sum(axis=1), 1)
    return np.asarray(x - mean[:, None])


def row_medians(x: Values) -> Values:
    """Return the median of each row, NaN where absent and where there is none."""
    if not x.shape[1]:
        return np.full(len(x), np.nan)
    count = np.isfinite(x).sum(axis=1)
    ordered = np.sort(x, axis=1)
    rows = np.arange(len(x))
    low = ordered[rows, np.maximum(count - 1, 0) // 2]
    return np.asarray(low + ordered[rows, np.minimum(count // 2, x.shape[1] - 1)]) / 2.0


def qn(x: Values) -> Values:
    """Return the scatter of each row by the differences of all its pairs; NaN below 2 numbers.

    Of a row with more than :data:`_QUANTILES` numbers, by those of as many of its quantiles.
    """
    if x.shape[1] > _QUANTILES:
        count = np.isfinite(x).sum(axis=1)[:, None]
        steps = np.arange(_QUANTILES)
        at = np.where(count > _QUANTILES, (steps + 0.5) * count / _QUANTILES, steps)
        x = np.take_along_axis(np.sort(x, axis=1), at.astype(np.int64), axis=1)
    first, second = np.triu_indices(x.shape[1], 1)
    count = np.isfinite(x).sum(axis=1)
    half = count // 2 + 1
    rank = np.maximum(half * (half - 1) // 2 - 1, 0)
    scale = np.full(len(x), np.nan)
    if not first.size:
        return scale
    step = max(1, _CELLS // first.size)
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        pairs = np.sort(np.abs(x[part][:, first] - x[part][:, second]), axis=1)
        scale[part] = np.take_along_axis(pairs, rank[part][:, None], axis=1)[:, 0]
    many = np.maximum(count, 10)
    small = np.array(_QN_SMALL)[np.minimum(count, 9)]
    factor = np.where(count < 10, small, many / (many + np.where(many % 2, 1.4, 3.8)))
    return np.where(count >= 2, scale * _QN_NORMAL * factor, np.nan)


def labellings(values: Values, is_second: Flags, seed: int) -> Values:
    """Return ways to share the runs out, the real one first: all, or a draw of them.

    A draw goes by the runs in the order of their numbers, not of their columns: with the same
    seed the same runs in another order, or with the sides swapped, give the same answer.

    Args:
        values: shape (rows, runs), for that order only.
        is_second: shape (runs,).
        seed: of the draw.

    Returns:
        Shape (runs, labellings), 1.0 where the run is of the second side.
    """
    # Positive floats and their bytes sort alike; no order of rows counts.
    columns = np.sort(np.nan_to_num(values.T, nan=0.0), axis=1).astype(">f8")
    order = np.array(sorted(range(len(columns)), key=lambda run: columns[run].tobytes()), dtype=int)
    runs, second = is_second.size, int(is_second.sum())
    real = is_second.astype(np.float64)
    if number_of_labellings((runs - second, second)) <= MOST:
        found = np.zeros((number_of_labellings((runs - second, second)), runs))
        for label, chosen in zip(found, itertools.combinations(order, second), strict=True):
            label[list(chosen)] = 1.0
        found = found[(found != real).any(axis=1)]
    else:
        # Draw the smaller side, so that swapped sides get complements of the same.
        small = min(second, runs - second)
        is_flipped = not is_second[order[0]] if second * 2 == runs else second != small
        found = np.zeros(((MOST if values.size <= _MANY else _FEW_DRAWN) - 1, runs))
        random = np.random.default_rng(seed)
        for label in found:
            label[order[random.permutation(runs)[:small]]] = 1.0
        if is_flipped:
            found = 1.0 - found
    return np.vstack([real[None, :], found]).T.copy()


def kinds_of(classes: Sequence[int]) -> Whole:
    """Return the number of the kind of each row, from 0."""
    return np.unique(np.asarray(classes), return_inverse=True)[1].reshape(-1).astype(np.int64)
