"""What so many runs could have shown, and how many would."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.history.stats.power import (
    RowFamily,
    detectable,
    digamma,
    more_runs,
    trigamma,
)
from fabricproof.history.stats.shifts import Change, compare_rows

FAMILY = RowFamily(rows=100, alpha=0.05, power=0.8, seen=math.inf)
MARGIN = -math.log1p(-0.03)


@settings(deadline=None, max_examples=25)
@given(st.integers(4, 40), st.floats(0.001, 0.2), st.floats(1.0, 3.0))
def test_more_noise_hides_more_and_more_runs_show_more(
    half: int, noise: float, times: float
) -> None:
    """The least change that shows, never below the margin."""
    here = detectable((half, half), noise, MARGIN, FAMILY)
    assert here > math.exp(MARGIN)
    assert detectable((half, half), noise * times, MARGIN, FAMILY) >= here
    assert detectable((half + 1, half + 1), noise, MARGIN, FAMILY) <= here


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 20), st.floats(0.001, 0.3), st.floats(-0.3, 0.3), st.floats(1.0, 2.0))
def test_the_wilder_the_more_runs_it_takes(
    half: int, noise: float, effect: float, times: float
) -> None:
    """None is more than any number."""
    few = more_runs((half, half), noise, effect, MARGIN, FAMILY)
    many = more_runs((half, half), noise * times, effect, MARGIN, FAMILY)
    assert (many or 10_000) >= (few or 10_000)


def test_just_the_margin_is_never_decided() -> None:
    """A change that is what one is told to overlook, to the last digit."""
    assert more_runs((5, 5), 0.05, MARGIN, MARGIN, FAMILY) is None


@pytest.mark.parametrize(("effect", "word"), [(-0.08, Change.WORSE), (0.0, Change.SAME)])
def test_as_many_runs_as_it_asks_for_decide_it_four_times_in_five(
    effect: float, word: Change
) -> None:
    """50 rows of 4 % scatter, changed by 8 % or not at all, with the runs that were asked for."""
    noise, rows = 0.04, 50
    family = RowFamily(rows=rows, alpha=0.05, power=0.8, seen=math.inf)
    half = 4 + (more_runs((4, 4), noise, effect, MARGIN, family) or 0)
    random = np.random.default_rng(11)
    right = []
    for _ in range(4):
        logs = random.normal(0.0, noise, (rows, 2 * half))
        logs[:20, half:] += effect
        shifts = compare_rows(
            np.exp(logs),
            [run >= half for run in range(2 * half)],
            better=[1] * rows,
            margins=[0.03] * rows,
            classes=[0] * rows,
        )
        right += [each.change is word for each in shifts[:20]]
    assert 0.7 <= np.mean(right) <= 1.0


def test_what_is_called_detectable_is_found_four_times_in_five() -> None:
    """As many runs as there are, changed by just that factor, one row in ten."""
    random = np.random.default_rng(12)
    found = []
    for _ in range(20):
        values = np.exp(random.normal(0.0, 0.02, (50, 12)))
        factor = 1.057
        values[:5, 6:] *= factor
        shifts = compare_rows(
            values,
            [False] * 6 + [True] * 6,
            better=[1] * 50,
            margins=[0.03] * 50,
            classes=[0] * 50,
        )
        stated = np.median([each.detectable for each in shifts])
        found += [each.change is Change.BETTER for each in shifts[:5]]
    assert abs(math.log(stated / factor)) < 0.01
    assert 0.65 <= np.mean(found) <= 0.95


def test_known_values() -> None:
    assert digamma(1) == pytest.approx(-0.5772156649, abs=1e-9)
    assert trigamma(1) == pytest.approx(math.pi**2 / 6, abs=1e-7)
