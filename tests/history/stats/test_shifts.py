"""Did anything change between two groups of runs, by how much, and how sure is it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fabricproof.history.compare.doubts import resemblance
from fabricproof.history.stats.shifts import Change, Shift, compare_rows

SWAPPED = {
    Change.BETTER: Change.WORSE,
    Change.WORSE: Change.BETTER,
    Change.SAME: Change.SAME,
    Change.UNDECIDED: Change.UNDECIDED,
}


def made(seed: int, rows: int, runs: int, scale: float = 0.01) -> np.ndarray:
    """Return bandwidths of 100 with ``scale`` of noise."""
    return 100.0 * np.exp(np.random.default_rng(seed).normal(0.0, scale, (rows, runs)))


def compared(values: np.ndarray, first: int, *, margin: float = 0.03) -> list[Shift]:
    """Compare the first columns with the others; more is better."""
    rows, runs = values.shape
    return compare_rows(
        values,
        [run >= first for run in range(runs)],
        better=[1] * rows,
        margins=[margin] * rows,
        classes=[0] * rows,
    )


seeds = st.integers(0, 10_000)
sizes = st.tuples(st.integers(1, 5), st.integers(1, 5))


def test_a_row_that_lost_a_tenth_is_worse_and_only_that() -> None:
    """One of 200 rows, five runs on each side: found, with its size and its interval."""
    values = made(1, 200, 10)
    values[7, 5:] *= 0.9
    shifts = compared(values, 5)
    assert [row for row, each in enumerate(shifts) if each.change is Change.WORSE] == [7]
    assert shifts[7].ratio == pytest.approx(0.9, abs=0.02)
    assert shifts[7].low < 0.9 < shifts[7].high < 1
    assert shifts[7].p <= 0.05
    assert (shifts[7].level, shifts[7].more_runs) == (0.95, 0)
    assert not any(each.change is Change.BETTER for each in shifts)


def test_the_direction_of_a_row_says_whether_more_is_better() -> None:
    """The same numbers as bandwidth and as latency."""
    values = np.vstack([made(1, 1, 10)] * 2)
    values[:, 5:] *= 1.2
    found = compare_rows(
        values, [False] * 5 + [True] * 5, better=[1, -1], margins=[0.03] * 2, classes=[0, 1]
    )
    assert [each.change for each in found] == [Change.BETTER, Change.WORSE]


@pytest.mark.parametrize(
    ("first", "second", "sure"), [(3, 3, False), (2, 6, True), (4, 4, True), (1, 18, False),
                                  (1, 19, True), (1, 30, True), (2, 2, False)]
)  # fmt: skip
def test_so_few_runs_cannot_be_sure(first: int, second: int, sure: bool) -> None:
    """Half the bandwidth is WORSE only where the labellings are enough: 1 v 19, not 3 v 3."""
    values = made(2, 20, first + second)
    values[0, first:] *= 0.5
    found = compared(values, first)[0]
    assert found.change is (Change.WORSE if sure else Change.UNDECIDED)
    assert (found.detectable is None) == (not sure)
    if not sure:
        assert found.more_runs is not None
        assert 1 <= found.more_runs <= 2


def test_three_and_three_may_be_the_same_at_ninety_percent() -> None:
    """An interval of 90 % that lies within the margin says SAME; the level is told."""
    found = compared(made(3, 20, 6, scale=0.003), 3)
    assert {each.change for each in found} == {Change.SAME}
    assert {each.level for each in found} == {0.9}


def test_two_and_two_are_never_the_same() -> None:
    """No interval, so nothing is known to be the same, however alike the numbers are."""
    found = compared(made(3, 20, 4, scale=0.0001), 2)
    assert {each.change for each in found} == {Change.UNDECIDED}
    assert {(each.low, each.high, each.level) for each in found} == {(None, None, None)}


def test_a_sure_change_below_the_margin_is_not_worse() -> None:
    """One percent lost for sure is within a margin of 3 %: SAME, and told to be sure."""
    values = made(4, 5, 20, scale=0.001)
    values[:, 10:] *= 0.99
    found = compared(values, 10)
    assert {each.change for each in found} == {Change.SAME}
    assert all(each.is_sure for each in found)
    assert not any(each.is_sure for each in compared(made(4, 5, 20, scale=0.001), 10))


def test_a_wild_scatter_is_undecided_and_says_how_many_runs_it_takes() -> None:
    """Nothing defaults to SAME; the number of runs it asks for then does decide."""
    values = made(5, 1, 10, scale=0.05)
    found = compared(values, 5)[0]
    assert found.change is Change.UNDECIDED
    assert found.more_runs is not None
    assert found.more_runs > 20
    assert found.detectable > 1.05


@pytest.mark.parametrize("absent", [slice(0, 5), slice(5, 10), slice(0, 10)])
def test_a_side_without_numbers_is_undecided(absent: slice) -> None:
    """A row that one side has not: no ratio, no p below 1; its neighbours do not suffer."""
    values = made(6, 5, 10)
    values[1, 5:] *= 0.8
    values[0, absent] = np.nan
    found = compared(values, 5)
    assert (found[0].change, found[0].ratio, found[0].p) == (Change.UNDECIDED, None, 1.0)
    assert (found[0].more_runs, found[0].detectable, found[0].low) == (None, None, None)
    assert found[1].change is Change.WORSE


def test_all_numbers_alike_are_the_same() -> None:
    """Counts or rounded numbers without any scatter."""
    found = compared(np.full((3, 10), 7.0), 5)
    assert {each.change for each in found} == {Change.SAME}
    assert {each.p for each in found} == {1.0}


def test_without_scatter_a_step_is_as_sure_as_the_labellings_allow() -> None:
    """1 of 252 and its mirror image."""
    values = np.full((1, 10), 7.0)
    values[0, 5:] = 6.0
    found = compared(values, 5)[0]
    assert found.change is Change.WORSE
    assert found.p == pytest.approx(2 / 252)


def test_no_rows_are_no_answer() -> None:
    """Nothing in, nothing out."""
    assert compared(np.zeros((0, 4)), 2) == []


def test_no_run_at_all_is_refused() -> None:
    """Rows without a single column."""
    with pytest.raises(ValueError, match="need a side"):
        compared(np.zeros((2, 0)), 0)


def test_a_side_without_any_run_is_undecided() -> None:
    """All runs on one side: nothing to compare, nothing the same."""
    for first in (0, 4):
        found = compared(made(7, 2, 4), first)
        assert {(each.change, each.p) for each in found} == {(Change.UNDECIDED, 1.0)}


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf])
def test_what_is_no_measurement_is_refused(bad: float) -> None:
    """Zero, negative and infinite values have no logarithm."""
    values = made(7, 2, 6)
    values[1, 1] = bad
    with pytest.raises(ValueError, match="zero, negative or infinite"):
        compared(values, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"is_second": [True]},
        {"better": [1]},
        {"better": [1, 0]},
        {"margins": [0.0, 0.1]},
        {"margins": [1.0, 0.1]},
        {"classes": [0, 0, 0]},
    ],
)
def test_arguments_that_do_not_fit_are_refused(change: dict[str, object]) -> None:
    """Shapes, directions and margins."""
    given_ = {
        "is_second": [False, False, True, True],
        "better": [1, 1],
        "margins": [0.03, 0.03],
        "classes": [0, 0],
        **change,
    }
    with pytest.raises(ValueError, match=r"rows need|need a side|direction|margin"):
        compare_rows(made(8, 2, 4), **given_)


@settings(deadline=None, max_examples=25)
@given(seeds, st.integers(1, 6))
def test_a_side_against_itself_never_changed(seed: int, runs: int) -> None:
    """compare(a, a): no BETTER, no WORSE, ratio 1."""
    values = made(seed, 10, runs, scale=0.1)
    found = compared(np.hstack([values, values]), runs)
    assert all(each.change in {Change.SAME, Change.UNDECIDED} for each in found)
    assert all(each.ratio == pytest.approx(1.0) for each in found)


def alike(one: Shift, other: Shift, *, inverted: bool = False) -> None:
    """Assert that two answers are the same, or the same with the sides swapped."""
    assert other.change is (SWAPPED[one.change] if inverted else one.change)
    assert other.p == pytest.approx(one.p)
    assert other.more_runs == one.more_runs
    assert other.level == one.level
    ends = (one.high, one.low) if inverted else (one.low, one.high)
    for mine, its in zip((one.ratio, *ends), (other.ratio, other.low, other.high), strict=True):
        if mine is None:
            assert its is None
        else:
            assert its == pytest.approx(1 / mine if inverted else mine, rel=1e-9)


def with_holes(values: np.ndarray, seed: int) -> np.ndarray:
    """Return the values without one in eight."""
    values = values.copy()
    values[np.random.default_rng(seed + 1).random(values.shape) < 0.125] = np.nan
    return values


@settings(deadline=None, max_examples=25)
@given(seeds, sizes)
def test_swapping_the_sides_swaps_the_words_and_inverts_the_ratio(
    seed: int, size: tuple[int, int]
) -> None:
    """Also with numbers missing and one row changed."""
    values = with_holes(made(seed, 8, sum(size)), seed)
    values[0, size[0] :] *= 0.8
    turned = np.roll(values, size[1], axis=1)
    for one, other in zip(compared(values, size[0]), compared(turned, size[1]), strict=True):
        alike(one, other, inverted=True)


@settings(deadline=None, max_examples=8)
@given(seeds)
def test_swapping_and_order_hold_where_labellings_are_drawn_too(seed: int) -> None:
    """9 v 9 has 48,620 labellings: the draw goes by the numbers, not by the columns."""
    values = with_holes(made(seed, 5, 18), seed)
    values[0, 9:] *= 0.97
    random = np.random.default_rng(seed)
    mixed = np.hstack([random.permutation(9), 9 + random.permutation(9)])
    found = compared(values, 9)
    for one, other in zip(found, compared(values[:, mixed], 9), strict=True):
        alike(one, other)
    for one, other in zip(found, compared(np.roll(values, 9, axis=1), 9), strict=True):
        alike(one, other, inverted=True)
    rows = random.permutation(5)
    for place, other in zip(rows, compared(values[rows], 9), strict=True):
        alike(found[place], other)


@settings(deadline=None, max_examples=25)
@given(seeds, sizes)
def test_the_order_of_runs_within_a_side_does_not_matter(seed: int, size: tuple[int, int]) -> None:
    """Nor that of the rows."""
    values = with_holes(made(seed, 8, sum(size)), seed)
    random = np.random.default_rng(seed)
    runs = np.hstack([random.permutation(size[0]), size[0] + random.permutation(size[1])])
    rows = random.permutation(8)
    found = compared(values, size[0])
    other = compared(values[rows][:, runs], size[0])
    for place, row in enumerate(rows):
        alike(found[row], other[place])


@settings(deadline=None, max_examples=25)
@given(seeds, sizes, st.lists(st.floats(1e-6, 1e6), min_size=8, max_size=8))
def test_units_do_not_matter(seed: int, size: tuple[int, int], units: list[float]) -> None:
    """Each row in a unit of its own."""
    values = made(seed, 8, sum(size), scale=0.05)
    scaled = values * np.array(units)[:, None]
    for one, other in zip(compared(values, size[0]), compared(scaled, size[0]), strict=True):
        assert other.p == pytest.approx(one.p)
        assert other.ratio == pytest.approx(one.ratio)


@settings(deadline=None, max_examples=25)
@given(seeds, st.integers(4, 6), st.floats(0.001, 0.3), st.floats(0.0, 0.3))
def test_a_larger_shift_is_never_less_sure(seed: int, half: int, shift: float, more: float) -> None:
    """One row of many loses more and more; its p does not rise."""
    noise = made(seed, 12, 2 * half)
    ps = []
    for lost in (shift, shift + more):
        values = noise.copy()
        difference = np.log(values[0, half:]).mean() - np.log(values[0, :half]).mean()
        values[0, half:] *= math.exp(-difference - lost)
        ps.append(compared(values, half)[0].p)
    assert ps[1] <= ps[0] + 1e-12


@settings(deadline=None, max_examples=25)
@given(seeds, sizes, st.integers(1, 30))
def test_rows_that_say_nothing_make_no_other_row_surer(
    seed: int, size: tuple[int, int], more: int
) -> None:
    """Rows of another kind are added: no p of the first rows falls."""
    values = made(seed, 4, sum(size))
    values[0, size[0] :] *= 0.95
    others = made(seed + 1, more, sum(size), scale=0.03)
    alone = compared(values, size[0])
    joined = compare_rows(
        np.vstack([values, others]),
        [run >= size[0] for run in range(sum(size))],
        better=[1] * (4 + more),
        margins=[0.03] * (4 + more),
        classes=[0] * 4 + [1] * more,
    )
    assert all(b.p >= a.p - 1e-12 for a, b in zip(alone, joined, strict=False))


@settings(deadline=None, max_examples=25)
@given(seeds, st.integers(3, 6))
def test_more_runs_of_twice_the_noise_are_no_fewer(seed: int, half: int) -> None:
    """The more a row scatters, the larger the least change that shows."""
    values = made(seed, 1, 2 * half)
    logs = np.log(values / 100)
    wild = 100 * np.exp(2 * logs)
    quiet, loud = compared(values, half)[0], compared(wild, half)[0]
    assume(quiet.detectable is not None)
    assert loud.detectable >= quiet.detectable


def remembering(seed: int, runs: int) -> np.ndarray:
    """Return 20 rows of nights of which each hangs together with the next by 0.7."""
    random = np.random.default_rng(seed)
    logs = random.normal(0.0, 0.03, (21, runs))
    for run in range(1, runs):
        logs[:, run] = 0.7 * logs[:, run - 1] + 0.71 * logs[:, run]
    return 100.0 * np.exp(logs[:20] + 0.5 * logs[20])


def test_nights_that_remember_count_as_fewer() -> None:
    """14 v 14 without any change: nearly always called one, seldom as what they are worth."""
    second = [run >= 14 for run in range(28)]
    said = {False: 0, True: 0}
    for seed in range(10):
        values = remembering(seed, 28)
        lag = resemblance(values, 14)
        for is_weighed in said:
            found = compare_rows(
                values, second, better=[1] * 20, margins=[0.01] * 20, classes=[0] * 20,
                lag=lag if is_weighed else 0.0,
            )  # fmt: skip
            said[is_weighed] += any(each.is_sure for each in found)
    assert said[False] >= 7
    assert said[True] <= 4
