"""Rows of groups: blind to the sides, fair to runs that lack some quantities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.history.compare.groups import Members, group_rows, group_values
from fabricproof.history.compare.model import Compared
from fabricproof.history.compare.verdict import group_change, looks_worse
from fabricproof.history.stats.shifts import Change, Shift
from fabricproof.history.store import Key


def key(**changed: object) -> Key:
    """Return a quantity of rail 0 between two nodes."""
    plain: dict[str, object] = {
        "site": "made",
        "partition": "compute",
        "fabric": "ib0",
        "stack": "openmpi5",
        "build": "a",
        "suite": "osu",
        "program": "osu_bw",
        "tool_version": "7.4",
        "check": "RailMatrix",
        "leg": "rail0",
        "rails": "rail0",
        "nodes": "n1,n2",
        "settings": "",
        "quantity": "bandwidth_1MiB",
        "unit": "MB/s",
        "message_size": 1 << 20,
        "better": 1,
    }
    return Key(**{**plain, **changed})  # type: ignore[arg-type]


def one_group(count: int) -> list[Members]:
    """Return one group of the first ``count`` rows."""
    place = ("rail", "r")
    return [Members(places=(place,), metric="m", better=1, band="long", rows=tuple(range(count)))]


def test_a_quantity_is_in_its_rail_pair_nodes_stack_and_program() -> None:
    """Every place that an administrator could look for it, once."""
    found = {each.places[0] for each in group_rows([key()], merged=False)}
    assert found == {
        ("overall", "all"),
        ("rail", "rail0"),
        ("pair", "n1 - n2"),
        ("node", "n1"),
        ("node", "n2"),
        ("stack", "openmpi5"),
        ("program", "osu_bw"),
    }
    (only,) = group_rows([key()])
    assert set(only.places) == found, "groups of the very same quantities are one"


def test_what_may_differ_makes_no_group() -> None:
    """A ``*`` is no node, no stack and no rail."""
    several = [key(nodes="*", stack="*", rails="*", program="*")]
    assert {each.places[0][0] for each in group_rows(several, merged=False)} == {"overall"}


def test_bandwidth_and_latency_are_never_one_row() -> None:
    """A group has one direction."""
    other = key(quantity="latency_8B", unit="us", better=-1, program="osu_latency")
    assert {(each.metric, each.better) for each in group_rows([key(), other])} == {
        ("bandwidth", 1),
        ("latency", -1),
    }


def test_many_nodes_blame_no_single_one() -> None:
    """A collective of four nodes is in no node's row."""
    found = group_rows([key(nodes="n1,n2,n3,n4")], merged=False)
    assert "node" not in {each.places[0][0] for each in found}


@settings(deadline=None)
@given(
    st.lists(st.floats(0.5, 2), min_size=2, max_size=6),
    st.lists(st.floats(1, 1e4), min_size=1, max_size=8),
)
def test_a_change_common_to_all_is_found_exactly(runs: list[float], levels: list[float]) -> None:
    """Where every quantity is level x run, the row is the run's factor, up to one constant."""
    values = np.outer(levels, runs)
    row = group_values(values, one_group(len(levels)), [0] * len(levels))[0]
    assert row / row[0] == pytest.approx(np.array(runs) / runs[0])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6))
def test_missing_cells_do_not_move_a_run(seed: int) -> None:
    """A run that lacks the slow quantities is no faster run: level x run with holes is exact."""
    lot = np.random.default_rng(seed)
    runs, levels = lot.uniform(0.8, 1.2, 6), lot.uniform(1, 1000, 12)
    values = np.outer(levels, runs)
    holes = lot.uniform(size=values.shape) < 0.3
    holes[:, 0] = False
    holes[0] = False
    values[holes] = np.nan
    row = group_values(values, one_group(12), [0] * 12)[0]
    assert row / row[0] == pytest.approx(runs / runs[0], rel=0.02)


def test_a_run_without_any_is_absent() -> None:
    """A run that has nothing of a group is NaN in its row, not 1."""
    values = np.array([[1.0, np.nan, 2.0], [3.0, np.nan, 6.0]])
    row = group_values(values, one_group(2), [0] * 2)[0]
    assert np.isnan(row[1])
    assert row[2] / row[0] == pytest.approx(2.0)


