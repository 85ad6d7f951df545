"""The statistic and its relabellings against their definitions, and the labellings themselves."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
import slow_shifts as oracle
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fabricproof.history.stats import max_t, relabel
from fabricproof.history.stats.power import number_of_labellings

seeds = st.integers(0, 10_000)


def made(seed: int, rows: int, runs: int, holes: float = 0.0) -> np.ndarray:
    """Return skewed values with some missing."""
    random = np.random.default_rng(seed)
    values = np.exp(random.normal(0.0, 0.01, (rows, runs)) + 0.01 * random.exponential(1.0, runs))
    values[random.random(values.shape) < holes] = np.nan
    return values


def labels(values: np.ndarray, first: int) -> relabel.Labellings:
    """Return the labellings of the first columns against the others."""
    return relabel.labellings(values, np.arange(values.shape[1]) >= first, 1)


@settings(deadline=None, max_examples=20)
@given(seeds, st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.0, 0.2]))
def test_the_fast_answer_is_the_slow_one(seed: int, first: int, second: int, holes: float) -> None:
    """Matrix products and running maxima against loops over labellings, sides taken as alike."""
    values = made(seed, 5, first + second, holes)
    values[0, first:] *= 0.95
    rows = relabel.prepare(values, [0, 0, 0, 1, 1])
    with mock.patch.multiple(
        max_t.unequal, at_most=lambda *_: np.inf, levelled=lambda left, *_: left
    ):
        found = max_t.step_down(rows, labels(values, first), 0.05)
    holed = np.where(rows.here > 0, rows.x, np.nan).tolist()
    sides = [run >= first for run in range(first + second)]
    slow = oracle.adjusted(holed, sides, rows.noise.tolist(), [0, 0, 0, 1, 1])
    assert found.p.tolist() == pytest.approx(slow)


@settings(deadline=None, max_examples=25)
@given(seeds, st.integers(2, 9), st.sampled_from([0.0, 0.3]))
def test_qn_is_the_quantile_of_all_pairs(seed: int, runs: int, holes: float) -> None:
    """Against sorted pairs, with the factor for small samples beside."""
    values = made(seed, 6, runs, holes)
    for row, found in zip(values, relabel.qn(values), strict=True):
        num = int(np.isfinite(row).sum())
        if num < 2:
            assert math.isnan(found)
        else:
            small = relabel._QN_SMALL[num]
            assert found == pytest.approx(oracle.qn(row.tolist()) * small)


@pytest.mark.parametrize("runs", [4, 7, 10, 25, 64, 65, 300])
def test_qn_estimates_the_standard_deviation(runs: int) -> None:
    """The mean over 1000 normal rows is 1, within 4 %."""
    values = np.random.default_rng(1).normal(0.0, 1.0, (1000, runs))
    assert relabel.qn(values).mean() == pytest.approx(1.0, abs=0.04)


@pytest.mark.parametrize("alternating", [False, True])
def test_a_step_of_every_row_moves_the_yardstick_little(alternating: bool) -> None:
    """10 v 10, all changed by 100 scatters, one after the other or in turns: at most 3 times."""
    values = made(2, 200, 20)
    plain = relabel.prepare(values, [0] * 200).noise[0]
    second = np.arange(20) % 2 == 1 if alternating else np.arange(20) >= 10
    values[:, second] *= math.e
    stepped = relabel.prepare(values, [0] * 200).noise[0]
    assert 1.0 <= stepped / plain < 3.0**2


def test_a_wild_number_is_drawn_in_and_stays_the_largest() -> None:
    """Three times its neighbours is 110 scatters; it counts as less than 10, before all others."""
    values = made(3, 50, 12)
    values[0, 4] *= 3.0
    rows = relabel.prepare(values, [0] * 50)
    assert rows.x[0].argmax() == 4
    assert rows.x[0, 4] < 15 * math.sqrt(rows.noise[0])


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 5), st.integers(0, 5))
def test_all_labellings_are_listed_once_with_the_real_one_first(first: int, second: int) -> None:
    """Their number is the binomial; every one keeps the sizes of the sides."""
    assume(first + second)
    real = np.array([False] * first + [True] * second, dtype=np.bool_)
    found = relabel.labellings(np.ones((1, len(real))), real, 1)
    assert found.num == number_of_labellings((first, second))
    assert len({tuple(each) for each in found.second.T.tolist()}) == found.num
    assert found.second[:, 0].tolist() == real.tolist()
    assert (found.second.sum(axis=0) == second).all()


def test_too_many_labellings_are_drawn_and_the_real_one_is_counted() -> None:
    """10 v 10: 4999 and the real one; the same seed draws the same."""
    values = made(4, 3, 20)
    found = labels(values, 10)
    assert found.num == relabel.MOST
    assert (found.second.sum(axis=0) == 10).all()
    assert (labels(values, 10).second == found.second).all()
    assert found.second[:, 1:].mean(axis=1) == pytest.approx(0.5, abs=0.03)


def test_pieces_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows taken two at a time give what they give all at once."""
    values = made(5, 31, 8, 0.1)
    rows = relabel.prepare(values, [0] * 31)
    whole = max_t.step_down(rows, labels(values, 4), 0.05)
    monkeypatch.setattr(max_t, "_IN_CACHE", 140)
    monkeypatch.setattr(relabel, "_CELLS", 1)
    again = relabel.prepare(values, [0] * 31)
    pieces = max_t.step_down(again, labels(values, 4), 0.05)
    assert pieces.p.tolist() == whole.p.tolist()
    assert pieces.critical == pytest.approx(whole.critical)


def test_numpy_is_not_imported_before_it_is_needed() -> None:
    """The words of a comparison are known without numpy: the command line starts at once."""
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    program = "import sys, fabricproof.history.stats.shifts; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_row_that_cannot_be_sure_hides_no_other() -> None:
    """Of a row with one number on each side, half as large: its neighbours are as sure as before.

    With 12 runs a p of 5 % is in reach, but not for that row, whose two numbers differ by as much
    in every second labelling.
    """
    values = made(6, 20, 12)
    values[1, 6:] *= 0.9
    rows = relabel.prepare(values, [0] * 20)
    alone = max_t.step_down(rows, labels(values, 6), 0.05).p
    values[0] = np.nan
    values[0, [2, 8]] = 1.0, 0.01
    rows = relabel.prepare(values, [0] * 20)
    beside = max_t.step_down(rows, labels(values, 6), 0.05).p
    assert beside[0] == 1.0
    assert beside[1] == pytest.approx(alone[1])
    assert beside[1] < 0.01


def test_rows_with_few_numbers_do_not_set_what_the_others_must_pass() -> None:
    """Half of 200 rows have 8 of 24 numbers: a loss of 5 scatters in a whole row is still found."""
    values = made(7, 200, 24)
    values[100:, np.random.default_rng(3).permutation(24)[:16]] = np.nan
    values[0, 12:] *= 0.94
    rows = relabel.prepare(values, [0] * 200)
    assert max_t.step_down(rows, labels(values, 12), 0.05).p[0] <= 0.05
