"""Measurements between two nodes without MPI: what ``peer.sh`` is told, and what comes of it.

iperf3 (all streams of a process in one thread before 3.16), iperf (a thread for each stream) and
perftest are the floor under MPI: what the kernel's TCP, or the verbs, carry over the same rail.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from fabricproof.benchmarks.catalogue import meaning
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.errors import ConfigError
from fabricproof.job.plan.commands import Job
from fabricproof.stacks.programs import Located
from fabricproof.stacks.workload import Segment, expected_bytes

PEER_FILE = "peer.sh"

#: suite -> Debian's package of it
PEER_SUITES = {"iperf3": "iperf3", "iperf": "iperf", "perftest": "perftest"}

#: what perftest's ``-a`` measures: 2 B to 8 MiB (``for (i = 1; i < 24; ++i)``, src/write_bw.c)
ALL_SIZES = tuple(2**power for power in range(1, 24))

#: DEF_SIZE_BW and DEF_SIZE_LAT, DEF_ITERS_WB of src/perftest_parameters.h
BANDWIDTH_BYTES, LATENCY_BYTES, MAX_ITERATIONS = 65536, 2, 5000

#: Fewer rounds of each size say too little of it; then one size is measured, more often.
MIN_ITERATIONS = 200

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

    Args:
        suite: one of :data:`PEER_SUITES`.
        program: ``iperf3``, ``iperf``, ``ib_write_bw`` ...
        rail: interface, or HCA port as ``mlx5_0:1``.
        pace: what is expected.
        streams: TCP connections at once.

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
    return Job(commands=(_command(seconds, rail, program, options),), sizes=(), sent_bytes=None)


def _command(seconds: float, rail: str, program: str, options: list[str]) -> tuple[str, ...]:
    limit = str(round(seconds) + ANSWER_SECONDS)
    return ("bash", PEER_FILE, limit, rail, program, *options)


def _perftest_job(program: str, rail: str, pace: Pace) -> Job:
    """Return all sizes where the path is fast enough for them, else the program's own one."""
    is_latency = meaning("perftest", program).kind is not ProgramKind.BANDWIDTH
    sizes: tuple[int, ...] = ALL_SIZES
    iterations = _fitting(pace, sizes, is_latency=is_latency)
    options = ["-a"]
    if iterations < MIN_ITERATIONS:
        sizes = (LATENCY_BYTES if is_latency else BANDWIDTH_BYTES,)
        iterations = max(MIN_ITERATIONS, _fitting(pace, sizes, is_latency=is_latency))
        options = ["-s", str(sizes[0])]
    moved = expected_bytes(
        "perftest", program, (Segment(sizes=sizes, iterations=iterations, warmups=0),)
    )
    assert moved is not None, f"{program} is in stack.volume"
    return Job(
        commands=(_command(2 * pace.seconds, rail, program, [*options, "-n", str(iterations)]),),
        sizes=sizes,
        sent_bytes=(moved.sent_by_first, moved.sent_by_second),
    )


def _fitting(pace: Pace, sizes: tuple[int, ...], *, is_latency: bool) -> int:
    # MB/s are bytes per us.
    round_us = sum(size / pace.rate_mb_s for size in sizes)
    if is_latency:
        round_us = 2 * (round_us + len(sizes) * pace.latency_us)
    return min(MAX_ITERATIONS, int(pace.seconds * 1e6 / round_us))


def peer_seconds(argv: tuple[str, ...]) -> float:
    """Return how long a command of :func:`peer_job` measures, in seconds."""
    if "-t" in argv:
        return float(argv[argv.index("-t") + 1])
    return max(1.0, (float(argv[2]) - ANSWER_SECONDS) / 2)