@pytest.mark.parametrize("half", [2, 5, 12])
def test_what_changed_weighs_as_much_as_what_did_not(half: int) -> None:
    """Half of 40 quantities lost 10 %: the whole reads some -5 %, not -2 %."""
    values = np.exp(np.random.default_rng(half).normal(0, 0.005, (40, 2 * half)))
    values[:20, half:] *= 0.9
    row = group_values(values, one_group(40), [0] * 40)[0]
    change = np.median(row[half:]) / np.median(row[:half]) - 1
    assert change == pytest.approx(0.9**0.5 - 1, abs=0.003)


@settings(deadline=None)
@given(st.permutations(range(6)))
def test_rows_are_blind_to_the_sides(order: list[int]) -> None:
    """Runs in another order give the same numbers in that order: so they may be relabelled."""
    values = np.random.default_rng(3).uniform(1, 2, (5, 6))
    plain = group_values(values, one_group(5), [0] * 5)[0]
    assert group_values(values[:, order], one_group(5), [0] * 5)[0] == pytest.approx(
        plain[list(order)]
    )


@pytest.mark.parametrize(
    ("row", "members", "suspects", "lost", "word"),
    [
        (Change.SAME, {Change.SAME: 3}, 0, 0, Change.SAME),
        (Change.SAME, {Change.SAME: 1, Change.UNDECIDED: 9}, 0, 0, Change.SAME),
        (Change.SAME, {Change.WORSE: 1, Change.SAME: 9}, 0, 0, Change.WORSE),
        (Change.WORSE, {Change.BETTER: 5}, 0, 0, Change.WORSE),
        (Change.SAME, {Change.BETTER: 1}, 0, 0, Change.BETTER),
        (Change.SAME, {Change.UNDECIDED: 4}, 1, 0, Change.UNDECIDED),
        (Change.SAME, {Change.SAME: 4}, 0, 1, Change.UNDECIDED),
        (Change.BETTER, {Change.SAME: 4}, 0, 1, Change.UNDECIDED),
        (Change.UNDECIDED, {Change.SAME: 4}, 0, 0, Change.UNDECIDED),
        (None, {Change.SAME: 4}, 0, 0, Change.UNDECIDED),
        (None, {}, 0, 0, Change.UNDECIDED),
    ],
)
def test_the_word_of_a_group(
    row: Change | None, members: dict[Change, int], suspects: int, lost: int, word: Change
) -> None:
    """WORSE beats all, doubt beats BETTER and SAME, and nothing at all is UNDECIDED."""
    assert group_change(row, members, suspects=suspects, lost=lost, excused=False) is word


def undecided(ratio: float, p: float, first: list[float], second: list[float]) -> Compared:
    """Return a quantity that is UNDECIDED."""
    shift = Shift(
        change=Change.UNDECIDED, ratio=ratio, low=None, high=None, level=None, p=p,
        detectable=None, more_runs=None, num_first=len(first), num_second=len(second),
        median_first=None, median_second=None,
    )  # fmt: skip
    return Compared(
        key=key(),
        shift=shift,
        first={f"a{at}": number for at, number in enumerate(first)},
        second={f"b{at}": number for at, number in enumerate(second)},
    )


@pytest.mark.parametrize(
    ("ratio", "p", "first", "second", "looks"),
    [
        (0.7, 0.9, [10.0, 11, 12], [7.0, 8, 9], True),
        (0.7, 0.15, [10.0, 11], [7.0, 12], True),
        (0.7, 0.9, [10.0, 11, 12], [7.0, 8, 10.5], False),
        (0.7, 0.9, [10.0, 11], [7.0, 8], False),
        (0.98, 0.01, [10.0, 10, 10], [9.8, 9.8, 9.8], False),
        (1.4, 0.01, [7.0, 8, 9], [10.0, 11, 12], False),
    ],
)
def test_what_looks_worse(
    ratio: float, p: float, first: list[float], second: list[float], looks: bool
) -> None:
    """Only what is off to the worse beyond the margin, and apart or hardly by chance."""
    assert looks_worse(undecided(ratio, p, first, second), 0.03) is looks
