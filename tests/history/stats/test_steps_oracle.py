"""The fast search for steps and drifts says what a slow one says that is easy to read."""

from __future__ import annotations

import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.history.stats.step_fit import places, shares
from fabricproof.history.stats.step_orders import (
    adjusted,
    in_time,
    random_orders,
    ranked,
    scaled,
    slope_statistic,
    split_statistic,
    window,
)

PRIOR_RUNS, CLIP = 4.0, 10.0

#: two orders that split alike differ by rounding
SAME = 1e-3

Row = list[float]


def _prepared(logs: Row, prior: float) -> Row:
    """Return a row on one scale: what stands in step_orders, one row at a time."""
    there = [value for value in logs if not math.isnan(value)]
    middle = statistics.median(there)
    mad = 1.4826 * statistics.median(abs(value - middle) for value in there)
    count = len(there)
    scale = math.sqrt((count * mad**2 + PRIOR_RUNS * prior**2) / (count + PRIOR_RUNS))
    clipped = [
        value if math.isnan(value) else max(min(value - middle, CLIP * scale), -CLIP * scale)
        for value in logs
    ]
    mean = sum(value for value in clipped if not math.isnan(value)) / count
    centred = [value - mean for value in clipped]
    total = sum(value**2 for value in centred if not math.isnan(value)) + PRIOR_RUNS * prior**2
    return [value / math.sqrt(total) for value in centred]


def _normal(share: float, freedom: float) -> float:
    share = min(share, 1 - 1e-6)
    return -freedom * ((8 * freedom + 1) / (8 * freedom + 3)) ** 2 * math.log1p(-share)


def _slow_step(row: Row) -> float:
    """Return the best of all splits, and of all windows, of a row in its order."""
    there = [value for value in row if not math.isnan(value)]
    found = [
        (statistics.fmean(there[:cut]) - statistics.fmean(there[cut:])) ** 2
        * cut * (len(there) - cut) / len(there)
        for cut in range(2, len(there) - 1)
    ]  # fmt: skip
    width = window(len(row))
    for middle in range(width, len(row) - width + 1) if width else ():
        early, late = (
            [value for value in side if not math.isnan(value)]
            for side in (row[middle - width : middle], row[middle : middle + width])
        )
        if len(early) >= 2 and len(late) >= 2:
            gap = statistics.fmean(early) - statistics.fmean(late)
            found.append(gap**2 * len(early) * len(late) / (len(early) + len(late)))
    return _normal(max(found), len(there) - 2 + PRIOR_RUNS)


def _slow_drift(row: Row) -> float:
    """Return Spearman's correlation with the time, as a squared normal deviate."""
    pairs = [(column, value) for column, value in enumerate(row) if not math.isnan(value)]
    times = [float(column) for column, _ in pairs]
    values = [value for _, value in pairs]
    ranks = [
        float(sum(other < value for other in values) + sum(other <= value for other in values))
        for value in values
    ]
    if len(set(ranks)) == 1:
        return 0.0
    # Ranks among the runs that a row has, against the true distances in time.
    return _normal(statistics.correlation(ranks, times) ** 2, len(values) - 2)


def _slow_p(observed: list[float], others: list[list[float]]) -> list[float]:
    """Return Westfall's and Young's step-down p, straight from its definition."""
    order = sorted(range(len(observed)), key=lambda row: -observed[row])
    p = [1.0] * len(observed)
    before = 0.0
    for place, row in enumerate(order):
        rest = order[place:]
        reached = sum(max(other[each] for each in rest) >= observed[row] - SAME for other in others)
        before = max(before, (1 + reached) / (1 + len(others)))
        p[row] = before
    return p


def _history(seed: int, rows: int, runs: int, *, gaps: bool) -> np.ndarray:
    chance = random.Random(seed)
    logs = [[chance.gauss(0, 0.02) for _ in range(runs)] for _ in range(rows)]
    for column in range(runs // 2, runs):
        logs[0][column] += 0.1
    logs[1][1] += 0.9
    for row in range(rows) if gaps else ():
        logs[row][chance.randrange(runs)] = math.nan
    return np.array(logs)


@pytest.mark.parametrize("runs", [9, 18])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", ["step", "drift"])
def test_fast_p_is_the_slow_one(runs: int, gaps: bool, kind: str) -> None:
    """Statistic and adjusted p of every row agree, with gaps and windows and without."""
    logs = _history(runs, 5, runs, gaps=gaps)
    orders = random_orders(runs, 200, 3)
    prior = np.full(5, 0.02)
    rows = scaled(logs, prior) if kind == "step" else ranked(logs)
    statistic = split_statistic(rows) if kind == "step" else slope_statistic(rows)
    slow = _slow_step if kind == "step" else _slow_drift
    plain = [_prepared(row, 0.02) if kind == "step" else row for row in logs.tolist()]
    expected = [slow(row) for row in plain]
    assert in_time(rows, statistic) == pytest.approx(expected, rel=1e-3)
    others = [[slow([row[column] for column in order]) for row in plain] for order in orders]
    found, highest = adjusted(np.array(expected), orders, statistic)
    assert highest == pytest.approx([max(each) for each in others], rel=1e-3)
    assert found == pytest.approx(_slow_p(expected, others), abs=0.006)


@given(seed=st.integers(0, 10_000), gaps=st.booleans())
@settings(max_examples=30, deadline=None)
def test_best_split_is_that_of_the_statistic(seed: int, gaps: bool) -> None:
    """Where a step is put is where the statistic that told it is largest."""
    rows = scaled(_history(seed, 3, 20, gaps=gaps), np.full(3, 0.02))
    best = in_time(rows, split_statistic(rows))
    explained = shares(rows, windows=True).max(axis=1)
    assert best == pytest.approx(
        [_normal(*pair) for pair in zip(explained, rows.freedom, strict=True)], rel=1e-3
    )
    where = places(rows)
    assert (where.earliest <= where.at).all()
    assert (where.at <= where.latest).all()
    assert (where.latest < 20).all()
