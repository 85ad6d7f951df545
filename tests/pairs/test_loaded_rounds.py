"""Rounds that load the links between switches more than once: what a pair may have, and may not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fabricproof.pairs import (
    Kind,
    Leaves,
    Limits,
    Matrix,
    MatrixVerdict,
    Order,
    Schedule,
    judge_matrix,
    leaves_of,
    say,
)

NODES, PER_LEAF = 16, 4
#: what one pair reaches alone, and the least that the reference lets it have, in MB/s
ALONE, LEAST = 2.94, 2.65

LIMITS = Limits(bound=LEAST, level=ALONE, origin="physics")


def measured(order: Order, *, slow: int | None = None) -> tuple[Matrix, Leaves]:
    """Return a full matrix over uplinks two to one; node ``slow`` receives at 40 %."""
    leaves = leaves_of(NODES, PER_LEAF)
    random = np.random.default_rng(5)
    source, destination, rounds, value = [], [], [], []
    for number, pairs in enumerate(Schedule(order=order, leaves=leaves, seed=1).rounds()):
        flows = np.concatenate([pairs, pairs[:, ::-1]])
        first, second = leaves.leaf_of[flows[:, 0]], leaves.leaf_of[flows[:, 1]]
        crosses = first != second
        up, down = (np.bincount(each[crosses], minlength=4) / 2 for each in (first, second))
        load = np.where(crosses, np.maximum(np.maximum(up[first], down[second]), 1), 1)
        share = np.where(flows[:, 1] == slow, 0.4, 1.0) / load
        source.append(flows[:, 0])
        destination.append(flows[:, 1])
        rounds.append(np.full(len(flows), number))
        value.append(ALONE * share * np.exp(random.normal(0, 0.01, len(flows))))
    joined = [np.concatenate(each) for each in (source, destination, rounds)]
    matrix = Matrix(
        nodes=tuple(f"n{number}" for number in range(NODES)), rails=("rail0",),
        kind=Kind(quantity="bandwidth", unit="MB/s"), source=joined[0].astype(np.int32),
        destination=joined[1].astype(np.int32), both_ways=np.zeros(len(joined[0]), dtype=bool),
        rail=np.zeros(len(joined[0]), dtype=np.int32), round=joined[2].astype(np.int32),
        value=np.concatenate(value), origin="made",
    )  # fmt: skip
    return matrix, leaves


def test_pairs_between_leaves_that_miss_the_reference_together_are_undecided() -> None:
    matrix, leaves = measured(Order.LEAFWISE)
    judged = judge_matrix(matrix, leaves=leaves, limits=LIMITS)
    assert judged.verdict is MatrixVerdict.UNDECIDED
    missed = matrix.value < LEAST
    assert missed.any()
    assert judged.contended[missed].all()
    (entry,) = say(judged).undecided
    assert entry.fact == "contention"
    assert entry.text.startswith("pairs between leaves have 1.468 MB/s over rail0, less")
    assert "one at a time" in entry.next_step


def test_pairs_between_leaves_that_miss_the_reference_one_at_a_time_are_red() -> None:
    # Before, the healthy value of pairs on one leaf spoke for those between leaves too.
    matrix, leaves = measured(Order.LEAFWISE)
    matrix = replace(matrix, round=np.full(len(matrix), -1, dtype=np.int32))
    judged = judge_matrix(matrix, leaves=leaves, limits=LIMITS)
    assert (judged.verdict, judged.below_rails) == (MatrixVerdict.FAIL, (0,))
