"""What a set of good measurements is like, and what stands apart from it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.history.baseline.bounds import LEAST_NUM, summarise

GOOD = (100.0, 101.0, 99.5, 100.4, 99.0, 100.9, 100.2)
numbers = st.lists(st.floats(0.01, 1e9), min_size=1, max_size=40)


def test_one_number_of_a_few_that_is_half_the_others_stands_apart() -> None:
    """An outlier is named by its place, and hardly moves the middle."""
    summary = summarise((*GOOD, 50.0))
    assert summary.outliers == (False,) * 7 + (True,)
    assert summary.median == pytest.approx(100.1)
    assert summary.low > 90


def test_of_too_few_numbers_none_stands_apart() -> None:
    """Three cannot outvote a fourth."""
    assert summarise((100.0, 100.0, 100.0, 5.0)).outliers == (False,) * 4
    assert LEAST_NUM == 5


def test_a_long_tail_to_the_right_widens_that_side_alone() -> None:
    """Latencies of 1.0 with a tail up to 1.5: 1.5 is one of them, 0.8 is not."""
    tail = [1.0, 1.0, 1.01, 1.0, 1.02, 1.05, 1.08, 1.12, 1.2, 1.3, 1.5, 0.99, 1.0, 1.0, 1.01]
    summary = summarise(tail)
    assert not any(summary.outliers)
    assert summary.high - summary.median > 3 * (summary.median - summary.low)


@settings(deadline=None, max_examples=25)
@given(numbers)
def test_what_is_within_the_ends_is_no_outlier(values: list[float]) -> None:
    """``low`` and ``high`` are the ends that the flags are made by; fewer than five: no flags."""
    summary = summarise(values)
    outside = tuple(not summary.low <= each <= summary.high for each in values)
    for flagged, out, value in zip(summary.outliers, outside, values, strict=True):
        edge = value == pytest.approx(summary.low) or value == pytest.approx(summary.high)
        assert edge or flagged == (out and len(values) >= LEAST_NUM)


@settings(deadline=None, max_examples=25)
@given(numbers, st.randoms())
def test_order_does_not_matter(values: list[float], random: object) -> None:
    """The same numbers in another order are summed up alike."""
    mixed = list(values)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    one, other = summarise(values), summarise(mixed)
    assert (one.median, one.low, one.high) == (other.median, other.low, other.high)
    assert sum(one.outliers) == sum(other.outliers)


@settings(deadline=None, max_examples=25)
@given(numbers, st.floats(0.001, 1000.0))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    """The spread is a share; ends move with the unit."""
    one, other = summarise(values), summarise([each * factor for each in values])
    assert other.spread == pytest.approx(one.spread, rel=1e-6)
    assert other.high == pytest.approx(one.high * factor, rel=1e-6)


@pytest.mark.parametrize("values", [(), (1.0, 0.0), (-1.0,), (float("nan"),), (float("inf"),)])
def test_what_is_no_measurement_is_refused(values: tuple[float, ...]) -> None:
    """Nothing is summed up of nothing, or of what cannot be."""
    with pytest.raises(ValueError, match="positive"):
        summarise(values)
