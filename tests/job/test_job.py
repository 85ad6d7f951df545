"""From an effort to command lines, and what they are foretold to move."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError
from fabricproof.job.commands import Effort, make_job, plan_ping_pong, plan_windowed, powers_of_two

EFFORT = Effort(
    sizes=powers_of_two(65536), window_size=16, small_window_size=64, iterations=100,
    large_iterations=5, warmups=10, large_warmups=2,
)  # fmt: skip
SMALL = sum(size for size in EFFORT.sizes if size <= 8192)
LARGE = sum(size for size in EFFORT.sizes if size > 8192)


def test_the_c_programs_run_once_for_small_and_once_for_large_messages() -> None:
    job = make_job("osu", "osu_bw", ("osu_bw",), EFFORT)
    assert job.commands == (
        ("osu_bw", "-m", "1:8192", "-i", "100", "-x", "10", "-W", "64"),
        ("osu_bw", "-m", "16384:65536", "-i", "5", "-x", "2", "-W", "16"),
    )
    assert job.sizes == EFFORT.sizes
    assert len(make_job("osu", "osu_bw", ("osu_bw",), replace(EFFORT, sizes=(1, 2))).commands) == 1


def test_the_ports_measure_everything_in_one_run() -> None:
    (command,) = make_job("osu-mpi4py", "osu_bw", ("python", "osu_bw.py"), EFFORT).commands
    assert command[:2] == ("python", "osu_bw.py")
    assert command[-1] == "16384,32768,65536:5:2:16"


def test_the_bytes_of_a_window_are_foretold() -> None:
    job = make_job("osu", "osu_bw", ("osu_bw",), EFFORT)
    assert job.traffic.exact is not None
    forth, back = job.traffic.exact
    assert forth == 110 * 64 * SMALL + 7 * 16 * LARGE
    assert 0 < back < forth / 1000
    assert job.traffic.messages is None


def test_the_bytes_of_a_ping_pong_are_foretold_in_both_directions() -> None:
    job = make_job("osu", "osu_latency", ("osu_latency",), EFFORT)
    moved = 110 * SMALL + 7 * LARGE
    messages = 110 * 14 + 7 * 3
    assert job.traffic.exact == (moved, moved)
    assert job.traffic.messages == (messages, messages)


def test_a_get_moves_the_other_way() -> None:
    job = make_job("osu", "osu_get_bw", ("osu_get_bw",), EFFORT)
    assert job.traffic.exact is not None
    assert job.traffic.exact[0] < job.traffic.exact[1]


@pytest.mark.parametrize("suite", ["osu", "osu-mpi4py", "imb"])
@pytest.mark.parametrize("program", ["osu_allreduce", "osu_mystery", "Corandom", "Bcast"])
def test_a_program_whose_traffic_is_unknown_is_refused(suite: str, program: str) -> None:
    with pytest.raises(ConfigError, match="nobody can say how many bytes"):
        make_job(suite, program, (program,), EFFORT)


@pytest.mark.parametrize(
    ("program", "per_message"),
    [
        ("PingPong", (1, 1)),
        ("PingPing", (1, 1)),
        ("Sendrecv", (1, 1)),
        ("Exchange", (2, 2)),
        ("P2P/PingPong", (1, 1)),
        ("Unidir_put", (1, 0)),
        ("Unidir_get", (0, 1)),
    ],
)
def test_imb_says_itself_how_often_each_size_ran(
    program: str, per_message: tuple[int, int]
) -> None:
    job = make_job("imb", program, ("IMB", program), EFFORT)
    assert job.traffic.exact is None
    assert job.traffic.per_repetition == per_message
    assert len(job.commands) == 1


def test_imb_is_asked_for_the_sizes_of_the_effort() -> None:
    job = make_job("imb", "PingPong", ("IMB-MPI1", "PingPong"), EFFORT)
    (command,) = job.commands
    assert command[command.index("-msglog") + 1] == "0:16"
    assert job.sizes == (0, *EFFORT.sizes)


def test_imb_p2p_has_no_empty_message_and_the_others_do() -> None:
    sizes = {
        program: make_job("imb", program, ("IMB", program), EFFORT).sizes
        for program in ("P2P/PingPong", "Unidir_put", "PingPong")
    }
    assert sizes["P2P/PingPong"] == EFFORT.sizes
    assert sizes["Unidir_put"] == sizes["PingPong"] == (0, *EFFORT.sizes)


@given(
    power=st.integers(min_value=0, max_value=24),
    rate=st.floats(min_value=1.0, max_value=1e5),
    latency=st.floats(min_value=0.5, max_value=1e4),
    seconds=st.floats(min_value=0.05, max_value=100),
    program=st.sampled_from(["osu_bw", "osu_bibw", "osu_latency", "osu_put_bw", "osu_multi_lat"]),
)
def test_every_size_of_any_effort_is_in_exactly_one_command(
    power: int, rate: float, latency: float, seconds: float, program: str
) -> None:
    planner = plan_windowed if program.endswith("bw") else plan_ping_pong
    effort = planner(max_size=2**power, rate_mb_s=rate, latency_us=latency, seconds=seconds)
    job = make_job("osu", program, (program,), effort)
    asked = []
    for command in job.commands:
        low, high = map(int, command[command.index("-m") + 1].split(":"))
        while low <= high:
            asked.append(low)
            low *= 2
    assert tuple(asked) == job.sizes == effort.sizes
    assert job.traffic.exact is not None
    rounds = min(effort.iterations, effort.large_iterations)
    assert max(job.traffic.exact) >= sum(effort.sizes) * rounds


@pytest.mark.parametrize(("suite", "starts"), [("osu", 3), ("osu-mpi4py", 3)])
def test_a_program_starts_anew_above_each_size_asked_for(suite: str, starts: int) -> None:
    job = make_job(suite, "osu_bw", ("osu_bw",), EFFORT, starts_above=(1024, 8192))
    plain = make_job(suite, "osu_bw", ("osu_bw",), EFFORT)
    assert len(job.commands) == starts
    assert "1:1024" in job.commands[0] or job.commands[0][1].startswith("1,2,4,")
    assert "2048" in " ".join(job.commands[1])
    assert (job.sizes, job.traffic.exact) == (plain.sizes, plain.traffic.exact), "the same work"


@given(st.lists(st.sampled_from(EFFORT.sizes), unique=True, max_size=4))
def test_no_size_is_lost_or_measured_twice_however_often_it_starts(above: list[int]) -> None:
    job = make_job("osu-mpi4py", "osu_bw", ("p",), EFFORT, starts_above=sorted(above))
    sizes = [
        int(size)
        for argv in job.commands
        for option in argv[1:]
        for size in option.partition(":")[0].split(",")
    ]
    assert sizes == list(EFFORT.sizes)
    assert len(job.commands) == 1 + len([size for size in above if size < EFFORT.sizes[-1]])


def test_imb_starts_anew_with_one_empty_message_in_all() -> None:
    job = make_job("imb", "Sendrecv", ("IMB-MPI1", "Sendrecv"), EFFORT, starts_above=(1024, 8192))
    spans = [argv[argv.index("-msglog") + 1] for argv in job.commands]
    assert spans == ["0:10", "11:13", "14:16"]
    assert ["-zero_size" in argv for argv in job.commands] == [False, True, True]
    assert job.sizes == (0, *EFFORT.sizes)
    assert len(make_job("imb", "Sendrecv", ("x",), EFFORT).commands) == 1


def test_imb_with_a_window_is_told_it_and_its_bytes_count_windows_and_pairs() -> None:
    job = make_job("imb", "Uniband", ("IMB-MPI1", "Uniband"), EFFORT, num_ranks=4)
    (command,) = job.commands
    assert command[command.index("-window_size") + 1] == "16"
    assert "100,1" in command
    assert command[command.index("-npmin") + 1] == "4"
    assert job.traffic.per_repetition == (16 * 2, 0)
    both = make_job("imb", "Biband", ("IMB-MPI1", "Biband"), EFFORT)
    assert both.traffic.per_repetition == (16, 16)
