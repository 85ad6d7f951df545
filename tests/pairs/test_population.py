"""What pairs that are measured at once carry together: whole rounds, and leaf to leaf."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_loaded_rounds import ALONE, LIMITS, NODES, measured

from fabricproof.pairs import Order, judge_matrix, populations_of
from fabricproof.pairs.population import Population, Together, population_cells, population_lines


def sums(order: Order, *, slow: int | None = None) -> dict[Together, Population]:
    matrix, leaves = measured(order, slow=slow)
    judged = judge_matrix(matrix, leaves=leaves, limits=LIMITS)
    return {each.together: each for each in populations_of(judged) if each.together is not None}


def test_leaf_to_leaf_carries_what_its_uplinks_do() -> None:
    # 12 rounds between leaves, each of 4 leaves to one other: 48 sums of 4 pairs over 2 uplinks
    found = sums(Order.LEAFWISE)[Together.LEAVES]
    assert found.count == 48
    assert found.mean == pytest.approx(2 * ALONE, rel=0.01)


def test_the_least_round_is_the_bisection() -> None:
    found = sums(Order.LEAFWISE)[Together.ROUND]
    # Rounds between leaves share the uplinks; those on the leaves do not.  One way at a time.
    assert found.count == NODES - 1
    assert found.least == pytest.approx(NODES / 2 * ALONE / 2, rel=0.01)
    assert found.most == pytest.approx(NODES / 2 * ALONE, rel=0.01)


def test_a_slow_node_lowers_what_comes_to_its_leaf() -> None:
    found = sums(Order.LEAFWISE, slow=6)[Together.LEAVES]
    whole = sums(Order.LEAFWISE)[Together.LEAVES]
    assert found.least < 0.9 * whole.least
    assert found.most == pytest.approx(whole.most)


def test_the_record_of_a_matrix_keeps_its_keys() -> None:
    """It stands in records of earlier runs too, of which the page draws pictures."""
    found = sums(Order.LEAFWISE)[Together.ROUND]
    record = found.record()
    assert set(record) == {
        *("quantity", "unit", "rail", "distance", "together", "count", "least", "most", "mean"),
        "deviation",
    }
    assert (record["quantity"], record["together"]) == (found.kind, "all pairs measured at once")


def test_a_number_that_is_none_is_a_dash() -> None:
    """Values at the end of what a number can hold have no deviation: JSON has null there."""
    far = replace(sums(Order.LEAFWISE)[Together.ROUND], deviation=float("inf"))
    assert population_cells(far.record())[5] == "-"


def test_without_rounds_nothing_is_added_up() -> None:
    matrix, leaves = measured(Order.LEAFWISE)
    one_at_a_time = replace(matrix, round=np.full(len(matrix), -1, dtype=np.int32))
    judged = judge_matrix(one_at_a_time, leaves=leaves)
    assert [each.together for each in populations_of(judged)] == [None]


def test_sums_are_rows_of_the_table() -> None:
    matrix, leaves = measured(Order.CIRCLE)
    judged = judge_matrix(matrix, leaves=leaves, limits=LIMITS)
    lines = population_lines(populations_of(judged))
    assert [line.split(",")[1] for line in lines[1:]][1] == " all pairs measured at once"
