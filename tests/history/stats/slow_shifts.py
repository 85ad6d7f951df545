"""The same answers as ``history.stats.shifts``, slowly, from the definitions alone."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from statistics import fmean, median

import numpy as np

from fabricproof.history.stats import prior

Row = Sequence[float]


def sides(row: Row, second: Sequence[bool]) -> tuple[list[float], list[float]]:
    """Return the numbers of a row on each side."""
    both = [
        [x for x, side in zip(row, second, strict=True) if side is which and not math.isnan(x)]
        for which in (False, True)
    ]
    return both[0], both[1]


def sum_within(side: Row) -> float:
    """Return the sum of squares around the mean."""
    return sum((x - fmean(side)) ** 2 for x in side) if side else 0.0


@functools.lru_cache(maxsize=100_000)
def polygamma(order: int, x: float) -> float:
    """Return digamma (0) or trigamma (1) by its series' first terms and their integral."""
    up = range(60)
    far = x + 60
    if order:
        return sum((x + k) ** -2 for k in up) + 1 / far + 0.5 / far**2 + 1 / (6 * far**3)
    return math.log(far) - 0.5 / far - 1 / (12 * far**2) - sum(1 / (x + k) for k in up)


def bias(freedom: float) -> float:
    """Return how far the mean of ln s^2 is from the logarithm of the variance."""
    return polygamma(0, freedom / 2) - math.log(freedom / 2)


@functools.lru_cache(maxsize=100_000)
def lent_by(
    rows: tuple[tuple[float, ...], ...], second: tuple[bool, ...], usual: float, uneven: bool
) -> tuple[float, ...]:
    """Return h, s0^2, d0 and the median of f of one kind; Smyth 2004, section 6.2."""
    split = [sides(row, second) for row in rows]
    logs, errors, spread, free = [], [], [], []
    for first, other in split:
        f1, f2 = len(first) - 1, len(other) - 1
        if f1 > 0 and f2 > 0:
            s1, s2 = (max(sum_within(x) / f, usual / 1000) for x, f in ((first, f1), (other, f2)))
            logs.append(math.log(s2) - bias(f2) - math.log(s1) + bias(f1))
            errors.append(polygamma(1, f1 / 2) + polygamma(1, f2 / 2))
    ratio = 1.0
    if logs and uneven:
        ratio = math.exp(fmean(logs) / 2 * len(logs) / (len(logs) + fmean(errors) / 0.5))
    for first, other in split:
        f = len(first) + len(other) - 2
        if f > 0:
            within = ratio * sum_within(first) + sum_within(other) / ratio
            spread.append(math.log(max(within / f, usual / 1000)) - bias(f))
            free.append(f)
    if not spread:
        return ratio, usual, 4.0, 0.0
    excess = sum((e - fmean(spread)) ** 2 for e in spread)
    excess -= (len(spread) - 1) * fmean(polygamma(1, f / 2) for f in free)
    excess = max((excess + 5 * 0.19) / (len(spread) + 4), 1e-9)
    low, high = 0.25, 5000.0
    for _ in range(45):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if polygamma(1, middle) > excess else (low, middle)
    scale = math.exp(fmean(spread) + bias(2 * low))
    return ratio, scale, 2 * low, median(free)


def squared_normal(
    row: Row, second: Sequence[bool], lent: tuple[float, ...], num: int, ways: float = 0.0
) -> float:
    """Return the moderated t squared of one row, as a normal deviate; one block."""
    first, other = sides(row, second)
    if not first or not other:
        return 0.0
    mirrored = 2 if len(first) == len(other) else 1
    if math.comb(len(first) + len(other), len(first)) / mirrored < ways - 1e-6:
        return 0.0
    ratio, scale, d0, usual = lent
    f = len(first) + len(other) - 2
    within = ratio * sum_within(first) + sum_within(other) / ratio
    variance, freedom = (d0 * scale + within) / (d0 + f), min(d0 + f, max(num * f, 1))
    if f and usual and within > float(prior.wild_from(usual, np.array(d0))) * scale * f:
        variance, freedom = within / f, f
    u = 1 / len(first) / ratio + ratio / len(other)
    t2 = (fmean(other) - fmean(first)) ** 2 / (variance * u)
    wallace = ((8 * freedom + 1) / (8 * freedom + 3)) ** 2
    return freedom * wallace * math.log1p(t2 / freedom)


