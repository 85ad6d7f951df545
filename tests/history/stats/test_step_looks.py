"""What is called where somebody looks after every run: little where nothing changed, soon else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.history.stats.step_looks import (
    FIRST_LOOK,
    LEAST_BEFORE,
    YEAR,
    Around,
    far_out,
    level_of_look,
)
from fabricproof.history.stats.steps import Changes, find_changes

ROWS = 20


def noise(seed: int, runs: int, scatter: float = 0.01) -> np.ndarray:
    return 100 * np.exp(np.random.default_rng(seed).normal(0, scatter, (ROWS, runs)))


def changes(values: np.ndarray, **asked: int) -> Changes:
    return find_changes(values, classes=[0] * ROWS, margins=[0.03] * ROWS, **asked)


def is_called(found: Changes) -> bool:
    return any(each.sure for each in (*found.steps, *found.drifts))


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_the_looks_of_a_year_share_one_rate(alpha: float) -> None:
    levels = [level_of_look(runs, alpha) for runs in range(1, YEAR + 1)]
    assert math.fsum(levels) == pytest.approx(alpha, rel=1e-9)
    assert not any(levels[: FIRST_LOOK - 1])
    assert levels[FIRST_LOOK - 1 :] == sorted(levels[FIRST_LOOK - 1 :], reverse=True)
    assert YEAR * level_of_look(10 * YEAR, alpha) < 0.6 * alpha


@pytest.mark.parametrize("before", [12, 30, 60])
def test_a_step_of_five_percent_in_one_percent_of_noise_is_called_within_five_runs(
    before: int,
) -> None:
    values = noise(before, before + 5)
    values[:5, before:] *= 0.95
    after = [
        changes(values[:, max(0, runs - 60) : runs], num_looks=runs)
        for runs in range(before, before + 6)
    ]
    assert not is_called(after[0])
    assert is_called(after[5])
    assert all(each.row < 5 for found in after for each in found.steps if each.sure)


@pytest.mark.parametrize("after", [1, 2])
def test_two_bad_runs_are_told_and_not_called(after: int) -> None:
    """Whatever is lost: the next may take it back."""
    values = noise(3, 30)
    values[:5, 30 - after :] *= 0.1
    found = changes(values)
    assert {each.row for each in found.steps} >= set(range(5))
    assert not is_called(found)


def test_three_runs_are_called_only_where_no_run_before_was_as_far() -> None:
    values = noise(4, 30)
    values[:5, 27:] *= 0.9
    assert is_called(changes(values))
    values[5, 10] *= 0.9
    assert not is_called(changes(values))


def test_the_older_a_history_the_surer_a_call_must_be() -> None:
    """A window of runs says nothing of how many looks there were before it."""
    values = noise(16, 16)
    values[0, 8:] *= 0.965
    young, old = changes(values), changes(values, num_looks=60)
    assert young.steps[0].p == old.steps[0].p
    assert (is_called(young), is_called(old)) == (True, False)


def test_a_drift_of_many_runs_is_called() -> None:
    values = noise(6, 40)
    values[0] *= 0.995 ** np.arange(40)
    (drift,) = changes(values).drifts
    assert (drift.row, drift.sure) == (0, True)


@given(
    highest=st.lists(st.floats(0, 30, width=32), min_size=40, max_size=200),
    one=st.floats(0, 60),
    two=st.floats(0, 60),
)
def test_what_is_further_out_is_no_less_rare(highest: list[float], one: float, two: float) -> None:
    """And none is called rarer than the share of orders that came as far."""
    drawn = np.array(highest, dtype=np.float32)
    low, high = far_out(np.array(sorted((one, two))), drawn)
    assert high <= low
    assert low >= (drawn >= max(min(one, two), 0)).mean() - 1e-12


def around(furthest: float) -> Around:
    return Around(scales=np.array([0.01]), furthest=np.full(40, furthest))


@given(
    at=st.integers(LEAST_BEFORE, 30),
    count=st.integers(3, 8),
    ratio=st.floats(1.01, 20),
    lag=st.floats(0, 0.9),
)
def test_runs_in_a_row_are_rarer_the_further_they_are_and_the_less_they_hang_together(
    at: int, count: int, ratio: float, lag: float
) -> None:
    before = [0.0] * at
    chances = [
        around(3.0).in_a_row(0, at, before, [0.03 * far] * count, of)
        for far, of in ((ratio, lag), (1.5 * ratio, lag), (ratio, 0.0))
    ]
    assert 0 < chances[1] <= chances[0] <= 1
    assert chances[2] <= chances[0]
    assert chances[2] <= 2 ** (count - 2) * ratio ** (-2 * count) / math.comb(at + count, count) * (
        1 + 1e-9
    )


def test_runs_that_are_few_or_no_further_than_others_say_nothing() -> None:
    far = [0.5] * 3
    assert around(3.0).in_a_row(0, 20, [0.0] * 20, far[:2], 0.0) == 1.0
    assert around(3.0).in_a_row(0, LEAST_BEFORE - 1, [0.0] * 4, far, 0.0) == 1.0
    assert around(60.0).in_a_row(0, 20, [0.0] * 20, far, 0.0) == 1.0
    assert around(3.0).in_a_row(0, 20, [0.0] * 20, [0.5, 0.5, 0.01], 0.0) == 1.0
