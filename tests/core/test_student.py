"""Student's t against published tables."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.core.student import student_quantile, student_tail


@pytest.mark.parametrize(
    ("tail", "freedom", "t"),
    [
        # Abramowitz and Stegun 1964, table 26.10
        (0.025, 4, 2.776),
        (0.005, 4, 4.604),
        (0.0005, 4, 8.610),
        (0.0005, 30, 3.646),
        (0.025, 1, 12.706),
        (0.025, 10, 2.228),
        (0.005, 5, 4.032),
        (0.0005, 7, 5.408),
        (0.005, 30, 2.750),
        # the normal distribution
        (0.025, math.inf, 1.960),
        (1e-5, math.inf, 4.265),
    ],
)
def test_quantiles_are_those_of_the_tables(tail: float, freedom: float, t: float) -> None:
    assert student_quantile(tail, freedom) == pytest.approx(t, abs=6e-4)


@settings(deadline=None)
@given(freedom=st.floats(1, 300), exponent=st.floats(-7, -0.4))
def test_a_quantile_has_its_tail(freedom: float, exponent: float) -> None:
    tail = 10**exponent
    assert student_tail(student_quantile(tail, freedom), freedom) == pytest.approx(tail, rel=1e-6)


@settings(deadline=None, max_examples=25)
@given(st.floats(0.0, 50.0), st.integers(1, 150))
def test_a_tail_is_a_probability(t: float, freedom: int) -> None:
    """From a half downwards, less with more freedom."""
    tail = student_tail(t, freedom)
    assert 0.0 <= tail <= 0.5
    assert student_tail(t + 0.1, freedom) <= tail + 1e-12
    assert student_tail(t, freedom + 1) <= tail + 1e-12
