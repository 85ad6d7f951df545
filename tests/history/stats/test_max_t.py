"""Max-T over relabelled runs against its definition, and sides that scatter unlike."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fabricproof.history.stats import max_t, relabel
from fabricproof.history.stats.power import number_of_labellings
from fabricproof.history.stats.shifts import compare_rows

seeds = st.integers(0, 10_000)


def made(seed: int, rows: int, runs: int, holes: float = 0.0) -> np.ndarray:
    """Return skewed values with some missing."""
    random = np.random.default_rng(seed)
    values = np.exp(random.normal(0.0, 0.01, (rows, runs)) + 0.01 * random.exponential(1.0, runs))
    values[random.random(values.shape) < holes] = np.nan
    return values


def labels(values: np.ndarray, first: int) -> np.ndarray:
    """Return the labellings of the first columns against the others."""
    return relabel.labellings(values, np.arange(values.shape[1]) >= first, 1)


def stepped(values: np.ndarray, first: int) -> max_t.MaxT:
    """Return what the relabellings say of rows of one kind."""
    kinds = np.zeros(len(values), dtype=np.int64)
    return max_t.step_down(relabel.prepared(values, kinds), kinds, labels(values, first), 0.05)


@settings(deadline=None, max_examples=20)
@given(seeds, st.integers(2, 4), st.integers(2, 4), st.sampled_from([0.0, 0.2]))
def test_p_is_what_the_definition_says(seed: int, first: int, second: int, holes: float) -> None:
    """Westfall and Young by loops over labellings and rows, sides taken as alike."""
    values = made(seed, 5, first + second, holes)
    values[0, first:] *= 0.95
    columns = labels(values, first)
    kinds = np.zeros(5, dtype=np.int64)
    x = relabel.prepared(values, kinds)
    asked: list[np.ndarray] = []
    plain = max_t._Rows.squared

    def kept(rows: max_t._Rows, *arguments: object) -> np.ndarray:
        found = plain(rows, *arguments)  # type: ignore[arg-type]
        asked.append(plain(rows, columns, arguments[1]))  # type: ignore[arg-type]
        return found

    own = (np.full(5, np.inf), np.ones(5))
    with (
        mock.patch.object(max_t, "_by_own_scatter", return_value=own),
        mock.patch.object(max_t._Rows, "squared", kept),
    ):
        found = max_t.step_down(x, kinds, columns, 0.05).p
    observed = asked[0][:, 0].copy()
    slow = [0.0] * 5
    for table in (asked[0], asked[-1]):  # as they are, and what is left if that was asked
        table[:, 0] = observed
        order = sorted(range(5), key=lambda row: -observed[row])
        worst = 0.0
        for rank, row in enumerate(order):
            reached = (table[order[rank:]].max(axis=0) >= observed[row] * (1 - 1e-9)).mean()
            worst = max(worst, float(reached))
            slow[row] = max(slow[row], worst)
    assert found.tolist() == pytest.approx(slow)


@settings(deadline=None, max_examples=25)
@given(seeds, st.integers(2, 9), st.sampled_from([0.0, 0.3]))
def test_qn_is_the_quantile_of_all_pairs(seed: int, runs: int, holes: float) -> None:
    values = made(seed, 6, runs, holes)
    for row, found in zip(values, relabel.qn(values), strict=True):
        known = row[np.isfinite(row)]
        half = len(known) // 2 + 1
        pairs = sorted(abs(a - b) for a, b in itertools.combinations(known, 2))
        if len(known) < 2:
            assert math.isnan(found)
        else:
            scale = 2.2219 * pairs[half * (half - 1) // 2 - 1]
            assert found == pytest.approx(scale * relabel._QN_SMALL[len(known)])


@pytest.mark.parametrize("runs", [4, 7, 10, 25, 64, 65, 300])
def test_qn_estimates_the_standard_deviation(runs: int) -> None:
    values = np.random.default_rng(1).normal(0.0, 1.0, (1000, runs))
    assert relabel.qn(values).mean() == pytest.approx(1.0, abs=0.04)


def test_a_wild_number_is_drawn_in_and_stays_the_largest() -> None:
    values = made(3, 50, 12)
    values[0, 4] *= 3.0
    x = relabel.prepared(values, np.zeros(50, dtype=np.int64))
    assert x[0].argmax() == 4
    assert x[0, 4] < 15 * np.median(relabel.qn(x))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 5), st.integers(0, 5))
def test_all_labellings_are_listed_once_with_the_real_one_first(first: int, second: int) -> None:
    """Their number is the binomial; every one keeps the sizes of the sides."""
    assume(first + second)
    found = labels(np.ones((1, first + second)), first)
    assert found.shape[1] == number_of_labellings((first, second))
    assert len({tuple(each) for each in found.T.tolist()}) == found.shape[1]
    assert found[:, 0].tolist() == [0.0] * first + [1.0] * second
    assert (found.sum(axis=0) == second).all()


def test_too_many_labellings_are_drawn_and_the_real_one_is_counted() -> None:
    """10 v 10: 4999 and the real one; the same seed draws the same."""
    values = made(4, 3, 20)
    found = labels(values, 10)
    assert found.shape[1] == relabel.MOST
    assert (found.sum(axis=0) == 10).all()
    assert (labels(values, 10) == found).all()
    assert found[:, 1:].mean(axis=1) == pytest.approx(0.5, abs=0.03)


def test_pieces_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows taken two at a time give what they give all at once."""
    values = made(5, 31, 8, 0.1)
    whole = stepped(values, 4)
    monkeypatch.setattr(max_t, "_IN_CACHE", 140)
    monkeypatch.setattr(relabel, "_CELLS", 1)
    pieces = stepped(values, 4)
    assert pieces.p.tolist() == whole.p.tolist()
    assert pieces.critical == pytest.approx(whole.critical)


