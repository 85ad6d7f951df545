"""What ``peer.sh`` is told, and how long that takes."""

from __future__ import annotations

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.job.commands import (
    ALL_SIZES,
    ANSWER_SECONDS,
    MAX_PERFTEST_ITERATIONS,
    MIN_PERFTEST_ITERATIONS,
    Pace,
    find_tool,
    peer_job,
)

SLOW = Pace(rate_mb_s=23.5, latency_us=500.0, seconds=2.0)
FDR = Pace(rate_mb_s=6200.0, latency_us=2.0, seconds=2.0)


def test_one_connection_and_several() -> None:
    job = peer_job("iperf3", "iperf3", "rail0", SLOW)
    (one,) = job.commands
    assert one == ("bash", "peer.sh", str(2 + ANSWER_SECONDS), "rail0", "iperf3", "-t", "2")
    assert (job.traffic.exact, job.sizes) == (None, ())  # a timed run's bytes are not foretold
    (many,) = peer_job("iperf3", "iperf3", "rail0", SLOW, streams=8).commands
    assert many[-2:] == ("-P", "8")
    (argv,) = peer_job("iperf", "iperf", "rail0", SLOW, streams=8).commands
    assert argv[-4:] == ("-P", "8", "-f", "k")  # iperf is asked for more digits


def test_a_fast_port_is_measured_at_all_sizes() -> None:
    job = peer_job("perftest", "ib_write_bw", "mlx5_0:1", FDR)
    (argv,) = job.commands
    rounds = int(argv[-1])
    assert argv[3:6] == ("mlx5_0:1", "ib_write_bw", "-a")
    assert MIN_PERFTEST_ITERATIONS <= rounds <= MAX_PERFTEST_ITERATIONS
    assert job.sizes == ALL_SIZES
    assert job.traffic.exact == (rounds * sum(ALL_SIZES), 0)
    assert rounds * sum(ALL_SIZES) / FDR.rate_mb_s <= FDR.seconds * 1e6


def test_a_slow_port_is_measured_at_the_programs_own_size() -> None:
    bandwidth = peer_job("perftest", "ib_write_bw", "rxe0:1", SLOW)
    assert bandwidth.sizes == (65536,)
    latency = peer_job("perftest", "ib_write_lat", "rxe0:1", SLOW)
    assert latency.sizes == (2,)
    assert latency.commands[0][-4:-1] == ("-s", "2", "-n")


def test_what_is_read_comes_back_and_a_latency_goes_both_ways() -> None:
    for program, forth, back in (
        ("ib_read_bw", 0, 1),
        ("ib_read_lat", 0, 1),
        ("ib_send_lat", 1, 1),
        ("ib_send_bw", 1, 0),
    ):
        job = peer_job("perftest", program, "mlx5_0:1", FDR)
        payload = int(job.commands[0][-1]) * sum(job.sizes)
        assert job.traffic.exact == (forth * payload, back * payload), program


def test_a_leg_never_asks_for_longer_than_its_limit() -> None:
    for suite, program in (("iperf3", "iperf3"), ("perftest", "ib_write_lat")):
        for pace in (SLOW, FDR):
            (argv,) = peer_job(suite, program, "rail0", pace).commands
            seconds = argv[argv.index("-t") + 1] if "-t" in argv else 0
            assert float(seconds) <= float(argv[2])


def test_a_suite_of_mpi_is_refused() -> None:
    with pytest.raises(ConfigError):
        peer_job("osu", "osu_bw", "rail0", SLOW)


def test_a_tool_that_is_not_there_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = find_tool("perftest", "ib_no_such_program")
    assert found.argv is None
    assert not found.lost
    assert found.reason == "no ib_no_such_program on this machine (Debian: perftest)"
