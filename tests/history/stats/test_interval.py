"""Estimate and interval by pairs: the exact distribution, the ends, the coverage."""

from __future__ import annotations

import itertools
import math
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.history.stats import interval


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 5), (3, 3), (4, 2), (5, 5), (3, 6)])
def test_the_distribution_is_that_of_all_orders(first: int, second: int) -> None:
    """Recursion against enumeration."""
    counts = [0] * (first * second + 1)
    for places in itertools.combinations(range(first + second), second):
        counts[sum(place - rank for rank, place in enumerate(places))] += 1
    total = math.comb(first + second, second)
    found = interval.null_distribution((first, second))
    assert found == pytest.approx([each / total for each in counts])


@settings(deadline=None, max_examples=25)
@given(st.tuples(st.integers(1, 24), st.integers(1, 24)))
def test_the_distribution_is_one_and_symmetric(sizes: tuple[int, int]) -> None:
    """Whatever the sizes."""
    found = interval.null_distribution(sizes)
    assert len(found) == 1 + sizes[0] * sizes[1]
    assert sum(found) == pytest.approx(1.0)
    assert found == pytest.approx(found[::-1])


@pytest.mark.parametrize(
    ("sizes", "kept", "level"),
    [
        ((2, 2), 0, math.nan),
        ((3, 3), 1, 0.9),
        ((4, 4), 1, 0.95),
        ((5, 5), 3, 0.95),
        ((10, 10), 24, 0.95),
        ((1, 18), 0, math.nan),
        ((1, 19), 1, 0.9),
        ((1, 30), 1, 1 - 2 / 31),
        ((1, 39), 1, 0.95),
    ],
)
def test_the_ends_are_those_of_the_tables(sizes: interval.Sizes, kept: int, level: float) -> None:
    """Critical values of U at 5 % two-sided: 2 at 5 v 5, 23 at 10 v 10 (Mann and Whitney 1947)."""
    found = interval.ends(sizes, 0.95, 0.9)
    assert found == (kept, pytest.approx(level, nan_ok=True))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 6))
def test_the_estimate_is_the_median_of_all_pairs(seed: int, first: int, second: int) -> None:
    """Of a row with holes, only its numbers count."""
    values = np.exp(np.random.default_rng(seed).normal(0.0, 0.1, (3, first + second)))
    values[1, 0] = values[2, -1] = np.nan
    sides = np.arange(first + second) >= first
    found = interval.intervals(values, sides, level=0.95, least=0.9)
    for row, (ratio, low, high, _) in zip(values, found.T, strict=True):
        one, other = row[:first], row[first:]
        one, other = one[np.isfinite(one)], other[np.isfinite(other)]
        if not len(one) or not len(other):
            assert np.isnan(ratio)
        else:
            pairs = [math.log(b) - math.log(a) for a in one for b in other]
            assert ratio == pytest.approx(median(pairs))
            assert np.isnan(low) or low <= ratio <= high


@pytest.mark.parametrize(
    ("first", "second", "level"), [(3, 3, 0.9), (5, 5, 0.95), (4, 10, 0.95), (1, 30, 0.935)]
)
def test_the_interval_holds_the_truth_as_often_as_it_says(
    first: int, second: int, level: float
) -> None:
    """2000 skewed rows whose ratio is 1.1; four standard errors of the rate are allowed."""
    noise = np.random.default_rng(7).lognormal(0.0, 1.0, (2000, first + second))
    values = np.exp(0.01 * noise)
    values[:, first:] *= 1.1
    sides = np.arange(first + second) >= first
    found = interval.intervals(values, sides, level=0.95, least=0.9)
    held = ((found[1] <= math.log(1.1)) & (found[2] >= math.log(1.1))).mean()
    assert held >= level - 4 * (0.05 * 0.95 / 2000) ** 0.5


@pytest.mark.parametrize("sizes", [(51, 51), (30, 90), (4, 640)])
def test_many_pairs_leave_out_what_the_exact_distribution_does(
    sizes: interval.Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The normal distribution against the recursion: two pairs more at most, 2 % fewer at most."""
    about, _ = interval.ends(sizes, 0.95, 0.9)
    monkeypatch.setattr(interval, "_EXACT", 10**9)
    interval.ends.cache_clear()
    exact, _ = interval.ends(sizes, 0.95, 0.9)
    interval.ends.cache_clear()
    assert 0.98 * exact - 2 <= about <= exact + 2
