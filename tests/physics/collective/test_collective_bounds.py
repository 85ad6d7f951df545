"""The cut-set bounds against algorithms that are played message by message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError
from fabricproof.physics.collective import NodeBytes, Operation, RankLayout, least_bytes
from physics.collective.schedules import SCHEDULES, Play


@st.composite
def layouts(draw: st.DrawFn, most: int = 17) -> RankLayout:
    return RankLayout(
        num_ranks=draw(st.integers(2, most)), ranks_per_node=draw(st.sampled_from([1, 2, 3, 4, 8]))
    )


def played(layout: RankLayout, size: int) -> list[tuple[Operation, str, Play]]:
    even = layout.num_ranks & (layout.num_ranks - 1) == 0
    return [
        (operation, name, play(layout, size))
        for operation, name, play, powers_only in SCHEDULES
        if even or not powers_only
    ]


@given(layouts(), st.integers(0, 1000))
def test_no_algorithm_moves_less_than_the_bound(layout: RankLayout, size: int) -> None:
    size *= layout.num_ranks  # whole shares
    for operation, name, play in played(layout, size):
        for node, bound in enumerate(least_bytes(operation, size, layout)):
            where = f"{operation} {name} node {node} of {layout}"
            assert play.sent[node] >= bound.sent - 1e-6, where
            assert play.received[node] >= bound.received - 1e-6, where


@given(layouts(), st.integers(0, 10**9), st.sampled_from(list(Operation)))
def test_what_must_enter_somewhere_must_leave_somewhere(
    layout: RankLayout, size: int, operation: Operation
) -> None:
    bounds = least_bytes(operation, size, layout)
    assert len(bounds) == layout.num_nodes
    assert all(bound.sent >= 0 and bound.received >= 0 for bound in bounds)
    if operation in {Operation.ALLTOALL, Operation.GATHER, Operation.SCATTER}:
        # Every block has one sender and one receiver: the bound is exact.
        assert sum(bound.sent for bound in bounds) == sum(bound.received for bound in bounds)


@given(st.integers(1, 64), st.sampled_from(list(Operation)))
def test_on_one_node_nothing_must_cross(per_node: int, operation: Operation) -> None:
    layout = RankLayout(num_ranks=max(2, per_node), ranks_per_node=max(2, per_node))
    assert least_bytes(operation, 1 << 20, layout) == (NodeBytes(sent=0, received=0),)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Operation.BCAST, [(100, 0), (0, 100)]),
        (Operation.REDUCE, [(0, 100), (100, 0)]),
        (Operation.ALLREDUCE, [(100, 100), (100, 100)]),
        (Operation.ALLGATHER, [(200, 200), (200, 200)]),
        (Operation.ALLTOALL, [(400, 400), (400, 400)]),
        (Operation.GATHER, [(0, 200), (200, 0)]),
        (Operation.SCATTER, [(200, 0), (0, 200)]),
        (Operation.REDUCE_SCATTER, [(50, 50), (50, 50)]),
        (Operation.BARRIER, [(0, 0), (0, 0)]),
    ],
)
def test_two_nodes_of_two_ranks(operation: Operation, expected: list[tuple[int, int]]) -> None:
    found = least_bytes(operation, 100, RankLayout(num_ranks=4, ranks_per_node=2))
    assert [(each.sent, each.received) for each in found] == expected


def test_the_schedules_for_which_the_bound_is_tight() -> None:
    layout = RankLayout(num_ranks=8, ranks_per_node=2)
    plays = {(operation, name): play for operation, name, play in played(layout, 800)}
    tight = plays[Operation.ALLTOALL, "pairwise"]
    bounds = least_bytes(Operation.ALLTOALL, 800, layout)
    assert tight.sent == [bound.sent for bound in bounds]
    tight = plays[Operation.ALLGATHER, "ring"]
    bounds = least_bytes(Operation.ALLGATHER, 800, layout)
    # The ring's last block need not come back to its node: 7 of 8 ranks' blocks pass each border.
    assert [bound.received for bound in bounds] == [4800] * 4
    assert tight.received == [5600] * 4


def test_runs_add_up() -> None:
    assert NodeBytes(sent=1, received=2).times(3) + NodeBytes(sent=1, received=1) == NodeBytes(
        sent=4, received=7
    )


@pytest.mark.parametrize(("ranks", "per_node"), [(1, 1), (2, 0), (0, 1)])
def test_a_layout_that_cannot_be_is_refused(ranks: int, per_node: int) -> None:
    with pytest.raises(ConfigError, match="impossible layout"):
        RankLayout(num_ranks=ranks, ranks_per_node=per_node)


def test_a_layout_with_a_short_last_node() -> None:
    layout = RankLayout(num_ranks=5, ranks_per_node=2)
    assert layout.num_nodes == 3
    assert [list(layout.ranks_of(node)) for node in range(3)] == [[0, 1], [2, 3], [4]]
