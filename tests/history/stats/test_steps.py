"""Steps and drifts of many rows over runs: what is told, and what must not be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.history.stats.steps import Changes, find_changes

ROWS = 30


def _noise(seed: int, runs: int, rows: int = ROWS) -> np.ndarray:
    return 100 * np.exp(np.random.default_rng(seed).normal(0, 0.02, (rows, runs)))


def _changes(values: np.ndarray, orders: int = 2000) -> Changes:
    rows = len(values)
    return find_changes(values, classes=[0] * rows, margins=[0.03] * rows, num_orders=orders)


def test_a_step_is_found_where_it_is() -> None:
    """Half of a rail gone in ten nights: rows, night and size, and no other row."""
    values = _noise(1, 10)
    values[:8, 5:] *= 0.52
    steps = _changes(values).steps
    assert [each.row for each in steps] == list(range(8))
    assert {each.at for each in steps} == {5}
    assert all(each.ratio == pytest.approx(0.52, abs=0.03) for each in steps)
    assert all(each.p <= 0.05 for each in steps)


def test_a_step_and_a_drift_of_two_rows_are_told_apart() -> None:
    """Both share one error rate, and neither row is told as the other kind."""
    values = _noise(2, 30)
    values[0, 12:] *= 0.8
    values[1] *= 0.99 ** np.arange(30)
    found = find_changes(values, classes=[0] * ROWS, margins=[0.03] * ROWS)
    assert [each.row for each in found.steps] == [0]
    assert [each.row for each in found.drifts] == [1]


@pytest.mark.parametrize("night", [0, 1, 2, 15, 27, 28])
def test_one_bad_night_is_no_step(night: int) -> None:
    """A single night at a tenth of the rate, of all rows, wherever it lies but last."""
    values = _noise(night, 30)
    values[:, night] *= 0.1
    assert not _changes(values).steps


def test_a_last_run_that_is_far_off_is_told() -> None:
    """Ten nights, and in the eleventh a third of the rows carries half."""
    values = _noise(4, 11)
    values[:10, 10] *= 0.5
    steps = _changes(values).steps
    assert {each.row for each in steps} == set(range(10))
    assert {each.at for each in steps} == {10}


def test_a_last_run_is_not_told_where_such_runs_were_before() -> None:
    """What has happened before, of whatever row, may be a bad night again."""
    values = _noise(4, 11)
    values[:10, 10] *= 0.5
    values[20, 3] *= 0.5
    assert not _changes(values).steps


def test_a_level_that_came_and_went_is_two_steps() -> None:
    """Fifteen slow nights of sixty, which hardly show in the means of all before and after."""
    values = _noise(5, 60)
    values[0, 20:35] *= 0.8
    steps = _changes(values).steps
    assert [(each.row, each.at) for each in steps] == [(0, 20), (0, 35)]
    assert steps[0].ratio * steps[1].ratio == pytest.approx(1, abs=0.03)


def test_a_drift_that_no_night_shows_is_told_as_a_drift() -> None:
    """0.4 % a night under 2 % of scatter, over thirty nights."""
    values = _noise(6, 30)
    values[:5] *= 0.996 ** np.arange(30)[None, :]
    found = _changes(values)
    assert [each.row for each in found.drifts] == list(range(5))
    assert not found.steps
    assert all(each.per_run == pytest.approx(0.996, abs=0.001) for each in found.drifts)
    assert all(each.total == pytest.approx(0.996**29, abs=0.03) for each in found.drifts)


def test_a_step_is_not_told_as_a_drift() -> None:
    """A step in the middle slopes too; the line fits it worse."""
    values = _noise(7, 30)
    values[:5, 14:] *= 0.9
    found = _changes(values)
    assert not found.drifts
    assert {each.row for each in found.steps} == set(range(5))


def test_steps_below_the_margin_are_not_told() -> None:
    """1 % on rows of 0.1 % scatter is sure, and does not matter."""
    values = 100 * np.exp(np.random.default_rng(8).normal(0, 0.001, (10, 20)))
    values[0, 10:] *= 0.99
    values[1, 10:] *= 0.9
    assert [each.row for each in _changes(values).steps] == [1]


def test_gaps_widen_the_interval_of_moments() -> None:
    """Where a row was not measured around the change, any of those nights may be it."""
    values = _noise(9, 20)
    values[0, 10:] *= 0.5
    values[0, 8:11] = np.nan
    (step,) = (each for each in _changes(values).steps if each.row == 0)
    assert (step.earliest, step.at, step.latest) == (8, 11, 11)


def test_rows_without_scatter_and_rows_of_nothing_are_no_trouble() -> None:
    """A constant row, an empty one and one with five values are silent; a clean step is found."""
    values = np.full((4, 12), 7.0)
    values[1] = np.nan
    values[2, 5:] = np.nan
    values[3, 6:] = 3.5
    assert [(each.row, each.at) for each in _changes(values).steps] == [(3, 6)]


def test_nights_that_hang_together_are_noticed() -> None:
    """AR(1) of 0.6: noticed, and levels that wander are not all told as steps."""
    random = np.random.default_rng(10)
    walk = random.normal(0, 1, (ROWS, 60))
    for run in range(1, 60):
        walk[:, run] = 0.6 * walk[:, run - 1] + 0.8 * walk[:, run]
    assert 0.3 < _changes(np.exp(0.02 * walk)).lag < 0.8
    assert _changes(_noise(10, 60)).lag == 0


def test_without_any_change_little_is_told() -> None:
    """Of a hundred histories at most 5 % tell anything: with 11, chance is below 1 in 100."""
    told = 0
    for seed in range(100):
        found = _changes(_noise(1000 + seed, 12, 10), orders=300)
        told += bool(found.steps or found.drifts)
    assert told <= 11


@given(factor=st.floats(1e-3, 1e3), seed=st.integers(0, 50))
@settings(max_examples=15, deadline=None)
def test_the_unit_does_not_matter(factor: float, seed: int) -> None:
    """MB/s or GB/s: the same steps, p and ratios."""
    values = _noise(seed, 12, 6)
    values[0, 6:] *= 0.7
    first, second = _changes(values, 300), _changes(values * factor, 300)
    assert [(s.row, s.at, s.p) for s in first.steps] == [(s.row, s.at, s.p) for s in second.steps]


@given(seed=st.integers(0, 50))
@settings(max_examples=15, deadline=None)
def test_time_turned_round_turns_the_steps_round(seed: int) -> None:
    """Read backwards, a loss is a gain of the same size at the same border."""
    values = _noise(seed, 20, 6)
    values[0, 8:] *= 0.7
    forth = [each for each in _changes(values).steps if each.row == 0]
    back = [each for each in _changes(values[:, ::-1].copy()).steps if each.row == 0]
    back.reverse()
    assert [20 - each.at for each in back] == [each.at for each in forth]
    assert [1 / each.ratio for each in back] == pytest.approx([each.ratio for each in forth])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf])
def test_what_is_no_measurement_is_refused(bad: float) -> None:
    """Zero, negative and infinite values have no logarithm: the caller must set them aside."""
    values = _noise(1, 10)
    values[3, 4] = bad
    with pytest.raises(ValueError, match="row 3, run 4"):
        _changes(values)


def test_shapes_that_do_not_fit_are_refused() -> None:
    """A class too few."""
    with pytest.raises(ValueError, match="classes"):
        find_changes(_noise(1, 10), classes=[0], margins=[0.03] * ROWS)


@pytest.mark.parametrize("shape", [(0, 10), (3, 0), (3, 5)])
def test_too_little_tells_nothing(shape: tuple[int, int]) -> None:
    """No rows, no runs, five runs."""
    assert _changes(np.ones(shape)) == Changes(steps=(), drifts=(), lag=0.0)
