"""Rounds that load the links between switches more than once: what a pair may have, and may not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

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
    load_of_flows,
    loads_of,
    say,
)
from fabricproof.pairs.fabric import spread_of_flows

NODES, PER_LEAF, SPINES = 16, 4, 2
#: what one pair reaches alone, and the least that the reference lets it have, in MB/s
ALONE, LEAST = 2.94, 2.65

LIMITS = Limits(bounds={0: LEAST}, levels={0: ALONE}, origins={0: "physics"})


def measured(order: Order, *, spread: bool, slow: int | None = None) -> tuple[Matrix, Leaves]:
    """Return a full matrix over uplinks two to one; node ``slow`` receives at 40 %."""
    leaves = leaves_of(NODES, PER_LEAF, SPINES)
    random = np.random.default_rng(5)
    source, destination, rounds, value = [], [], [], []
    for number, pairs in enumerate(Schedule(order=order, leaves=leaves, seed=1).rounds()):
        flows = np.concatenate([pairs, pairs[:, ::-1]])
        loads = loads_of(flows, leaves, both_ways=False)
        of = spread_of_flows if spread else load_of_flows
        share = 1 / of(flows[:, 0], flows[:, 1], loads, leaves)
        if slow is not None:
            share = np.where(flows[:, 1] == slow, share * 0.4, share)
        source.append(flows[:, 0])
        destination.append(flows[:, 1])
        rounds.append(np.full(len(flows), number))
        value.append(ALONE * share * np.exp(random.normal(0, 0.01, len(flows))))
    joined = [np.concatenate(each) for each in (source, destination, rounds)]
    matrix = Matrix(
        nodes=tuple(f"n{number}" for number in range(NODES)),
        rails=("rail0",),
        kinds=(Kind(quantity="bandwidth", unit="MB/s"),),
        source=joined[0].astype(np.int32),
        destination=joined[1].astype(np.int32),
        both_ways=np.zeros(len(joined[0]), dtype=bool),
        rail=np.zeros(len(joined[0]), dtype=np.int32),
        round=joined[2].astype(np.int32),
        kind=np.zeros(len(joined[0]), dtype=np.int32),
        value=np.concatenate(value),
        origin="made",
    )
    return matrix, leaves


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("spread", [False, True])
def test_uplinks_two_to_one_are_no_fault_in_any_order(order: Order, spread: bool) -> None:
    matrix, leaves = measured(order, spread=spread)
    judged = judge_matrix(matrix, leaves=leaves, limits=LIMITS)
    assert (judged.verdict, judged.reason) == (
        MatrixVerdict.PASS,
        "nobody stands out, and the level is good (physics)",
    )
    missed = matrix.value < LEAST
    assert missed.any()
    assert judged.contended[missed].all()


def blind(leaves: Leaves) -> Leaves:
    """Return leaves of which nobody says how many uplinks they have."""
    return Leaves(names=leaves.names, leaf_of=leaves.leaf_of, num_spines=0)


def test_without_the_spines_the_same_values_are_undecided_and_spines_would_tell() -> None:
    matrix, leaves = measured(Order.LEAFWISE, spread=True)
    judged = judge_matrix(matrix, leaves=blind(leaves), limits=LIMITS)
    assert judged.verdict is MatrixVerdict.UNDECIDED
    (entry,) = say(judged).undecided
    assert entry.why == "contention"
    assert entry.sentence.startswith("pairs between leaves have 1.468 MB/s over rail0, less")
    assert "--spines" in entry.would_tell


def test_pairs_between_leaves_that_miss_the_reference_one_at_a_time_are_red() -> None:
    # Before, the healthy value of pairs on one leaf spoke for those between leaves too.
    matrix, leaves = measured(Order.LEAFWISE, spread=True)
    matrix = replace(matrix, round=np.full(len(matrix), -1, dtype=np.int32))
    judged = judge_matrix(matrix, leaves=blind(leaves), limits=LIMITS)
    assert (judged.verdict, judged.below) == (MatrixVerdict.FAIL, (0,))


def test_uplinks_slower_than_declared_are_red_whatever_their_load() -> None:
    matrix, leaves = measured(Order.LEAFWISE, spread=True)
    crosses = leaves.crosses(matrix.source, matrix.destination)
    matrix = replace(matrix, value=np.where(crosses, matrix.value * 0.6, matrix.value))
    judged = judge_matrix(matrix, leaves=leaves, limits=LIMITS)
    assert (judged.verdict, judged.below) == (MatrixVerdict.FAIL, (0,))


@pytest.mark.parametrize("order", list(Order))
def test_a_slow_node_is_blamed_behind_loaded_links_too(order: Order) -> None:
    matrix, leaves = measured(order, spread=False, slow=6)
    judged = judge_matrix(matrix, leaves=leaves, limits=LIMITS)
    assert judged.verdict is MatrixVerdict.FAIL
    (blame,) = say(judged).blame
    assert (blame.node, blame.direction) == ("n6", "receive")
    assert blame.share == pytest.approx(0.4, rel=0.05)
