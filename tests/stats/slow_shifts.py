"""The same answers as :mod:`fabricproof.stats.shifts`, slowly, from the definitions alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import fmean, median

Row = Sequence[float]


def squared_t(row: Row, second: Sequence[bool], noise: float, d0: int, ways: float = 0.0) -> float:
    """Return the moderated two-sample t squared of one row, as a normal deviate; one block."""
    first = [x for x, side in zip(row, second, strict=True) if not side and not math.isnan(x)]
    other = [x for x, side in zip(row, second, strict=True) if side and not math.isnan(x)]
    if not first or not other:
        return 0.0
    mirrored = 2 if len(first) == len(other) else 1
    if math.comb(len(first) + len(other), len(first)) / mirrored < ways - 1e-6:
        return 0.0
    within = sum((x - fmean(side)) ** 2 for side in (first, other) for x in side)
    freedom = d0 + len(first) + len(other) - 2
    variance = (d0 * noise + within) / freedom
    difference = fmean(other) - fmean(first)
    t2 = difference**2 / (variance * (1 / len(first) + 1 / len(other)))
    return freedom * ((8 * freedom + 1) / (8 * freedom + 3)) ** 2 * math.log1p(t2 / freedom)


def adjusted(
    rows: Sequence[Row], second: Sequence[bool], noises: Sequence[float], d0: int
) -> list[float]:
    """Return the step-down maxT p of each row, by all labellings."""
    runs = range(len(second))
    mirrored = 2 if 2 * sum(second) == len(second) else 1
    ways = 20.0 if math.comb(len(second), sum(second)) / mirrored >= 20 else 0.0
    every = [
        [run in chosen for run in runs] for chosen in itertools.combinations(runs, sum(second))
    ]
    table = [
        [squared_t(row, each, noise, d0, ways) for each in every]
        for row, noise in zip(rows, noises, strict=True)
    ]
    real = every.index(list(second))
    order = sorted(range(len(rows)), key=lambda row: -table[row][real])
    p, worst = [0.0] * len(rows), 0.0
    for rank, row in enumerate(order):
        rest = order[rank:]
        reached = sum(
            max(table[other][each] for other in rest) >= table[row][real] * (1 - 1e-9)
            for each in range(len(every))
        )
        worst = max(worst, reached / len(every))
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
