"""How hard to measure: windows and repetitions from message size, rate and a time budget.

The tools' own defaults suit InfiniBand: ``osu_bw`` would move 22 windows of 64 x 4 MiB, 47 s at
1 Gb/s, two minutes at 400 Mb/s.  Here the rate of the fabric decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: sizes above this use the ``large`` repetitions, as in OSU (LARGE_MESSAGE_SIZE, util/osu_util.h)
LARGE_MESSAGE_BYTES = 8192

#: OSU's default window (WINDOW_SIZE_LARGE, util/osu_util.h); never more, so that results compare
MAX_WINDOW = 64

#: A window below this no longer hides the latency between messages.
MIN_WINDOW = 4

#: share of the budget that the large messages get; the plateau carries the verdict
LARGE_SHARE = 0.75

#: unmeasured rounds first: connections open, pages fault in, token buckets of shapers drain
WARMUPS = 2

MIN_ITERATIONS = 3
MAX_ITERATIONS = 10_000


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What one program is told to do.

    Attributes:
        sizes: message sizes in bytes, powers of two from 1.
        window_size: messages in flight for large messages.
        small_window_size: messages in flight up to :data:`LARGE_MESSAGE_BYTES`.
        iterations: measured rounds up to :data:`LARGE_MESSAGE_BYTES`.
        large_iterations: measured rounds above it.
        warmups: unmeasured rounds before each size up to :data:`LARGE_MESSAGE_BYTES`.
        large_warmups: unmeasured rounds before each size above it.
    """

    sizes: tuple[int, ...]
    window_size: int
    small_window_size: int
    iterations: int
    large_iterations: int
    warmups: int
    large_warmups: int


def powers_of_two(max_size: int) -> tuple[int, ...]:
    """Return 1, 2, 4 ... up to ``max_size`` bytes (at least 1)."""
    return tuple(2**power for power in range(max(max_size, 1).bit_length()))


def _clamp(value: float, low: int, high: int) -> int:
    return max(low, min(high, int(value)))


def plan_windowed(
    *,
    max_size: int,
    rate_mb_s: float,
    latency_us: float,
    seconds: float,
    sizes: Sequence[int] = (),
) -> Effort:
    """Return the effort of a bandwidth program that keeps a window of messages in flight.

    Args:
        max_size: largest message in bytes.
        rate_mb_s: what the path is expected to carry, MB/s (bytes per us).
        latency_us: expected time of a small message, us.
        seconds: budget for the whole program.
        sizes: in bytes, where not all powers of two up to ``max_size`` are measured.
    """
    sizes = tuple(sizes) or powers_of_two(max_size)
    large = sum(size for size in sizes if size > LARGE_MESSAGE_BYTES)
    rounds = MIN_ITERATIONS + WARMUPS
    window = MAX_WINDOW
    budget_us = seconds * 1e6 * LARGE_SHARE
    while window > MIN_WINDOW and large * window * rounds / rate_mb_s > budget_us:
        window //= 2
    fitting = budget_us * rate_mb_s / max(large * window, 1) - WARMUPS
    small = sum(size for size in sizes if size <= LARGE_MESSAGE_BYTES)
    count = len([size for size in sizes if size <= LARGE_MESSAGE_BYTES])
    # A round costs its bytes, an answer, and a share of the latency for each message.
    round_us = MAX_WINDOW * small / rate_mb_s + count * latency_us * (1 + MAX_WINDOW / 16)
    small_fitting = seconds * 1e6 * (1 - LARGE_SHARE) / round_us if count else MIN_ITERATIONS
    iterations = _clamp(small_fitting, MIN_ITERATIONS, MAX_ITERATIONS)
    return Effort(
        sizes=sizes,
        window_size=window,
        small_window_size=MAX_WINDOW,
        iterations=iterations,
        large_iterations=_clamp(fitting, MIN_ITERATIONS, MAX_ITERATIONS),
        warmups=max(WARMUPS, iterations // 10),
        large_warmups=WARMUPS,
    )


def plan_ping_pong(
    *,
    max_size: int,
    rate_mb_s: float,
    latency_us: float,
    seconds: float,
    sizes: Sequence[int] = (),
) -> Effort:
    """Return the effort of a program that bounces one message at a time; arguments as above."""
    sizes = tuple(sizes) or powers_of_two(max_size)
    large = [size for size in sizes if size > LARGE_MESSAGE_BYTES]
    small = [size for size in sizes if size <= LARGE_MESSAGE_BYTES]
    large_us = sum(2 * (latency_us + size / rate_mb_s) for size in large)
    small_us = sum(2 * (latency_us + size / rate_mb_s) for size in small)
    half_us = seconds * 1e6 / 2
    iterations = _clamp(half_us / small_us if small else 1, MIN_ITERATIONS, MAX_ITERATIONS)
    large_iterations = _clamp(
        half_us / large_us - WARMUPS if large else 1, MIN_ITERATIONS, MAX_ITERATIONS
    )
    return Effort(
        sizes=sizes,
        window_size=1,
        small_window_size=1,
        iterations=iterations,
        large_iterations=large_iterations,
        warmups=max(WARMUPS, iterations // 10),
        large_warmups=WARMUPS,
    )
