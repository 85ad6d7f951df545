"""From an effort to command lines of programs between pairs, and to what they are going to move.

How hard to measure says the rate of the fabric: windows and repetitions from message size, rate and
a time budget.  The tools' own defaults suit InfiniBand: ``osu_bw`` would move 22 windows of
64 x 4 MiB, 47 s at 1 Gb/s, two minutes at 400 Mb/s.

Without MPI run iperf3 (all streams of a process in one thread before 3.16), iperf (a thread for
each stream) and perftest, by ``peer.sh``: the floor under MPI, what the kernel's TCP, or the verbs,
carry over the same rail.
"""

from __future__ import annotations

import os
import shutil
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import cast

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.errors import ConfigError
from fabricproof.job.leg import PEER_SUITES, Traffic
from fabricproof.stacks.wheels import Located
from fabricproof.stacks.workload import (
    BytesMoved,
    Segment,
    command_lines,
    expected_bytes,
    has_window,
    imb_binary,
)

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


def _by_size(
    sizes: Sequence[int], max_size: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return all sizes, up to ``max_size`` where none are named, the small and the large ones."""
    chosen = tuple(sizes) or powers_of_two(max_size)
    small = tuple(size for size in chosen if size <= LARGE_MESSAGE_BYTES)
    return chosen, small, tuple(size for size in chosen if size > LARGE_MESSAGE_BYTES)


def _clamp(iterations: float) -> int:
    return max(MIN_ITERATIONS, min(MAX_ITERATIONS, int(iterations)))


def plan_windowed(
    *,
    max_size: int,
    rate_mb_s: float,
    latency_us: float,
    seconds: float,
    sizes: Sequence[int] = (),
) -> Effort:
    """Return the effort of a bandwidth program that keeps a window of messages in flight.

    ``sizes`` in bytes, where not all powers of two up to ``max_size`` are measured.
    """
    sizes, small_ones, large_ones = _by_size(sizes, max_size)
    small, large, count = sum(small_ones), sum(large_ones), len(small_ones)
    rounds = MIN_ITERATIONS + WARMUPS
    window = MAX_WINDOW
    budget_us = seconds * 1e6 * LARGE_SHARE
    while window > MIN_WINDOW and large * window * rounds / rate_mb_s > budget_us:
        window //= 2
    fitting = budget_us * rate_mb_s / max(large * window, 1) - WARMUPS
    # A round costs its bytes, an answer, and a share of the latency for each message.
    round_us = MAX_WINDOW * small / rate_mb_s + count * latency_us * (1 + MAX_WINDOW / 16)
    small_fitting = seconds * 1e6 * (1 - LARGE_SHARE) / round_us if count else MIN_ITERATIONS
    iterations = _clamp(small_fitting)
    return Effort(
        sizes=sizes,
        window_size=window,
        small_window_size=MAX_WINDOW,
        iterations=iterations,
        large_iterations=_clamp(fitting),
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
    sizes, small, large = _by_size(sizes, max_size)
    large_us = sum(2 * (latency_us + size / rate_mb_s) for size in large)
    small_us = sum(2 * (latency_us + size / rate_mb_s) for size in small)
    half_us = seconds * 1e6 / 2
    iterations = _clamp(half_us / small_us if small else 1)
    large_iterations = _clamp(half_us / large_us - WARMUPS if large else 1)
    return Effort(
        sizes=sizes,
        window_size=1,
        small_window_size=1,
        iterations=iterations,
        large_iterations=large_iterations,
        warmups=max(WARMUPS, iterations // 10),
        large_warmups=WARMUPS,
    )


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is run for one leg.

    Attributes:
        commands: argument lists, to be run one after the other; each prints one table.
        sizes: message sizes that the tables hold together, in bytes, ascending; empty if none is
            printed, or if the program ran for a time.
        traffic: what it is going to move.
    """

    commands: tuple[tuple[str, ...], ...]
    sizes: tuple[int, ...]
    traffic: Traffic


def make_job(
    suite: str,
    program: str,
    argv: Sequence[str],
    effort: Effort,
    *,
    num_ranks: int = 2,
    starts_above: Sequence[int] = (),
) -> Job:
    """Return the job that gives ``program`` on ``num_ranks`` ranks this effort.

    ``starts_above``: message sizes in bytes, ascending, above each of which the program is started
    anew, so that the counters tell small messages from large; IMB-MPI1 alone of IMB.

    Raises:
        ConfigError: a program whose traffic cannot be foretold; its path could not be proven.
    """
    if suite == "imb":
        return _imb_job(program, argv, effort, num_ranks, starts_above)
    _, small, large = _by_size(effort.sizes, effort.sizes[-1])
    segments = [
        Segment(sizes=part, iterations=iterations, warmups=warmups, window_size=window)
        for sizes, iterations, warmups, window in (
            (small, effort.iterations, effort.warmups, effort.small_window_size),
            (large, effort.large_iterations, effort.large_warmups, effort.window_size),
        )
        for part in _cut(sizes, starts_above)
    ]
    moved = _foretold(suite, program, segments, num_ranks)
    messages = (moved.messages_by_first, moved.messages_by_second)
    edges = (*starts_above, effort.sizes[-1])
    starts = [
        [each for each in segments if low < each.sizes[-1] <= high]
        for low, high in pairwise((0, *edges))
    ]
    return Job(
        commands=tuple(
            line for start in starts if start for line in command_lines(suite, program, argv, start)
        ),
        sizes=effort.sizes,
        traffic=Traffic(
            exact=(moved.sent_by_first, moved.sent_by_second),
            messages=None if None in messages else cast("tuple[int, int]", messages),
            repetitions=min(each.iterations for each in segments),
        ),
    )


def _cut(sizes: Sequence[int], above: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the sizes in parts none of which crosses a size of ``above``."""
    parts = groupby(sizes, key=lambda size: bisect_left(above, size))
    return [tuple(part) for _, part in parts]


def _foretold(suite: str, program: str, segments: Sequence[Segment], num_ranks: int) -> BytesMoved:
    moved = expected_bytes(suite, program, segments, num_ranks=num_ranks)
    if moved is None:
        raise ConfigError(
            f"nobody can say how many bytes {program} of {suite} moves",
            expected="a program with a fixed exchange between pairs",
            next_step="its path cannot be proven, so its numbers could never be green",
        )
    return moved


def _imb_job(
    program: str, argv: Sequence[str], effort: Effort, num_ranks: int, starts_above: Sequence[int]
) -> Job:
    """Return IMB's run: repetitions fall with the size, and the table says how many ran.

    ``-iter N,MB``: N repetitions, fewer where they would move more than MB megabytes (IMB user
    guide, "-iter").  ``-time`` is set so high that IMB never cuts a size off by its own estimate.
    """
    windowed = has_window("imb", program)
    window = effort.window_size if windowed else 1
    one = Segment(sizes=(1,), iterations=1, warmups=0, window_size=window)
    moved = _foretold("imb", program, (one,), num_ranks)
    volume_mb = max(MIN_VOLUME_MB, effort.large_iterations * effort.sizes[-1] // 1_000_000)
    options = ["-iter", f"{max(effort.iterations, 10)},{1 if windowed else volume_mb}"]
    if windowed:  # the volume counts one message of each window, of one pair
        options += ["-window_size", str(window)]
    binary = imb_binary(program)
    if binary != "IMB-P2P":
        options += ["-time", IMB_SECONDS_PER_SIZE]
        # Otherwise it measures 2, 4 ... ranks one after the other.
        options += ["-npmin", str(num_ranks)] if num_ranks > 2 else []
    if binary == "IMB-RMA":
        options += ["-aggregate_mode", "non_aggregate"]
    with_zero = binary != "IMB-P2P" and effort.sizes[0] == 1
    parts = _cut(effort.sizes, starts_above if binary == "IMB-MPI1" else ())
    return Job(
        commands=tuple((*argv, *_imb_sizes(part), *options) for part in parts),
        sizes=(0, *effort.sizes) if with_zero else effort.sizes,
        traffic=Traffic(per_repetition=(moved.sent_by_first, moved.sent_by_second)),
    )


def _imb_sizes(sizes: Sequence[int]) -> tuple[str, ...]:
    """Return the option for powers of two; IMB puts an empty message first, wanted once a leg."""
    log = ("-msglog", f"{sizes[0].bit_length() - 1}:{sizes[-1].bit_length() - 1}")
    return log if sizes[0] == 1 else (*log, "-zero_size", "off")


#: far above what a size may take; the leg's own limit ends a hang
IMB_SECONDS_PER_SIZE = "30"

#: IMB moves at least this much of each size, so that its large rows are more than one message.
MIN_VOLUME_MB = 8


PEER_FILE = "peer.sh"

#: what perftest's ``-a`` measures: 2 B to 8 MiB (``for (i = 1; i < 24; ++i)``, src/write_bw.c)
ALL_SIZES = tuple(2**power for power in range(1, 24))

#: DEF_SIZE_BW and DEF_SIZE_LAT, DEF_ITERS_WB of src/perftest_parameters.h
BANDWIDTH_BYTES, LATENCY_BYTES, MAX_PERFTEST_ITERATIONS = 65536, 2, 5000

#: Fewer rounds of each size say too little of it; then one size is measured, more often.
MIN_PERFTEST_ITERATIONS = 200

#: A client that has not ended this long after its time gets no answer.
ANSWER_SECONDS = 6


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What is expected of a path, to size the effort: MB/s, us, and a budget in seconds."""

    rate_mb_s: float
    latency_us: float
    seconds: float


def find_tool(suite: str, program: str) -> Located:
    """Return how a program without MPI is called, or why there is none here.

    It must be on PATH where the run is started, as on the nodes; a node without it is MISSING.
    """
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    if shutil.which(program, path=path) is not None:
        return Located(argv=(program,))
    package = PEER_SUITES[suite]
    return Located(argv=None, reason=f"no {program} on this machine (Debian: {package})")


def peer_job(suite: str, program: str, rail: str, pace: Pace, *, streams: int = 1) -> Job:
    """Return the job that measures ``rail`` with ``program``.

    ``rail`` is an interface, or an HCA port as ``mlx5_0:1``; ``streams`` are TCP connections at
    once.

    Raises:
        ConfigError: a suite that is none of these.
    """
    if suite not in PEER_SUITES:
        raise ConfigError("no such suite", expected=", ".join(PEER_SUITES), got=suite)
    if suite == "perftest":
        return _perftest_job(program, rail, pace)
    seconds = max(1, round(pace.seconds))
    options = ["-t", str(seconds), *(["-P", str(streams)] if streams > 1 else [])]
    if suite == "iperf":
        options += ["-f", "k"]  # more digits than "187 Mbits/sec"
    return Job(commands=(_command(seconds, rail, program, options),), sizes=(), traffic=Traffic())


def _command(seconds: float, rail: str, program: str, options: list[str]) -> tuple[str, ...]:
    limit = str(round(seconds) + ANSWER_SECONDS)
    return ("bash", PEER_FILE, limit, rail, program, *options)


def _perftest_job(program: str, rail: str, pace: Pace) -> Job:
    """Return all sizes where the path is fast enough for them, else the program's own one."""
    is_latency = meaning("perftest", program).kind is not ProgramKind.BANDWIDTH
    sizes: tuple[int, ...] = ALL_SIZES
    iterations = _fitting(pace, sizes, is_latency=is_latency)
    options = ["-a"]
    if iterations < MIN_PERFTEST_ITERATIONS:
        sizes = (LATENCY_BYTES if is_latency else BANDWIDTH_BYTES,)
        iterations = max(MIN_PERFTEST_ITERATIONS, _fitting(pace, sizes, is_latency=is_latency))
        options = ["-s", str(sizes[0])]
    moved = expected_bytes(
        "perftest", program, (Segment(sizes=sizes, iterations=iterations, warmups=0),)
    )
    assert moved is not None, f"{program} is in stack.volume"
    return Job(
        commands=(_command(2 * pace.seconds, rail, program, [*options, "-n", str(iterations)]),),
        sizes=sizes,
        traffic=Traffic(exact=(moved.sent_by_first, moved.sent_by_second)),
    )


def _fitting(pace: Pace, sizes: tuple[int, ...], *, is_latency: bool) -> int:
    # MB/s are bytes per us.
    round_us = sum(size / pace.rate_mb_s for size in sizes)
    if is_latency:
        round_us = 2 * (round_us + len(sizes) * pace.latency_us)
    return min(MAX_PERFTEST_ITERATIONS, int(pace.seconds * 1e6 / round_us))
