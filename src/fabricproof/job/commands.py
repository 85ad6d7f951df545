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

#: far above what IMB may take for a size; the leg's own limit ends a hang
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
class Effort:
    """What one program is told to do: up to :data:`LARGE_MESSAGE_BYTES`, and above it."""

    sizes: tuple[int, ...]  # of messages in bytes, powers of two
    window_size: int  # large messages in flight
    small_window_size: int
    iterations: int  # measured rounds of small messages
    large_iterations: int
    warmups: int  # unmeasured rounds before each size
    large_warmups: int


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is run for one leg."""

    commands: tuple[tuple[str, ...], ...]  # one after the other; each prints one table
    sizes: tuple[int, ...]  # that the tables hold together, in bytes; empty if none is printed
    traffic: Traffic  # what it is going to move


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What is expected of a path, to size the effort, and a budget in seconds."""

    rate_mb_s: float
    latency_us: float
    seconds: float


def powers_of_two(max_size: int) -> tuple[int, ...]:
    """Return 1, 2, 4 ... up to ``max_size`` bytes (at least 1)."""
    return tuple(2**power for power in range(max(max_size, 1).bit_length()))


def _small_and_large(sizes: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    small = tuple(size for size in sizes if size <= LARGE_MESSAGE_BYTES)
    return small, tuple(size for size in sizes if size > LARGE_MESSAGE_BYTES)


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

    ``sizes`` in bytes, if not all powers of two up to ``max_size`` are measured.
    """
    sizes = tuple(sizes) or powers_of_two(max_size)
    small_ones, large_ones = _small_and_large(sizes)
    small, large, count = sum(small_ones), sum(large_ones), len(small_ones)
    window = MAX_WINDOW
    budget_us = seconds * 1e6 * LARGE_SHARE
    least_rounds = MIN_ITERATIONS + WARMUPS
    while window > MIN_WINDOW and large * window * least_rounds / rate_mb_s > budget_us:
        window //= 2
    fitting = budget_us * rate_mb_s / max(large * window, 1) - WARMUPS
    # A round costs its bytes, an answer, and a share of the latency for each message.
    round_us = MAX_WINDOW * small / rate_mb_s + count * latency_us * (1 + MAX_WINDOW / 16)
    small_fitting = seconds * 1e6 * (1 - LARGE_SHARE) / round_us if count else MIN_ITERATIONS
    return _effort(sizes, window, MAX_WINDOW, small_fitting, fitting)


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
    small_us, large_us = (
        sum(2 * (latency_us + size / rate_mb_s) for size in part)
        for part in _small_and_large(sizes)
    )
    half_us = seconds * 1e6 / 2
    fitting = half_us / small_us if small_us else 1
    return _effort(sizes, 1, 1, fitting, half_us / large_us - WARMUPS if large_us else 1)


def _effort(
    sizes: tuple[int, ...], window: int, small_window: int, small: float, large: float
) -> Effort:
    iterations = _clamp(small)
    return Effort(
        sizes=sizes,
        window_size=window,
        small_window_size=small_window,
        iterations=iterations,
        large_iterations=_clamp(large),
        warmups=max(WARMUPS, iterations // 10),
        large_warmups=WARMUPS,
    )


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
    small, large = _small_and_large(effort.sizes)
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
    starts = [
        [each for each in segments if low < each.sizes[-1] <= high]
        for low, high in pairwise((0, *starts_above, effort.sizes[-1]))
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

    ``-iter N,MB``: N repetitions, fewer if they would move more than MB megabytes (IMB user
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
    commands = []
    for part in _cut(effort.sizes, starts_above if binary == "IMB-MPI1" else ()):
        log = ["-msglog", f"{part[0].bit_length() - 1}:{part[-1].bit_length() - 1}"]
        # IMB puts an empty message first, wanted once a leg.
        log += [] if part[0] == 1 else ["-zero_size", "off"]
        commands.append((*argv, *log, *options))
    return Job(
        commands=tuple(commands),
        sizes=(0, *effort.sizes) if with_zero else effort.sizes,
        traffic=Traffic(per_repetition=(moved.sent_by_first, moved.sent_by_second)),
    )


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
    seconds: float = max(1, round(pace.seconds))
    options = ["-t", str(seconds), *(["-P", str(streams)] if streams > 1 else [])]
    options += ["-f", "k"] if suite == "iperf" else []  # more digits than "187 Mbits/sec"
    sizes: tuple[int, ...] = ()
    traffic = Traffic()
    if suite == "perftest":
        seconds = 2 * pace.seconds
        options, sizes, traffic = _perftest(program, pace)
    limit = str(round(seconds) + ANSWER_SECONDS)
    command = ("bash", PEER_FILE, limit, rail, program, *options)
    return Job(commands=(command,), sizes=sizes, traffic=traffic)


def _perftest(program: str, pace: Pace) -> tuple[list[str], tuple[int, ...], Traffic]:
    """Return options for all sizes if the path is fast enough, else for the program's own one."""
    is_latency = meaning("perftest", program).kind is not ProgramKind.BANDWIDTH

    def fitting(sizes: Sequence[int]) -> int:
        round_us = sum(size / pace.rate_mb_s for size in sizes)  # MB/s are bytes per us
        if is_latency:
            round_us = 2 * (round_us + len(sizes) * pace.latency_us)
        return min(MAX_PERFTEST_ITERATIONS, int(pace.seconds * 1e6 / round_us))

    sizes, options = ALL_SIZES, ["-a"]
    iterations = fitting(sizes)
    if iterations < MIN_PERFTEST_ITERATIONS:
        sizes = (LATENCY_BYTES if is_latency else BANDWIDTH_BYTES,)
        iterations = max(MIN_PERFTEST_ITERATIONS, fitting(sizes))
        options = ["-s", str(sizes[0])]
    segment = Segment(sizes=sizes, iterations=iterations, warmups=0)
    moved = _foretold("perftest", program, (segment,), 2)
    traffic = Traffic(exact=(moved.sent_by_first, moved.sent_by_second))
    return [*options, "-n", str(iterations)], sizes, traffic
