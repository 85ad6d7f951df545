"""A table that contradicts itself proves nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.verdict.limits import row_fault
from tables import bandwidths, table

SIZES = st.sampled_from([1, 8, 1024, 65536, 4 * 1024 * 1024])
TIMES = st.floats(min_value=0.5, max_value=1e5)

PING = ("message_size", "repetitions", "latency_us", "bandwidth_mb_s")
BOTH = (
    "message_size",
    "repetitions",
    "latency_min_us",
    "latency_max_us",
    "latency_avg_us",
    "bandwidth_mb_s",
)
RATE = ("message_size", "bandwidth_mb_s", "message_rate_per_s")


def _imb(program: str, columns: tuple[str, ...], row: tuple[float, ...]) -> str | None:
    made = table(program, columns, [row], suite="imb")
    return row_fault(made, reading_of(made), int(row[0]))


@given(SIZES, TIMES)
def test_what_imb_computes_is_sound(size: int, time: float) -> None:
    printed = round(time, 2)
    assert _imb("PingPong", PING, (size, 100, printed, round(size / time, 2))) is None
    assert _imb("PingPing", PING, (size, 100, printed, round(size / time, 2))) is None
    for program, factor in (("Sendrecv", 2), ("Exchange", 4)):
        row = (size, 100, printed, printed, printed, round(factor * size / time, 2))
        assert _imb(program, BOTH, row) is None


@pytest.mark.parametrize(
    ("program", "columns", "row"),
    [
        ("PingPong", PING, (65536, 100, 625.94, 209.40)),
        ("Sendrecv", BOTH, (65536, 100, 99.0, 100.0, 99.5, 655.36)),
        ("Exchange", BOTH, (65536, 100, 99.0, 100.0, 99.5, 1310.72)),
        ("Uniband", RATE, (1024, 200.0, 100000)),
    ],
)
def test_a_row_that_contradicts_itself_is_named(
    program: str, columns: tuple[str, ...], row: tuple[float, ...]
) -> None:
    fault = _imb(program, columns, row)
    assert fault is not None
    assert "the row contradicts itself" in fault
    assert f"the table says {row[columns.index('bandwidth_mb_s')]:g}" in fault


def test_the_rows_of_the_document_are_sound() -> None:
    columns = (*PING, "message_rate_per_s")
    assert _imb("PingPong", columns, (262144, 3200, 52.57, 4986.11, 19021)) is None
    assert _imb("PingPong", columns, (1, 100000, 48.05, 0.02, 20813)) is None


def test_osu_rates_and_bandwidths_agree() -> None:
    def fault(rate: float) -> str | None:
        made = table("osu_mbw_mr", RATE, [(4194304, 12910.31, rate)], num_pairs=72)
        return row_fault(made, reading_of(made), 4194304)

    assert fault(3078.06) is None
    assert fault(1539.03) is not None


def test_a_failed_validation_is_named_whatever_the_row() -> None:
    made = table("osu_bw", ("message_size", "bandwidth_mb_s"), [(1, 1.0)], validation="Fail")
    assert "data validation failed" in str(row_fault(made, reading_of(made), 1))
    assert "data validation failed" in str(row_fault(made, reading_of(made), None))


@pytest.mark.parametrize("size", [None, 2, 7])
def test_a_row_that_is_not_there_has_no_fault(size: int | None) -> None:
    made = bandwidths({1: 1.0})
    assert row_fault(made, reading_of(made), size) is None


def test_a_time_lost_in_rounding_binds_nothing() -> None:
    assert _imb("PingPong", PING, (0, 100, 0.0, 0.0)) is None


def test_a_time_that_the_message_rate_denies_is_named() -> None:
    columns = (*PING, "message_rate_per_s")
    row = (32, 20, 60.38, 0.53, 16562)
    assert _imb("PingPong", columns, row) is None
    for time_us in (1e18, 600.0, 0.6e9):
        fault = _imb("PingPong", columns, (32, 20, time_us, 0.53, 16562))
        assert fault is not None
        assert "under way at once" in fault
    fault = _imb("PingPong", columns, (32, 20, 0.02, 0.53, 16562))
    assert fault is not None
