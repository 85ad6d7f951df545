"""What programs are told, and the bytes foretold from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.benchmarks.catalogue import SUITES
from fabricproof.core.errors import ConfigError
from fabricproof.stacks.workload import (
    PORT_RUNNER,
    BytesMoved,
    Segment,
    command_lines,
    expected_bytes,
    imb_binary,
)

SMALL = Segment(sizes=(1, 2, 4), iterations=100, warmups=10, window_size=64)
LARGE = Segment(sizes=(16384, 32768), iterations=3, warmups=2, window_size=16)

segments = st.builds(
    lambda low, count, iterations, warmups, window: Segment(
        sizes=tuple(2 ** (low + step) for step in range(count)),
        iterations=iterations,
        warmups=warmups,
        window_size=window,
    ),
    st.integers(0, 15),
    st.integers(1, 6),
    st.integers(1, 100),
    st.integers(0, 10),
    st.integers(1, 64),
)


def test_the_ports_measure_all_segments_in_one_run():
    assert command_lines("osu-mpi4py", "osu_bw", ["py", "p.py"], [SMALL, LARGE]) == (
        ("py", "p.py", "1,2,4:100:10:64", "16384,32768:3:2:16"),
    )


def test_the_c_programs_of_osu_need_a_run_for_each_segment():
    small, large = command_lines("osu", "osu_bw", ["osu_bw"], [SMALL, LARGE])
    assert small == ("osu_bw", "-m", "1:4", "-i", "100", "-x", "10", "-W", "64")
    assert large == ("osu_bw", "-m", "16384:32768", "-i", "3", "-x", "2", "-W", "16")
    (latency,) = command_lines("osu", "osu_latency", ["osu_latency"], [SMALL])
    assert "-W" not in latency


@pytest.mark.parametrize("sizes", [(1, 4), (3, 6), (8, 4), (1, 1), (-1, 1), ()])
def test_sizes_that_cannot_be_measured_are_refused(sizes: tuple[int, ...]):
    with pytest.raises(ConfigError):
        command_lines("osu", "osu_bw", ["x"], [Segment(sizes=sizes, iterations=1, warmups=0)])


def test_size_zero_is_for_latency_only():
    zero = Segment(sizes=(0, 1, 2), iterations=1, warmups=0)
    assert "0:2" in command_lines("osu", "osu_latency", ["x"], [zero])[0]
    with pytest.raises(ConfigError, match="powers of two"):
        command_lines("osu", "osu_bw", ["x"], [zero])


def test_no_iteration_and_an_unknown_suite_are_refused():
    with pytest.raises(ConfigError, match="at least one iteration"):
        Segment(sizes=(1,), iterations=0, warmups=0)
    with pytest.raises(ConfigError, match="unknown suite"):
        command_lines("nccl", "all_reduce", ["x"], [SMALL])


@given(st.lists(segments, min_size=1, max_size=3))
def test_osu_range_holds_exactly_the_segments_sizes(parts: list[Segment]):
    for part, line in zip(parts, command_lines("osu", "osu_bw", ["x"], parts), strict=True):
        low, high = (int(text) for text in line[2].split(":"))
        assert (part.sizes[0], part.sizes[-1]) == (low, high)


def test_bytes_of_a_bandwidth_run():
    moved = expected_bytes("osu-mpi4py", "osu_bw", [LARGE])
    payload = 5 * 16 * (16384 + 32768)
    assert BytesMoved(sent_by_first=payload, sent_by_second=5 * 2) == moved


def test_bytes_and_messages_of_a_ping_pong():
    moved = expected_bytes("osu", "osu_latency", [SMALL])
    assert moved == BytesMoved(
        sent_by_first=110 * 7, sent_by_second=110 * 7, messages_by_first=330, messages_by_second=330
    )


def test_bytes_of_imb_are_those_of_its_measured_repetitions():
    told, once = Segment(sizes=(16384, 32768), iterations=3, warmups=0), 16384 + 32768
    ping = expected_bytes("imb", "PingPong", [told])
    assert ping is not None
    assert 3 * once == ping.sent_by_first
    p2p = expected_bytes("imb", "P2P/PingPong", [told])
    assert p2p is not None
    assert 3 * once == p2p.sent_by_first


def test_one_sided_traffic_has_a_direction():
    put = expected_bytes("osu", "osu_put_bw", [LARGE])
    get = expected_bytes("osu", "osu_get_bw", [LARGE])
    assert put is not None
    assert get is not None
    assert (put.sent_by_first, put.sent_by_second) == (get.sent_by_second, get.sent_by_first)
    assert put.sent_by_second == 0


def test_pairs_multiply_where_the_program_uses_them():
    two = expected_bytes("osu", "osu_mbw_mr", [LARGE])
    eight = expected_bytes("osu", "osu_mbw_mr", [LARGE], num_ranks=8)
    assert two is not None
    assert eight is not None
    assert 4 * two.sent_by_first == eight.sent_by_first
    assert expected_bytes("imb", "PingPong", [LARGE]) == expected_bytes(
        "imb", "PingPong", [LARGE], num_ranks=8
    )


@pytest.mark.parametrize("program", ["osu_allgather", "Unirandom", "osu_bw_of_tomorrow"])
def test_traffic_that_cannot_be_foretold_is_none(program: str):
    suite = "imb" if program == "Unirandom" else "osu"
    assert expected_bytes(suite, program, [LARGE]) is None


@given(st.sampled_from(["osu_bw", "osu_latency", "osu_bibw"]), st.lists(segments, min_size=1))
def test_bytes_add_up_over_segments(program: str, parts: list[Segment]):
    whole = expected_bytes("osu", program, parts)
    single = [expected_bytes("osu", program, [part]) for part in parts]
    assert whole is not None
    assert whole.sent_by_first == sum(each.sent_by_first for each in single if each)
    assert whole.sent_by_second == sum(each.sent_by_second for each in single if each)


def test_every_foretold_imb_program_has_a_binary():
    assert imb_binary("Unidir_put") == "IMB-RMA"
    assert imb_binary("osu_bw") is None
    assert imb_binary("Iallreduce_pure") == "IMB-NBC"


def test_port_runner_is_shipped_and_eleven_ports_are_known():
    assert PORT_RUNNER.is_file()
    assert len([row for row in SUITES["osu-mpi4py"] if row.has_port]) == 11
