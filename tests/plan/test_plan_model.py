"""How long a leg measures, from its command lines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.campaign.effort import plan_ping_pong, plan_windowed
from fabricproof.campaign.job import make_job
from fabricproof.plan.model import Rounds, assumed_road, model_seconds, planned_rounds
from fabricproof.reference import at_most
from planned import make_planned_leg


@pytest.mark.parametrize(
    ("suite", "argv", "expected"),
    [
        (
            "osu",
            ("osu_bw", "-m", "1:4", "-i", "10", "-x", "2", "-W", "64"),
            [Rounds(size=size, rounds=12, window=64) for size in (1, 2, 4)],
        ),
        (
            "osu-mpi4py",
            ("python", "-EsP", "runner.py", "osu_bw.py", "1,2:5:1:8", "4:3:0:4"),
            [
                Rounds(size=1, rounds=6, window=8),
                Rounds(size=2, rounds=6, window=8),
                Rounds(size=4, rounds=3, window=4),
            ],
        ),
        (
            "imb",
            ("IMB-MPI1", "PingPong", "-msglog", "19:20", "-iter", "100,8"),
            [Rounds(size=2**19, rounds=16), Rounds(size=2**20, rounds=8)],
        ),
    ],
)
def test_the_repetitions_of_a_command_are_read(
    suite: str, argv: tuple[str, ...], expected: list[Rounds]
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
    assert assumed_road(free)[1] > 3.0
    assert assumed_road(known)[1] == 3.0


def test_messages_in_turn_take_both_ways() -> None:
    argv = ("p", "-m", "1048576:1048576", "-i", "10", "-x", "0")
    one_way = model_seconds(make_planned_leg("osu", "osu_put_latency", argv))
    assert model_seconds(make_planned_leg("osu", "osu_latency", argv)) == pytest.approx(2 * one_way)


def test_imb_runs_all_of_it_once_unseen_and_its_p2p_does_not() -> None:
    options = ("PingPong", "-msglog", "0:20", "-iter", "100,8")
    mpi1 = model_seconds(make_planned_leg("imb", "PingPong", ("IMB-MPI1", *options)))
    p2p = model_seconds(make_planned_leg("imb", "PingPong", ("bin/IMB-P2P", *options)))
    assert mpi1 / p2p == pytest.approx(2.0 / 1.2)


def test_the_memory_of_one_machine_has_a_time_too() -> None:
    argv = ("osu_bw", "-m", "1:1024", "-i", "10", "-W", "64")
    assert model_seconds(make_planned_leg("osu", "osu_bw", argv, fabric=None)) > 0


@given(seconds=st.floats(1.0, 60.0), program=st.sampled_from(["osu_bw", "osu_latency"]))
def test_the_model_gives_back_the_budget_that_the_effort_was_made_for(
    seconds: float, program: str
) -> None:
    leg = make_planned_leg("osu", program, (program,))
    rate, latency = assumed_road(leg)
    plan = plan_windowed if program == "osu_bw" else plan_ping_pong
    effort = plan(max_size=2**20, rate_mb_s=rate, latency_us=latency, seconds=seconds)
    job = make_job("osu", program, (program,), effort)
    assert model_seconds(replace(leg, commands=job.commands)) == pytest.approx(seconds, rel=0.5)
