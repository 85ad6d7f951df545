"""Quantiles far out in the tail, against published tables."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.history.stats.power import (
    digamma,
    inverse_trigamma,
    student_quantile,
    student_tail,
    trigamma,
)


@pytest.mark.parametrize(
    ("tail", "freedom", "t"),
    [
        # Abramowitz and Stegun 1964, table 26.10
        (0.025, 4, 2.776),
        (0.005, 4, 4.604),
        (0.0005, 4, 8.610),
        (0.0005, 30, 3.646),
        (0.025, 1, 12.706),
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


@settings(deadline=None)
@given(x=st.floats(0.05, 500))
def test_the_inverse_is_one(x: float) -> None:
    assert inverse_trigamma(trigamma(x)) == pytest.approx(x, rel=1e-6)


def test_known_values() -> None:
    assert digamma(1) == pytest.approx(-0.5772156649, abs=1e-9)
    assert trigamma(1) == pytest.approx(math.pi**2 / 6, abs=1e-7)
