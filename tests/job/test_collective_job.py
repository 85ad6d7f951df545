"""What collective programs are told, and the least that must be seen of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.benchmarks.catalogue import SUITES, collective_of
from fabricproof.core.errors import ConfigError
from fabricproof.job.collective_commands import BUFFER_BYTES, collective_sizes, make_collective_job
from fabricproof.job.commands import Job
from fabricproof.physics.collective import Operation, RankLayout
from fabricproof.physics.collective_models import Channel

CHANNEL = Channel(alpha_us=50.0, beta_us_per_byte=0.04)
FOUR = RankLayout(num_ranks=4, ranks_per_node=2)


def job(suite: str, program: str, layout: RankLayout = FOUR, seconds: float = 1.0) -> object:
    return make_collective_job(
        suite, program, ("prog",), layout, max_size=65536, channel=CHANNEL, seconds=seconds
    )


def test_sizes_double_from_a_float_as_far_as_buffers_allow() -> None:
    assert collective_sizes(Operation.BCAST, FOUR, 32) == (4, 8, 16, 32)
    assert collective_sizes(Operation.BCAST, FOUR, 33) == (4, 8, 16, 32)
    assert collective_sizes(Operation.BARRIER, FOUR, 32) == ()
    many = RankLayout(num_ranks=4096)
    assert collective_sizes(Operation.ALLTOALL, many, 1 << 20)[-1] * 4096 == BUFFER_BYTES
    assert collective_sizes(Operation.ALLREDUCE, many, 1 << 20)[-1] == 1 << 20


def test_osu_is_told_small_and_large_sizes_apart() -> None:
    small, large = job("osu", "osu_alltoall").commands
    assert small[:4] == ("prog", "-f", "-m", "4:8192")
    assert large[:4] == ("prog", "-f", "-m", "16384:65536")
    assert small[4] == large[4] == "-i"
    assert int(small[5]) > int(large[5]) >= 5


def test_imb_runs_all_ranks_alone_and_repetitions_that_hold() -> None:
    (command,) = job("imb", "Allreduce").commands
    assert command[1:5] == ("-npmin", "4", "-msglog", "2:16")
    assert command[5] == "-iter"
    assert command[7:] == ("-iter_policy", "off", "-zero_size", "off")


@pytest.mark.parametrize(
    ("suite", "program", "options"),
    [("osu", "osu_barrier", 6), ("imb", "Barrier", 9), ("osu-mpi4py", "osu_barrier", 2)],
)
def test_a_barrier_has_no_sizes_and_its_packets_are_counted(
    suite: str, program: str, options: int
) -> None:
    made = job(suite, program)
    assert made.sizes == ()
    assert "-m" not in made.commands[0]
    assert "-msglog" not in made.commands[0]
    assert len(made.commands[0]) == options
    assert all(least[:2] == (0, 0) and least[2] >= 5 for least in made.traffic.at_least)


def test_the_least_bytes_are_all_repetitions_of_all_sizes() -> None:
    made = job("osu", "osu_bcast")
    rounds = [
        (int(command[5]) + int(command[7]), command[3].split(":")) for command in made.commands
    ]
    due = sum(
        times * sum(2**step for step in range(2, 17) if int(low) <= 2**step <= int(high))
        for times, (low, high) in rounds
    )
    assert made.traffic.at_least == ((due, 0, 0), (0, due, 0))


def test_imb_is_not_asked_for_its_own_warm_ups() -> None:
    made = job("imb", "Bcast")
    repetitions = int(made.commands[0][6].split(",")[0])
    assert made.traffic.at_least[0][0] == repetitions * (2**17 - 4)


@settings(deadline=None)
@given(
    st.sampled_from(["osu_bcast", "osu_allreduce", "osu_alltoall", "osu_barrier", "osu_ibcast"]),
    st.integers(2, 64),
    st.sampled_from([1, 2, 4]),
    st.floats(0.01, 10),
)
def test_a_budget_is_kept_as_far_as_the_model_knows(
    program: str, ranks: int, per_node: int, seconds: float
) -> None:
    layout = RankLayout(num_ranks=ranks, ranks_per_node=per_node)
    made = job("osu", program, layout, seconds)
    assert len(made.traffic.at_least) == layout.num_nodes
    more = job("osu", program, layout, 2 * seconds)
    for small, large in zip(made.traffic.at_least, more.traffic.at_least, strict=True):
        assert small <= large


def test_a_pair_program_is_no_collective() -> None:
    with pytest.raises(ConfigError, match="not a known collective"):
        job("osu", "osu_latency")


def test_every_collective_of_imb_is_known_and_has_its_binary() -> None:
    rows = [row for row in SUITES["imb"] if row.collective is not None]
    assert len(rows) == 13 * 3 + 1
    for row in rows:
        known = collective_of("imb", row.name)
        assert known is not None
        plain = row.name.removesuffix("_pure")
        assert known.non_blocking == (row.binary == "IMB-NBC" and plain == row.name)


def packets(made: Job) -> set[int]:
    return {each[2] for each in made.traffic.at_least}


def test_packets_are_counted_where_everybody_waits_for_everybody() -> None:
    eight = RankLayout(num_ranks=8)
    assert packets(job("osu", "osu_bcast", eight)) == {0}
    summed, shared = (
        job("osu", program, eight) for program in ("osu_allreduce", "osu_reduce_scatter")
    )
    small, large = (int(command[5]) for command in summed.commands)
    assert packets(summed) == {12 * small + 3 * large}
    small, large = (int(command[5]) for command in shared.commands)
    # 4, 8 and 16 bytes leave some rank without an element.
    assert packets(shared) == {9 * small + 3 * large}
