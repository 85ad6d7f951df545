"""The cost models against schedules that are played, and the laws every cost has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.physics.collective import (
    Operation,
    RankLayout,
    Statistic,
    Wire,
    least_bytes,
    least_mean_us,
)
from fabricproof.physics.collective_models import Channel, best_model, models
from physics.collective.schedules import SCHEDULES
from physics.collective.test_collective_bounds import layouts, played

CHANNEL = Channel(alpha_us=10.0, beta_us_per_byte=0.01, gamma_us_per_byte=0.0)
FREE = Channel(alpha_us=0.0, beta_us_per_byte=1.0, gamma_us_per_byte=0.0)


@given(layouts(), st.integers(0, 100))
def test_a_model_is_never_cheaper_than_its_schedule(layout: RankLayout, shares: int) -> None:
    """What leaves a node is counted; a round inside nodes costs its largest message."""
    size = shares * layout.num_ranks
    for operation, name, play in played(layout, size):
        slow = sum(CHANNEL.alpha_us + busy * CHANNEL.beta_us_per_byte for busy in play.busiest)
        assert models(operation, size, layout, CHANNEL)[name] >= slow * (1 - 1e-9) - 1e-9, name


@given(st.integers(2, 17), st.integers(0, 100))
def test_with_one_rank_on_each_node_the_model_is_its_schedule(ranks: int, shares: int) -> None:
    layout = RankLayout(num_ranks=ranks)
    size = shares * ranks
    for operation, name, play in played(layout, size):
        if (operation, name) == (Operation.GATHER, "binomial"):
            continue  # the model lets all blocks through the root one by one
        slow = sum(CHANNEL.alpha_us + busy * CHANNEL.beta_us_per_byte for busy in play.busiest)
        assert models(operation, size, layout, CHANNEL)[name] == pytest.approx(slow), name


@given(
    layouts(64),
    st.integers(0, 1 << 24),
    st.sampled_from(list(Operation)),
    st.floats(0.1, 1000),
    st.floats(1e-6, 1),
)
def test_every_model_moves_at_least_what_the_cut_needs(
    layout: RankLayout, size: int, operation: Operation, alpha: float, beta: float
) -> None:
    channel = Channel(alpha_us=alpha, beta_us_per_byte=beta, gamma_us_per_byte=0.0)
    due = max(max(each.sent, each.received) for each in least_bytes(operation, size, layout))
    for name, time in models(operation, size, layout, channel).items():
        assert time >= due * beta * (1 - 1e-9), name
        assert time >= alpha, name


@given(layouts(64), st.integers(0, 1 << 24), st.sampled_from(list(Operation)))
def test_no_model_beats_the_floor_of_what_is_printed(
    layout: RankLayout, size: int, operation: Operation
) -> None:
    wire = Wire.plain(latency_us=10.0, rate_mb_s=100.0)
    _, best = best_model(operation, size, layout, CHANNEL)
    for statistic in Statistic:
        floor = least_mean_us(statistic, operation, size, layout, wire)
        assert floor is None or floor <= best * (1 + 1e-9) + 1e-9, statistic


@given(layouts(32), st.integers(1, 1 << 20), st.sampled_from(list(Operation)))
def test_more_bytes_and_slower_wires_cost_no_less(
    layout: RankLayout, size: int, operation: Operation
) -> None:
    best = best_model(operation, size, layout, CHANNEL)[1]
    assert best_model(operation, 2 * size, layout, CHANNEL)[1] >= best
    slower = Channel(alpha_us=20.0, beta_us_per_byte=0.02, gamma_us_per_byte=0.0)
    assert best_model(operation, size, layout, slower)[1] == pytest.approx(2 * best)


def test_every_operation_has_models_and_every_schedule_one_of_them() -> None:
    layout = RankLayout(num_ranks=4)
    for operation in Operation:
        assert models(operation, 64, layout, CHANNEL)
    for operation, name, _, _ in SCHEDULES:
        assert name in models(operation, 64, layout, CHANNEL)


@pytest.mark.parametrize(
    ("operation", "small", "large"),
    [
        (Operation.BCAST, "binomial", "scatter-allgather"),
        (Operation.ALLREDUCE, "recursive doubling", "Rabenseifner"),
        (Operation.ALLGATHER, "recursive doubling", "ring"),
        (Operation.ALLTOALL, "Bruck", "pairwise"),
        (Operation.REDUCE, "binomial", "Rabenseifner"),
    ],
)
def test_the_best_algorithm_changes_with_the_size_as_the_papers_say(
    operation: Operation, small: str, large: str
) -> None:
    layout = RankLayout(num_ranks=16, ranks_per_node=4 if operation is Operation.ALLGATHER else 1)
    channel = Channel(alpha_us=5.0, beta_us_per_byte=0.0001)
    assert best_model(operation, 8, layout, channel)[0] == small
    assert best_model(operation, 1 << 22, layout, channel)[0] == large


def test_known_numbers() -> None:
    """Bcast of 1000 B to 4 ranks: two rounds of 10 + 10 us; a barrier of 4: two rounds of 10."""
    layout = RankLayout(num_ranks=4)
    assert models(Operation.BCAST, 1000, layout, CHANNEL)["binomial"] == pytest.approx(40)
    assert models(Operation.BARRIER, 0, layout, CHANNEL) == {"dissemination": 20}
    ring = models(Operation.ALLREDUCE, 1000, layout, CHANNEL)["ring"]
    assert ring == pytest.approx(6 * (10 + 2.5))


def test_ranks_of_a_node_share_its_rails() -> None:
    one = best_model(Operation.ALLTOALL, 1 << 20, RankLayout(num_ranks=8), FREE)[1]
    two = best_model(Operation.ALLTOALL, 1 << 20, RankLayout(num_ranks=8, ranks_per_node=2), FREE)[
        1
    ]
    assert (one, two) == (7 * 2**20, 12 * 2**20)


def test_the_mean_has_a_floor_only_where_all_wait_for_all() -> None:
    wire = Wire.plain(latency_us=2.0, rate_mb_s=10.0)
    layout = RankLayout(num_ranks=4)
    mean = Statistic.MEAN_OF_RANKS
    assert least_mean_us(mean, Operation.BCAST, 1000, layout, wire) is None
    assert least_mean_us(mean, Operation.BARRIER, 0, layout, wire) == pytest.approx(1.5)
    assert least_mean_us(mean, Operation.ALLREDUCE, 1000, layout, wire) == pytest.approx(76.5)
    # 3 blocks leave the last rank's node one by one: (102 + 202 + 302) / 4.
    assert least_mean_us(mean, Operation.ALLTOALL, 1000, layout, wire) == pytest.approx(151.5)
    stream = least_mean_us(
        Statistic.RANK_ZERO_STREAM, Operation.ALLTOALL, 1000, layout, wire, repetitions=10
    )
    assert stream == pytest.approx(0.8 * 300)
    assert least_mean_us(Statistic.ONE_RANK, Operation.ALLTOALL, 1000, layout, wire) is None


def test_on_one_node_nothing_has_a_floor() -> None:
    wire = Wire.plain(latency_us=2.0, rate_mb_s=10.0)
    alone = RankLayout(num_ranks=4, ranks_per_node=4)
    for statistic in Statistic:
        assert least_mean_us(statistic, Operation.ALLREDUCE, 1000, alone, wire) is None


def test_a_rank_that_gets_no_element_waits_for_nobody() -> None:
    """OSU's reduce_scatter of 4 bytes over 8 ranks leaves four of them without any."""
    wire = Wire.plain(latency_us=2.0, rate_mb_s=10.0)
    layout = RankLayout(num_ranks=8)
    mean, scatter = Statistic.MEAN_OF_RANKS, Operation.REDUCE_SCATTER
    assert least_mean_us(mean, scatter, 4, layout, wire) is None
    assert least_mean_us(mean, scatter, 31, layout, wire) is None
    assert least_mean_us(mean, scatter, 32, layout, wire) is not None
    assert least_mean_us(mean, Operation.ALLREDUCE, 0, layout, wire) is None
