"""How long a leg measures, from its command lines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.history.cost.case import (
    IMB_SIZE_SECONDS,
    MessageRounds,
    assumed_path,
    model_seconds,
    planned_rounds,
)
from fabricproof.job.collective_commands import hpcc_seconds
from fabricproof.job.commands import make_job, plan_ping_pong, plan_windowed
from fabricproof.job.leg import Leg
from fabricproof.physics.collective import RankLayout
from fabricproof.verdict.value import at_most
from planned import make_planned_leg


@pytest.mark.parametrize(
    ("suite", "argv", "expected"),
    [
        (
            "osu",
            ("osu_bw", "-m", "1:4", "-i", "10", "-x", "2", "-W", "64"),
            [MessageRounds(size=size, rounds=12, window=64) for size in (1, 2, 4)],
        ),
        (
            "osu-mpi4py",
            ("python", "-EsP", "runner.py", "osu_bw.py", "1,2:5:1:8", "4:3:0:4"),
            [
                MessageRounds(size=1, rounds=6, window=8),
                MessageRounds(size=2, rounds=6, window=8),
                MessageRounds(size=4, rounds=3, window=4),
            ],
        ),
        (
            "imb",
            ("IMB-MPI1", "PingPong", "-msglog", "19:20", "-iter", "100,8"),
            [MessageRounds(size=2**19, rounds=16), MessageRounds(size=2**20, rounds=8)],
        ),
    ],
)
def test_the_repetitions_of_a_command_are_read(
    suite: str, argv: tuple[str, ...], expected: list[MessageRounds]
) -> None:
    assert planned_rounds(make_planned_leg(suite, "x", argv)) == expected


@pytest.mark.parametrize(
    "argv", [("osu_x",), ("osu_x", "-m"), ("osu_x", "-m", "all", "-i", "9"), ("osu_x", "-m", "1:4")]
)
def test_a_command_of_another_kind_says_nothing(argv: tuple[str, ...]) -> None:
    leg = make_planned_leg("osu", "osu_x", argv)
    assert planned_rounds(leg) == []
    assert model_seconds(leg) == 0


def test_a_known_latency_counts_where_it_is_the_smaller() -> None:
    free = make_planned_leg("osu", "osu_latency", ("osu_latency",))
    known = replace(free, references={"latency": at_most(3.0, origin="site")})
    assert assumed_path(free)[1] > 3.0
    assert assumed_path(known)[1] == 3.0


def test_messages_in_turn_take_both_ways() -> None:
    argv = ("p", "-m", "1048576:1048576", "-i", "10", "-x", "0")
    one_way = model_seconds(make_planned_leg("osu", "osu_put_latency", argv))
    assert model_seconds(make_planned_leg("osu", "osu_latency", argv)) == pytest.approx(2 * one_way)


def test_imb_runs_all_of_it_once_unseen_and_its_p2p_does_not() -> None:
    options = ("PingPong", "-msglog", "0:20", "-iter", "100,8")
    mpi1 = model_seconds(make_planned_leg("imb", "PingPong", ("IMB-MPI1", *options)))
    p2p = model_seconds(make_planned_leg("imb", "PingPong", ("bin/IMB-P2P", *options)))
    assert mpi1 / p2p == pytest.approx(2.4 / 1.2)


def test_the_memory_of_one_machine_has_a_time_too() -> None:
    argv = ("osu_bw", "-m", "1:1024", "-i", "10", "-W", "64")
    assert model_seconds(make_planned_leg("osu", "osu_bw", argv, fabric=None)) > 0


@given(seconds=st.floats(1.0, 60.0), program=st.sampled_from(["osu_bw", "osu_latency"]))
def test_the_model_gives_back_the_budget_that_the_effort_was_made_for(
    seconds: float, program: str
) -> None:
    leg = make_planned_leg("osu", program, (program,))
    rate, latency = assumed_path(leg)
    plan = plan_windowed if program == "osu_bw" else plan_ping_pong
    effort = plan(max_size=2**20, rate_mb_s=rate, latency_us=latency, seconds=seconds)
    job = make_job("osu", program, (program,), effort)
    assert model_seconds(replace(leg, commands=job.commands)) == pytest.approx(seconds, rel=0.5)


def collective(suite: str, program: str, *argv: str, nodes: int = 4, here: int = 1) -> Leg:
    leg = make_planned_leg(suite, program, argv)
    return replace(leg, num_nodes=nodes, ranks_per_node=here)


@pytest.mark.parametrize(
    ("argv", "sizes"),
    [
        (("osu_bcast", "-f", "-m", "4:16", "-i", "9", "-x", "1"), (4, 8, 16)),
        (("osu_allreduce", "-f", "-m", "16", "-i", "9", "-x", "1"), (4, 8, 16)),
        (("osu_barrier", "-f", "-i", "9", "-x", "1"), (0,)),
    ],
)
def test_a_collective_says_its_sizes_in_the_words_of_its_program(
    argv: tuple[str, ...], sizes: tuple[int, ...]
) -> None:
    rounds = planned_rounds(collective("osu", argv[0], *argv))
    assert [(each.size, each.rounds) for each in rounds] == [(size, 10) for size in sizes]


def test_a_barrier_of_imb_has_rounds_and_no_size() -> None:
    options = ("-npmin", "4", "-iter", "200,1000000", "-iter_policy", "off")
    (only,) = planned_rounds(collective("imb", "Barrier", "IMB-MPI1", "Barrier", *options))
    assert (only.size, only.rounds) == (0, 200)


def test_more_nodes_take_a_collective_longer_and_imb_runs_it_unseen_too() -> None:
    argv = ("osu_allgather", "-f", "-m", "4:65536", "-i", "50", "-x", "5")
    two, four = (
        model_seconds(collective("osu", "osu_allgather", *argv, nodes=nodes)) for nodes in (2, 4)
    )
    assert 0 < two < four
    said = ("-msglog", "2:16", "-iter", "55,1000000")
    imb = model_seconds(collective("imb", "Allgather", "IMB-MPI1", "Allgather", *said))
    assert imb == pytest.approx(2.4 * four + 15 * IMB_SIZE_SECONDS)


def test_a_non_blocking_collective_runs_alone_and_beside_a_computation() -> None:
    options = ("-f", "-m", "4:65536", "-i", "50", "-x", "5")
    plain = model_seconds(collective("osu", "osu_allgather", "osu_allgather", *options))
    beside = model_seconds(collective("osu", "osu_iallgather", "osu_iallgather", *options))
    assert beside == pytest.approx(3 * plain)


def test_rings_take_what_their_messages_take() -> None:
    leg = collective("hpcc", "LatencyBandwidth", "bash", "hpcc.sh", "hpcc")
    ranks = RankLayout(num_ranks=4)
    assert model_seconds(leg) == pytest.approx(hpcc_seconds(leg.rules().fabric, ranks))
