"""The law of the curve and the oddities it names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.measure import Table
from fabricproof.verdict.curve import (
    describe_shape,
    row_limit_us,
    smallest_message_us,
    start_up_us,
    too_small_for_plateau,
)
from tables import bandwidths, hockney, latencies, table

STARTS = st.floats(min_value=0.2, max_value=100.0)
PLATEAUS = st.floats(min_value=50.0, max_value=50_000.0)
SIZES = st.integers(min_value=1, max_value=2**26)


@given(SIZES, STARTS, PLATEAUS)
def test_a_fabric_that_follows_the_model_is_never_slower_than_its_limit(
    size: int, start: float, plateau: float
) -> None:
    assert start + size / plateau <= row_limit_us(size, start, plateau)


@given(SIZES, SIZES, STARTS, PLATEAUS)
def test_a_larger_message_may_take_longer(
    one: int, other: int, start: float, plateau: float
) -> None:
    small, large = sorted((one, other))
    assert row_limit_us(small, start, plateau) <= row_limit_us(large, start, plateau)


PINGPONG = table(
    "PingPong", ("message_size", "latency_us", "bandwidth_mb_s"),
    [(0, 49.81, 0.0), (1, 48.05, 0.02)], suite="imb",
)  # fmt: skip


@pytest.mark.parametrize(
    ("made", "time_us"),
    [
        (PINGPONG, 49.81),  # from the times where there are any
        (bandwidths({1: 0.01, 2: 0.02, 4: 0.05, 8: 0.10}), 80.0),  # not from rows lost in rounding
        (bandwidths({1: 0.0, 2: 0.0}), None),
        (bandwidths({0: 5.0}), None),
        (latencies({0: 0.0, 1: 1.0}), None),  # a time of zero is no time
    ],
)
def test_the_time_of_the_smallest_message(made: Table, time_us: float | None) -> None:
    assert smallest_message_us(made) == time_us


def test_a_table_without_small_messages_does_not_tell_the_start_up_time() -> None:
    assert start_up_us(hockney(5000, 1.0, first=2048)) is None
    assert start_up_us(hockney(5000, 1.0, first=1024)) is not None
    assert start_up_us(table("iperf3", ("bandwidth_mb_s",), [(100.0,)], suite="iperf3")) is None


def test_a_small_message_cannot_show_a_plateau_and_a_slower_one_has_no_excuse() -> None:
    assert too_small_for_plateau(64, 50.0, 1.0, 5000.0)
    assert not too_small_for_plateau(64, 1.0, 1.0, 5000.0)


@given(st.floats(min_value=0.01, max_value=4999))
def test_a_large_message_has_no_excuse(value: float) -> None:
    assert not too_small_for_plateau(4 * 1024 * 1024, value, 1.0, 5000.0)


def test_a_dip_and_a_step_are_named_with_both_numbers() -> None:
    dip = bandwidths({16384: 12348.0, 32768: 12100.0, 65536: 10522.7, 131072: 12400.0})
    said = ["dip: 64KiB carries 10522.7 MB/s, 15% less than 16KiB (12348)"]
    assert list(describe_shape(dip)) == said
    step = bandwidths({16384: 1180.56, 32768: 1179.53, 65536: 2349.06})
    said = ["step: 32KiB carries 1179.53 MB/s, 64KiB 2349.06 (x1.99)"]
    assert list(describe_shape(step)) == said


@given(STARTS, PLATEAUS)
def test_a_curve_that_follows_the_model_has_no_oddities(start: float, plateau: float) -> None:
    assert list(describe_shape(hockney(plateau, start))) == []


def test_a_table_without_bandwidths_has_no_shape() -> None:
    assert list(describe_shape(latencies({0: 1.0, 1: 9.0}))) == []
