"""One number: possible first, then good enough."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.measure import Verdict
from fabricproof.physics import CLOCK_TOLERANCE, bound, latency_floor_us
from fabricproof.rfm.handover import bounds
from fabricproof.verdict.value import (
    PRINT_ROUNDING,
    Judgement,
    Reference,
    at_least,
    at_most,
    from_ceiling,
    judge_value,
    missing,
    possible_up_to,
)
from tables import FDR, GBE

CEILING = bound(FDR)
FLOOR = latency_floor_us(GBE, 0)
VALUES = st.floats(min_value=0.01, max_value=1e5)
TOLERANCES = st.floats(min_value=0, max_value=0.99)


def bandwidth(value: float, reference: Reference | None, *, ceiling: bool = True) -> Judgement:
    return judge_value(
        name="bandwidth_4MiB", value=value, unit="MB/s", message_size=4 << 20, reference=reference,
        ceiling=CEILING if ceiling else None,
    )  # fmt: skip


def latency(value: float, reference: Reference | None) -> Judgement:
    return judge_value(
        name="latency_0B", value=value, unit="us", message_size=0, reference=reference, floor=FLOOR
    )


@given(VALUES, TOLERANCES, TOLERANCES)
def test_a_tighter_tolerance_never_turns_a_fail_into_a_pass(
    value: float, one: float, other: float
) -> None:
    tight, loose = sorted((one, other))
    if bandwidth(value, from_ceiling(CEILING, tolerance=loose)).verdict is not Verdict.PASS:
        verdict = bandwidth(value, from_ceiling(CEILING, tolerance=tight)).verdict
        assert verdict is not Verdict.PASS


@given(st.floats(min_value=CEILING.high_mb_s * (1 + 2 * CLOCK_TOLERANCE), max_value=1e9), VALUES)
def test_above_the_ceiling_is_invalid_whatever_the_reference(value: float, other: float) -> None:
    for reference in (None, at_least(other, origin="x"), at_most(other, unit="MB/s", origin="x")):
        assert bandwidth(value, reference).verdict is Verdict.INVALID


@given(VALUES)
def test_without_a_reference_nothing_passes(value: float) -> None:
    assert bandwidth(value, None).verdict in {Verdict.UNJUDGED, Verdict.INVALID}
    assert latency(value, None).verdict in {Verdict.UNJUDGED, Verdict.INVALID}


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_what_is_no_measurement_is_invalid(value: float) -> None:
    for judged in (bandwidth(value, None, ceiling=False), latency(value, at_most(1, origin="x"))):
        assert judged.verdict is Verdict.INVALID
        assert "is not a measurement" in judged.reason


PASS, FAIL, INVALID, UNJUDGED, *_ = Verdict
TOP, PHYSICS = CEILING.high_mb_s, from_ceiling(CEILING)
EDGE = TOP * (1 + CLOCK_TOLERANCE)
RATE, TIME = at_least(1000, tolerance=0.1, origin="x"), at_most(10, tolerance=0.2, origin="x")
DOUBT = "the declared fabric is wrong or part of the traffic took another path"


@pytest.mark.parametrize(
    ("judged", "verdict", "words"),
    [
        (bandwidth(TOP * 1.01, PHYSICS), INVALID, "101.0% of the ceiling"),
        (bandwidth(TOP * 1.01, PHYSICS), INVALID, DOUBT),
        # a clock may be a little fast, and the last digit is rounded
        (bandwidth(TOP, PHYSICS), PASS, ""),
        (bandwidth(TOP * (1 + 0.9 * CLOCK_TOLERANCE), PHYSICS), PASS, ""),
        (bandwidth(EDGE + 0.004, None), UNJUDGED, ""),
        (bandwidth(EDGE + 0.006, None), INVALID, ""),
        (latency(FLOOR.us - 0.1, at_most(60, origin="x")), INVALID, "shared memory"),
        # bounds are inclusive
        (bandwidth(900.0, RATE), PASS, ""),
        (bandwidth(899.99, RATE), FAIL, "below the lower bound 900"),
        (latency(12.0, TIME), PASS, ""),
        (latency(12.01, TIME), FAIL, "above the upper bound 12"),
        # a reference in another unit is never compared
        (
            bandwidth(3400.0, at_least(3.4, unit="GB/s", origin="x")),
            UNJUDGED,
            "reference in GB/s, value in MB/s",
        ),
    ],
)
def test_one_number_is_judged(judged: Judgement, verdict: Verdict, words: str) -> None:
    assert judged.verdict is verdict
    assert words in judged.reason


@pytest.mark.parametrize("beyond", [0.0, 0.0002, 0.9 * CLOCK_TOLERANCE])
def test_what_a_fast_clock_may_show_stays_green_for_reframe(beyond: float) -> None:
    """The tolerance is granted once: who holds the number against its bounds must not take it."""
    judged = bandwidth(CEILING.high_mb_s * (1 + beyond), from_ceiling(CEILING))
    assert judged.verdict is Verdict.PASS
    value, _, upper, _ = bounds(judged)
    assert isinstance(value, float)
    assert isinstance(upper, float)
    assert judged.value is not None
    assert judged.value <= value * (1 + upper)


def test_the_record_holds_all_it_rests_on() -> None:
    judged = bandwidth(6500.0, from_ceiling(CEILING, tolerance=0.1))
    assert judged.verdict is Verdict.PASS
    assert judged.ceiling == CEILING.high_mb_s
    assert judged.reference == CEILING.low_mb_s
    assert judged.lower == pytest.approx(0.9 * CEILING.low_mb_s)
    assert judged.upper == possible_up_to(CEILING.high_mb_s)
    assert judged.origin == "physics: the link binds"
    assert "96.5% of 6732.7 MB/s" in judged.reason


def test_the_upper_bound_never_lies_above_what_the_ceiling_admits() -> None:
    wide = replace(at_least(1000, origin="x"), upper=1e9)
    upper = bandwidth(1000, wide).upper
    assert upper == CEILING.high_mb_s * (1 + CLOCK_TOLERANCE) + PRINT_ROUNDING


def test_what_is_missing_is_missing_with_its_reason() -> None:
    report = missing(["bandwidth_4MiB", "latency_0B"], "the node died")
    assert report.verdict is Verdict.MISSING
    assert [each.name for each in report.quantities] == ["bandwidth_4MiB", "latency_0B"]
    assert {(each.value, each.verdict, each.reason) for each in report.quantities} == {
        (None, Verdict.MISSING, "the node died")
    }
