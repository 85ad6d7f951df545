"""Sides that scatter unlike: what is said of the scatter, and no longer said of the level."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.history.stats import max_t, relabel, unequal
from fabricproof.history.stats.shifts import compare_rows


def made(seed: int, rows: int, sizes: tuple[int, int], scatter: float) -> np.ndarray:
    """Return rows of one level whose second side scatters ``scatter`` times as much."""
    x = np.random.default_rng(seed).normal(0.0, 0.01, (rows, sum(sizes)))
    x[:, sizes[0] :] *= scatter
    return np.exp(x)


def adjusted(values: np.ndarray, first: int, *, alike: bool = False) -> np.ndarray:
    """Return the p of each row; ``alike``: sides taken to scatter alike, as it was before."""
    second = np.arange(values.shape[1]) >= first
    rows = relabel.prepare(values, [0] * len(values))
    labels = relabel.labellings(values, second, 1)
    if not alike:
        return max_t.step_down(rows, labels, 0.05).p
    with mock.patch.multiple(
        max_t.unequal, at_most=lambda *_: np.inf, levelled=lambda left, *_: left
    ):
        return max_t.step_down(rows, labels, 0.05).p


def scatter_told(values: np.ndarray, first: int) -> list[float | None]:
    """Return what is said of the scatter of each row, all of one kind."""
    rows, runs = values.shape
    shifts = compare_rows(
        values, [run >= first for run in range(runs)], better=[1] * rows, margins=[0.03] * rows,
        classes=[0] * rows,
    )  # fmt: skip
    return [each.scatter for each in shifts]


@pytest.mark.parametrize("sizes", [(5, 5), (7, 3), (4, 10)])
@pytest.mark.parametrize("ratio", [3.0, 1 / 3])
def test_how_many_times_one_side_scatters_as_much(sizes: tuple[int, int], ratio: float) -> None:
    """Of 60 rows of a kind, to a quarter."""
    told = scatter_told(made(3, 60, sizes, ratio), sizes[0])
    assert told[0] == pytest.approx(ratio, rel=0.25)
    assert len(set(told)) == 1


@pytest.mark.parametrize("sizes", [(5, 5), (7, 3)])
def test_a_scatter_is_told_falsely_once_in_twenty(sizes: tuple[int, int]) -> None:
    """60 comparisons of rows with nights in common, where each kind is as if of one row."""
    random, hits = np.random.default_rng(4), 0
    for _ in range(60):
        x = random.normal(0.0, 0.01, (20, 10)) + random.normal(0.0, 0.02, (1, 10))
        hits += scatter_told(np.exp(x), sizes[0])[0] is not None
    assert hits <= 8  # one in 400 times by chance at 5 %


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from([(5, 5), (6, 3), (1, 6), (4, 2)]))
def test_an_own_scatter_of_sides_makes_no_row_much_surer(seed: int, sizes: tuple[int, int]) -> None:
    """A row counts as no further apart; only the yardstick of the levelled rest may move.

    Twice the level of a word and more it may: above 0.2 the levelled rest is not even asked.
    """
    values = made(seed, 12, sizes, 2.0)
    own, alike = adjusted(values, sizes[0]), adjusted(values, sizes[0], alike=True)
    assert np.isfinite(own).all()
    assert ((own >= alike - 0.1) | (own > 0.1)).all()


def test_rows_that_scatter_unlike_are_no_longer_said_to_have_changed() -> None:
    """7 v 3, a tenth of 100 rows four times as wild: said before, seldom now."""
    random = np.random.default_rng(8)
    told = np.zeros(2)
    for _ in range(30):
        x = random.normal(0.0, 0.01, (100, 10))
        x[:10, 7:] *= 4.0
        values = np.exp(x)
        told += [adjusted(values, 7, alike=alike).min() <= 0.05 for alike in (True, False)]
    assert told[0] >= 12
    assert told[1] <= 6


@pytest.mark.parametrize(("spread", "least", "most"), [(0.0, 0.97, 1.0), (0.5, 0.8, 0.95)])
def test_a_ratio_known_badly_is_a_doubt_of_unlike_rows_only(
    spread: float, least: float, most: float
) -> None:
    """Rows that scatter alike say together what their nights share; unlike ones do not."""
    random = np.random.default_rng(6)
    scale = 0.01 * np.exp(spread * random.normal(0.0, 1.0, (100, 1)))
    values = np.exp(scale * random.normal(0.0, 1.0, (100, 10)))
    second = np.arange(10) >= 5
    rows = relabel.prepare(values, [0] * len(values))
    labels = relabel.labellings(values, second, 1).second
    known, sides = max_t.fit(rows, labels).of_first(), unequal.sides_of(rows, labels)
    well, badly = (
        unequal.at_most(rows, labels[:, :1], known, replace(sides, shared=np.array([shared])))
        for shared in (0.0, 1.3)
    )
    assert least <= np.median(badly / well) <= most
