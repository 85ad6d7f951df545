"""Laws of the rounds: each pair once, nobody twice in a round, the load of every link."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError
from fabricproof.pairs import Leaves, Order, Schedule, least_rounds, leaves_of


def unequal(sizes: list[int]) -> Leaves:
    leaf_of = np.repeat(np.arange(len(sizes)), sizes)
    names = tuple(f"leaf{number}" for number in range(len(sizes)))
    return Leaves(names=names, leaf_of=leaf_of)


def seen(schedule: Schedule) -> Counter[int]:
    """Return how often each pair is in the rounds, and check that nobody is twice in one."""
    num = schedule.leaves.num_nodes
    keys = []
    for pairs in schedule.rounds():
        assert len(np.unique(pairs)) == pairs.size
        keys.append(pairs.min(axis=1) * num + pairs.max(axis=1))
    unique, counts = np.unique(np.concatenate(keys), return_counts=True)
    assert counts.max() == 1
    return Counter(unique.tolist())


def assert_all_pairs_once(schedule: Schedule) -> None:
    num = schedule.leaves.num_nodes
    assert len(seen(schedule)) == num * (num - 1) // 2


ORDERS = st.sampled_from(list(Order))


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=9), order=ORDERS, seed=st.integers(0, 99)
)
@settings(max_examples=150, deadline=None)
def test_each_pair_once_over_any_leaves(sizes: list[int], order: Order, seed: int) -> None:
    if sum(sizes) < 2:
        sizes = [*sizes, 2]
    schedule = Schedule(order=order, leaves=unequal(sizes), seed=seed)
    assert_all_pairs_once(schedule)
    assert schedule.num_rounds <= max(1.1 * least_rounds(sum(sizes)), least_rounds(sum(sizes)))


@given(leaves=st.integers(2, 40), size=st.integers(1, 50), order=ORDERS)
@settings(max_examples=12, deadline=None)
def test_each_pair_once_over_equal_leaves_up_to_2000_nodes(
    leaves: int, size: int, order: Order
) -> None:
    assert_all_pairs_once(Schedule(order=order, leaves=leaves_of(leaves * size, size)))


@pytest.mark.parametrize("order", list(Order))
def test_2000_nodes(order: Order) -> None:
    schedule = Schedule(order=order, leaves=leaves_of(2000, 40))
    assert schedule.num_rounds == 1999
    assert_all_pairs_once(schedule)


@given(leaves=st.integers(1, 12), size=st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_rounds_are_the_least_but_for_an_odd_number_of_even_leaves(leaves: int, size: int) -> None:
    num = leaves * size
    if num < 2:
        return
    schedule = Schedule(order=Order.LEAFWISE, leaves=leaves_of(num, size))
    extra = schedule.is_leafwise and leaves % 2 == 1 and size % 2 == 0
    assert schedule.num_rounds == least_rounds(num) + extra


@given(leaves=st.integers(2, 12), size=st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_in_a_leafwise_round_all_of_a_leaf_go_to_one_other_leaf(leaves: int, size: int) -> None:
    """With as many uplinks as nodes, and routes by destination, each then carries one flow."""
    tree = leaves_of(leaves * size, size)
    schedule = Schedule(order=Order.LEAFWISE, leaves=tree)
    for pairs in itertools.islice(schedule.rounds(), schedule.num_cross_rounds):
        ends = tree.leaf_of[pairs]
        between = {tuple(each) for each in np.sort(ends, axis=1).tolist() if each[0] != each[1]}
        others = Counter(leaf for each in between for leaf in each)
        assert not schedule.is_leafwise or set(others.values()) <= {1}


def test_random_rounds_follow_their_seed() -> None:
    tree = leaves_of(30, 30)
    one, same, other = (
        Schedule(order=Order.RANDOM, leaves=tree, seed=seed).round(0).tolist() for seed in (1, 1, 2)
    )
    assert one == same != other


def test_a_hole_gives_its_partner_a_bye() -> None:
    tree = unequal([4, 4, 4, 3])
    schedule = Schedule(order=Order.LEAFWISE, leaves=tree)
    assert schedule.num_rounds == 15
    byes = [15 - pairs.size for pairs in schedule.rounds()]
    assert set(byes) == {1}


@pytest.mark.parametrize("order", list(Order))
def test_a_round_of_100000_nodes_comes_alone(order: Order) -> None:
    schedule = Schedule(order=order, leaves=leaves_of(100_000, 40))
    last = schedule.round(schedule.num_rounds - 1)
    assert len(last) == 50_000
    assert len(np.unique(last)) == 100_000


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="no pair"):
        Schedule(order=Order.CIRCLE, leaves=leaves_of(1, 1))
    with pytest.raises(IndexError):
        Schedule(order=Order.CIRCLE, leaves=leaves_of(4, 4)).round(3)


def test_every_pair_of_a_small_machine_by_hand() -> None:
    schedule = Schedule(order=Order.CIRCLE, leaves=leaves_of(4, 4))
    met = {tuple(sorted(pair)) for pairs in schedule.rounds() for pair in pairs.tolist()}
    assert met == set(itertools.combinations(range(4), 2))
