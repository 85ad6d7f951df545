"""How hard to measure: laws of the plan over sizes, rates, latencies and budgets."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from fabricproof.job.commands import (
    LARGE_MESSAGE_BYTES,
    LARGE_SHARE,
    MAX_ITERATIONS,
    MAX_WINDOW,
    MIN_ITERATIONS,
    MIN_WINDOW,
    WARMUPS,
    Effort,
    plan_ping_pong,
    plan_windowed,
    powers_of_two,
)

#: 1 B to 16 MiB; 1 MB/s to an NDR 8x rail; half a us to a slow WAN; the budgets a site may set
SIZES = st.integers(min_value=0, max_value=24).map(lambda power: 2**power)
RATES = st.floats(min_value=1.0, max_value=1e5)
LATENCIES = st.floats(min_value=0.5, max_value=1e5)
SECONDS = st.floats(min_value=0.01, max_value=600)
PLANNERS = st.sampled_from([plan_windowed, plan_ping_pong])
REQUESTS = st.fixed_dictionaries({"max_size": SIZES, "rate_mb_s": RATES, "latency_us": LATENCIES})


@given(max_size=st.integers(min_value=-1, max_value=2**40))
def test_sizes_are_powers_of_two_up_to_the_largest(max_size: int) -> None:
    sizes = powers_of_two(max_size)
    assert sizes[0] == 1
    assert all(after == 2 * before for before, after in itertools.pairwise(sizes))
    assert sizes[-1] <= max(max_size, 1) < 2 * sizes[-1]


@given(planner=PLANNERS, request=REQUESTS, seconds=SECONDS)
def test_every_plan_is_one_that_the_programs_can_be_told(
    planner: object, request: dict[str, float], seconds: float
) -> None:
    effort: Effort = planner(**request, seconds=seconds)  # type: ignore[operator]
    assert effort.sizes == powers_of_two(int(request["max_size"]))
    assert 1 <= effort.window_size <= MAX_WINDOW
    for iterations in (effort.iterations, effort.large_iterations):
        assert MIN_ITERATIONS <= iterations <= MAX_ITERATIONS
    assert effort.warmups >= WARMUPS
    assert effort.large_warmups >= WARMUPS


@given(planner=PLANNERS, request=REQUESTS, seconds=SECONDS, factor=st.floats(1, 100))
def test_more_seconds_never_mean_less_measured(
    planner: object, request: dict[str, float], seconds: float, factor: float
) -> None:
    less: Effort = planner(**request, seconds=seconds)  # type: ignore[operator]
    more: Effort = planner(**request, seconds=seconds * factor)  # type: ignore[operator]
    assert more.iterations >= less.iterations
    assert more.window_size >= less.window_size
    if more.window_size == less.window_size:
        assert more.large_iterations >= less.large_iterations


@given(request=REQUESTS, seconds=SECONDS)
def test_the_window_is_a_power_of_two_within_its_bounds(
    request: dict[str, float], seconds: float
) -> None:
    effort = plan_windowed(**request, seconds=seconds)  # type: ignore[arg-type]
    assert MIN_WINDOW <= effort.window_size <= MAX_WINDOW
    assert effort.window_size & (effort.window_size - 1) == 0
    assert effort.small_window_size == MAX_WINDOW


def _large_us(effort: Effort, rate_mb_s: float) -> float:
    large = sum(size for size in effort.sizes if size > LARGE_MESSAGE_BYTES)
    rounds = effort.large_iterations + effort.large_warmups
    return large * effort.window_size * rounds / rate_mb_s


@given(request=REQUESTS, seconds=SECONDS)
def test_large_messages_keep_to_their_share_of_the_budget(
    request: dict[str, float], seconds: float
) -> None:
    effort = plan_windowed(**request, seconds=seconds)  # type: ignore[arg-type]
    budget_us = seconds * 1e6 * LARGE_SHARE
    fits = _large_us(effort, request["rate_mb_s"]) <= budget_us * (1 + 1e-9)
    assert fits or effort.large_iterations == MIN_ITERATIONS


@given(request=REQUESTS, seconds=SECONDS)
def test_a_window_is_given_up_only_where_the_budget_is_too_small_for_it(
    request: dict[str, float], seconds: float
) -> None:
    effort = plan_windowed(**request, seconds=seconds)  # type: ignore[arg-type]
    large = sum(size for size in effort.sizes if size > LARGE_MESSAGE_BYTES)
    rounds = MIN_ITERATIONS + WARMUPS
    twice = large * 2 * effort.window_size * rounds / request["rate_mb_s"]
    assert effort.window_size == MAX_WINDOW or twice > seconds * 1e6 * LARGE_SHARE


@given(request=REQUESTS, seconds=SECONDS)
def test_a_ping_pong_keeps_to_its_budget(request: dict[str, float], seconds: float) -> None:
    effort = plan_ping_pong(**request, seconds=seconds)  # type: ignore[arg-type]
    rate, latency = request["rate_mb_s"], request["latency_us"]
    times = {size: 2 * (latency + size / rate) for size in effort.sizes}
    small_us = effort.iterations * sum(
        time for size, time in times.items() if size <= LARGE_MESSAGE_BYTES
    )
    large_us = (effort.large_iterations + effort.large_warmups) * sum(
        time for size, time in times.items() if size > LARGE_MESSAGE_BYTES
    )
    half_us = seconds * 1e6 / 2 * (1 + 1e-9)
    assert effort.iterations == MIN_ITERATIONS or small_us <= half_us
    assert effort.large_iterations == MIN_ITERATIONS or large_us <= half_us