def test_numpy_is_not_imported_before_it_is_needed() -> None:
    """The words of a comparison are known without numpy: the command line starts at once."""
    program = "import sys, fabricproof.history.stats.shifts; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_row_that_cannot_be_sure_hides_no_other() -> None:
    """Of a row with one number on each side, half as large: its neighbours are as sure as before.

    With 12 runs a p of 5 % is in reach, but not for that row, whose two numbers differ by as much
    in every second labelling.
    """
    values = made(6, 20, 12)
    values[1, 6:] *= 0.9
    alone = stepped(values, 6).p
    values[0] = np.nan
    values[0, [2, 8]] = 1.0, 0.01
    beside = stepped(values, 6).p
    assert beside[0] == 1.0
    assert beside[1] == pytest.approx(alone[1])
    assert beside[1] < 0.01


def test_rows_with_few_numbers_do_not_set_what_the_others_must_pass() -> None:
    """Half of 200 rows have 8 of 24 numbers: a loss of 5 scatters in a whole row is still found."""
    values = made(7, 200, 24)
    values[100:, np.random.default_rng(3).permutation(24)[:16]] = np.nan
    values[0, 12:] *= 0.94
    assert stepped(values, 12).p[0] <= 0.05


def scattering(seed: int, rows: int, sizes: tuple[int, int], scatter: float) -> np.ndarray:
    """Return rows of one level whose second side scatters ``scatter`` times as much."""
    x = np.random.default_rng(seed).normal(0.0, 0.01, (rows, sum(sizes)))
    x[:, sizes[0] :] *= scatter
    return np.exp(x)


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
    told = scatter_told(scattering(3, 60, sizes, ratio), sizes[0])
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


def test_rows_that_scatter_unlike_are_seldom_said_to_have_changed() -> None:
    """7 v 3, a tenth of 100 rows four times as wild on the side of three."""
    random, told = np.random.default_rng(8), 0
    for _ in range(30):
        x = random.normal(0.0, 0.01, (100, 10))
        x[:10, 7:] *= 4.0
        told += stepped(np.exp(x), 7).p.min() <= 0.05
    assert told <= 6