def adjusted(
    rows: Sequence[Row], second: Sequence[bool], noises: Sequence[float], kinds: Sequence[int]
) -> list[float]:
    """Return the larger of two step-down maxT p of each row, by all labellings."""
    runs = range(len(second))
    mirrored = 2 if 2 * sum(second) == len(second) else 1
    ways = 20.0 if math.comb(len(second), sum(second)) / mirrored >= 20 else 0.0
    every = [
        [run in chosen for run in runs] for chosen in itertools.combinations(runs, sum(second))
    ]
    real = every.index(list(second))
    table = [column(rows, each, noises, kinds, ways) for each in every]
    left = [without_difference(row, second) for row in rows]
    again = [column(left, each, noises, kinds, ways) for each in every]
    again[real] = table[real]
    plain = stepped_down(table, real)
    if min(plain) > 0.2:
        return plain
    both = [plain, stepped_down(again, real)]
    return [max(each) for each in zip(*both, strict=True)]


def without_difference(row: Row, second: Sequence[bool]) -> Row:
    """Return a row less the mean of each side, widened by what the mean took."""
    both = sides(row, second)
    means = [fmean(side) if side else 0.0 for side in both]
    wider = [math.sqrt(len(side) / (len(side) - 1)) if len(side) > 1 else 1.0 for side in both]
    return [(x - means[side]) * wider[side] for x, side in zip(row, second, strict=True)]


def column(
    rows: Sequence[Row],
    second: Sequence[bool],
    noises: Sequence[float],
    kinds: Sequence[int],
    ways: float,
) -> list[float]:
    """Return the statistic of each row for one labelling."""
    found = []
    uneven = 2 * sum(second) != len(second)
    for row, kind in zip(rows, kinds, strict=True):
        like = tuple(tuple(each) for each, of in zip(rows, kinds, strict=True) if of == kind)
        lent = lent_by(like, tuple(second), noises[kinds.index(kind)], uneven)
        found.append(squared_normal(row, second, lent, len(like), ways))
    return found


def stepped_down(table: Sequence[Sequence[float]], real: int) -> list[float]:
    """Return Westfall and Young's p of each row; the table is by labelling, then by row."""
    order = sorted(range(len(table[real])), key=lambda row: -table[real][row])
    p, worst = [0.0] * len(order), 0.0
    for rank, row in enumerate(order):
        rest = order[rank:]
        reached = sum(
            max(each[other] for other in rest) >= table[real][row] * (1 - 1e-9) for each in table
        )
        worst = max(worst, reached / len(table))
        p[row] = worst
    return p


def qn(row: Row) -> float:
    """Return Rousseeuw and Croux's Qn without its small-sample factor."""
    known = [x for x in row if not math.isnan(x)]
    half = len(known) // 2 + 1
    pairs = sorted(abs(a - b) for a, b in itertools.combinations(known, 2))
    return 2.2219 * pairs[half * (half - 1) // 2 - 1]


def hodges_lehmann(first: Row, second: Row) -> float:
    """Return the median ratio of pairs, on the logarithm."""
    return math.exp(median(math.log(b) - math.log(a) for a in first for b in second))


def probability_of_u(first: int, second: int) -> list[float]:
    """Return the distribution of Mann and Whitney's U, by all orders of the runs."""
    total = math.comb(first + second, second)
    counts = [0] * (first * second + 1)
    for places in itertools.combinations(range(first + second), second):
        counts[sum(place - rank for rank, place in enumerate(places))] += 1
    return [each / total for each in counts]
