"""The law of the curve and the oddities it names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.measure import Table, Verdict
from fabricproof.verdict.curve import (
    describe_shape,
    row_limit_us,
    smallest_message_us,
    start_up_us,
    too_fast,
    too_small_for_plateau,
)
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import at_least
from tables import FDR, MIB, against, bandwidths, hockney, latencies, table

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


TIMES = {2**power: 1.2 + 2**power / 12000 for power in range(23)}
RATES = dict(hockney(24000, 1.2).rows)


def faster(curve: dict[int, float], by: float, *sizes: int) -> dict[int, float]:
    return {size: each * (by if size in sizes else 1) for size, each in curve.items()}


@pytest.mark.parametrize(
    ("made", "column", "fast"),
    [
        (bandwidths(faster(RATES, 10, 65536)), "bandwidth_mb_s", [65536]),
        (bandwidths(faster(RATES, 10, 4 * MIB)), "bandwidth_mb_s", [4 * MIB]),
        (latencies(faster(TIMES, 0.2, 1)), "latency_us", [1]),
        (latencies(faster(TIMES, 0.2, 64, 128)), "latency_us", [64, 128]),
        # an empty message need not cross; 256 B three times faster than 1 B: an idle host
        (latencies({0: 0.2, **TIMES}), "latency_us", []),
        (latencies({size: us * (3 if size < 256 else 1) for size, us in TIMES.items()}),
         "latency_us", []),
        # slow messages, a slow first one, a curve that is uneven anyhow
        (bandwidths(faster(RATES, 0.1, 65536)), "bandwidth_mb_s", []),
        (latencies(faster(TIMES, 20, 1)), "latency_us", []),
        (latencies(faster(TIMES, 20, 2, 8, 32, 128)), "latency_us", []),
        (bandwidths({1: 1.0, 2: 20.0}), "bandwidth_mb_s", []),
    ],
)  # fmt: skip
def test_what_is_far_faster_than_its_neighbours_is_named(
    made: Table, column: str, fast: list[int]
) -> None:
    assert list(too_fast(made, column)) == fast


@pytest.mark.parametrize("size", [65536, 4 * MIB])
def test_without_a_fabric_a_rate_far_above_its_neighbours_is_no_pass(size: int) -> None:
    given_ = {"bandwidth": at_least(20000, origin="x")}
    report = judge_table(bandwidths(faster(RATES, 10, size)), against(None, references=given_))
    assert report.verdict is Verdict.UNJUDGED
    (judged,) = [each for each in report.quantities if each.verdict is Verdict.UNJUDGED]
    assert judged.message_size == size
    assert judge_table(bandwidths(RATES), against(None, references=given_)).verdict is Verdict.PASS


@given(STARTS, PLATEAUS, st.sampled_from(range(23)))
def test_a_curve_that_follows_the_model_is_nowhere_too_fast(
    start: float, plateau: float, switch: int
) -> None:
    """Neither is one whose rendezvous costs three crossings from some size on."""
    curve = {2**n: (start if n < switch else 3 * start) + 2**n / plateau for n in range(23)}
    assert too_fast(latencies(curve), "latency_us") == {}
    assert too_fast(bandwidths({n: n / us for n, us in curve.items()}), "bandwidth_mb_s") == {}
    assert judge_table(hockney(6700, 0.6), against(FDR)).verdict is Verdict.PASS
