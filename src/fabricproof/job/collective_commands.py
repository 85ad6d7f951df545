"""What programs of all ranks are told to do, and the least that must be seen of them.

They are the collectives of OSU and IMB, and HPC Challenge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabricproof.benchmarks.catalogue import collective_of, program_of
from fabricproof.benchmarks.program import Collective
from fabricproof.core.errors import ConfigError
from fabricproof.job.commands import LARGE_MESSAGE_BYTES
from fabricproof.physics import Fabric, bound
from fabricproof.physics.collective import (
    LEAST_REPETITIONS,
    NodeBytes,
    Operation,
    RankLayout,
    everyone_waits,
    least_bytes,
)
from fabricproof.physics.collective_models import Channel, best_model
from fabricproof.stacks.workload import Segment, collective_lines
from fabricproof.verdict.collective import LEAST_STEPS, least_ring_bytes, ring_crossings

#: Messages start here: the smallest that reductions have (a float), so that programs compare.
SMALLEST_BYTES = 4

#: Repetitions beyond this make no mean truer.
MOST_REPETITIONS = 2000

#: Of the time that the model gives, real operations take about this many times as much.
MODEL_SLACK = 2.0

#: What one process may hold of all ranks' blocks: half of OSU's own limit (MAX_MEM_LIMIT 512 MiB,
#: util/osu_util.h) and a quarter of IMB's (``-mem`` 1 GiB for both buffers), above which both
#: measure less than they were asked to.
BUFFER_BYTES = 256 * 1024 * 1024

_HOLDS_ALL_BLOCKS = frozenset(
    {
        Operation.ALLGATHER,
        Operation.ALLTOALL,
        Operation.GATHER,
        Operation.SCATTER,
        Operation.REDUCE_SCATTER,
    }
)


@dataclass(frozen=True, kw_only=True)
class CollectiveJob:
    """What is run for one leg of a collective, and what is known of it beforehand.

    Attributes:
        commands: argument lists, each prints one table.
        sizes: message sizes that the tables hold together; empty for a barrier.
        least_bytes: payload (sent, received) that each node must show, in the order of the nodes.
        least_packets: packets that each node must send: one for each operation in which every rank
            waits for all others, since then nobody begins the next one before all have spoken in
            this, and no two share a packet; None where there is none.
    """

    commands: tuple[tuple[str, ...], ...]
    sizes: tuple[int, ...]
    least_bytes: tuple[tuple[int, int], ...]
    least_packets: tuple[int, ...] | None


def collective_sizes(operation: Operation, layout: RankLayout, max_size: int) -> tuple[int, ...]:
    """Return the message sizes to measure: doubling from 4 B, as far as buffers allow."""
    if operation is Operation.BARRIER:
        return ()
    most = BUFFER_BYTES // layout.num_ranks if operation in _HOLDS_ALL_BLOCKS else max_size
    last = max(SMALLEST_BYTES, min(max_size, most))
    count = (last // SMALLEST_BYTES).bit_length()
    return tuple(SMALLEST_BYTES << step for step in range(count))


def make_collective_job(
    suite: str,
    program: str,
    argv: Sequence[str],
    layout: RankLayout,
    *,
    max_size: int,
    channel: Channel,
    seconds: float,
) -> CollectiveJob:
    """Return the job that measures ``program`` on ``layout`` in about ``seconds``.

    ``channel``, what a message is thought to cost, only sizes the effort; ``seconds`` is the budget
    of the leg without its start, ``max_size`` in bytes.  ``is_load``: it is no measurement, but the
    largest size over and over, for ``seconds`` at least.

    Raises:
        ConfigError: the program is no collective that is known.
    """
    known = collective_of(suite, program)
    if known is None:
        raise ConfigError(
            "not a known collective", expected="osu_allreduce, Bcast ...", got=program
        )
    sizes = collective_sizes(known.operation, layout, max_size)
    segments = _segments(suite, known, sizes, layout, channel, seconds)
    total = _least(suite, known, segments, layout)
    operations = sum(
        each.iterations
        for each in segments
        for size in each.sizes
        if everyone_waits(known.operation, size, layout)
    )
    return CollectiveJob(
        commands=collective_lines(suite, program, argv, segments, num_ranks=layout.num_ranks),
        sizes=sizes,
        least_bytes=tuple((each.sent, each.received) for each in total),
        least_packets=(operations,) * layout.num_nodes if operations else None,
    )


def _segments(
    suite: str,
    known: Collective,
    sizes: tuple[int, ...],
    layout: RankLayout,
    channel: Channel,
    seconds: float,
) -> tuple[Segment, ...]:
    """Return the sizes with their repetitions: small and large ones apart, where it may be."""
    in_one = suite == "imb" or not sizes
    small = tuple(size for size in sizes if size <= LARGE_MESSAGE_BYTES)
    large = tuple(size for size in sizes if size > LARGE_MESSAGE_BYTES)
    parts = [sizes or (0,)] if in_one else [part for part in (small, large) if part]
    return tuple(_segment(known, part, layout, channel, seconds / len(parts)) for part in parts)


def _once_us(
    known: Collective, sizes: tuple[int, ...], layout: RankLayout, channel: Channel
) -> float:
    """Return what each size once takes with the best algorithm, microseconds in all."""
    shares = layout.num_ranks if known.share_sized else 1
    return sum(best_model(known.operation, size * shares, layout, channel)[1] for size in sizes)


def _segment(
    known: Collective,
    sizes: tuple[int, ...],
    layout: RankLayout,
    channel: Channel,
    seconds: float,
) -> Segment:
    once_us = _once_us(known, sizes, layout, channel)
    fitting = int(seconds * 1e6 / (MODEL_SLACK * once_us))
    iterations = max(LEAST_REPETITIONS, min(MOST_REPETITIONS, fitting))
    return Segment(sizes=sizes, iterations=iterations, warmups=max(2, iterations // 10))


def _least(
    suite: str, known: Collective, segments: Sequence[Segment], layout: RankLayout
) -> tuple[NodeBytes, ...]:
    """Return the least bytes of the whole leg; IMB's own warm-ups are not counted."""
    total = [NodeBytes(sent=0, received=0)] * layout.num_nodes
    for segment in segments:
        rounds = segment.iterations + (0 if suite == "imb" else segment.warmups)
        for size in segment.sizes:
            once = least_bytes(known.operation, size, layout)
            total = [sum_ + each.times(rounds) for sum_, each in zip(total, once, strict=True)]
    return tuple(total)


#: nccl-tests on the GPUs of each kind; rccl-tests is its port
BUS_SUITES: Mapping[str, str] = {"cuda": "nccl-tests", "rocm": "rccl-tests"}

#: messages of a bus bandwidth: from the first to the last of these, in bytes; the last shows the
#: plateau of 400 Gb/s rails, where an operation takes milliseconds
BUS_BYTES = (1024, 128 * 1024 * 1024)

#: repetitions of each size, unseen ones and seconds that a run may take: loading CUDA and NCCL and
#: finding the topology takes most of them
BUS_REPETITIONS, BUS_WARMUPS, BUS_SECONDS = 20, 5, 180


def make_bus_job(
    suite: str, program: str, argv: Sequence[str], layout: RankLayout
) -> CollectiveJob:
    """Return the job of one of nccl-tests with a GPU for each rank.

    What must be seen: each size, so many times out of place and as often in place (``TimeTest`` of
    src/common.cu), with the least that any algorithm moves; of ``sendrecv_perf`` what the last rank
    of each node sends to the first of the next.

    Raises:
        ConfigError: the program is none that is known.
    """
    row = program_of(suite, program)
    if row is None or row.bus is None:
        raise ConfigError("not one of nccl-tests", expected="all_reduce_perf ...", got=program)
    least, most = BUS_BYTES
    sizes = tuple(least << step for step in range((most // least).bit_length()))
    total = [NodeBytes(sent=0, received=0)] * layout.num_nodes
    for size in sizes:
        once = [NodeBytes(sent=size, received=size)] * layout.num_nodes
        if row.bus.operation is not None:
            once = list(least_bytes(row.bus.operation, size, layout))
        both = [each.times(2 * BUS_REPETITIONS) for each in once]
        total = [sum_ + each for sum_, each in zip(total, both, strict=True)]
    options = ["-b", str(least), "-e", str(most), "-f", "2", "-g", "1"]
    options += ["-n", str(BUS_REPETITIONS), "-w", str(BUS_WARMUPS)]
    return CollectiveJob(
        commands=((*argv, *options),),
        sizes=sizes,
        least_bytes=tuple((each.sent, each.received) for each in total),
        least_packets=None,
    )


HPCC_FILE = "hpcc.sh"
HPCC_SUITE, HPCC_PROGRAM = "hpcc", "LatencyBandwidth"
HPCC_BINARY = "hpcc"

#: the message of the bandwidth measurement (bench_lat_bw), bytes
HPCC_MESSAGE_BYTES = 2_000_000

#: of eleven rings one is in the order of the ranks
_NATURAL = 1 / 11

#: The better of two implementations is printed, both are run: on the virtual cluster 1.3 times the
#: time that the rails need on one of them, 1.8 times on two.
BOTH_IMPLEMENTATIONS = 1.4

#: the ping-pongs of 2000000 B take at most this (max_time_for_bandwidth of bench_lat_bw), more
#: where even the least number of pairs takes longer, and those of 8 B a third of it
PING_PONG_SECONDS = 30.0
#: two measurements of one unseen and one timed message there and back: each pair
_MESSAGES_OF_A_PAIR = 8

#: the other tests of the suite, with the problems of hpcc.sh, on the virtual cluster
OTHER_SECONDS = 6.0

#: a run that takes this many times what was expected hangs
LIMIT_FACTOR = 4.0


def hpcc_command(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return what each rank is told, after ``rank.sh``, in the job's folder."""
    return ("bash", HPCC_FILE, *argv)


def moved_bytes(layout: RankLayout) -> tuple[tuple[int, int], ...]:
    """Return what each node must send and receive, whatever the random rings were."""
    due = least_ring_bytes(layout, HPCC_MESSAGE_BYTES)
    return ((due, due),) * layout.num_nodes


def hpcc_seconds(fabric: Fabric | None, layout: RankLayout) -> float:
    """Return how long a run takes, in seconds; 0 where no fabric is declared.

    Rings as ``verdict.collective`` derives their steps, ping-pongs as hpcc 1.5.0 chooses their
    pairs (``cross_ping_pong_controlled``).
    """
    if fabric is None:
        return 0.0
    message_us = HPCC_MESSAGE_BYTES / bound(fabric).low_mb_s
    crossings = _NATURAL * ring_crossings(layout, "natural")
    crossings += (1 - _NATURAL) * ring_crossings(layout, "random")
    rings = BOTH_IMPLEMENTATIONS * LEAST_STEPS * crossings * message_us / 1e6
    pair = _MESSAGES_OF_A_PAIR * message_us / 1e6
    return rings + _pairs(layout.num_ranks, pair) * pair + OTHER_SECONDS


def _pairs(ranks: int, pair_seconds: float) -> int:
    """Return how many pairs of ranks play ping-pong, where each takes ``pair_seconds``."""
    pings = max(5, math.isqrt(int(PING_PONG_SECONDS / max(pair_seconds, 1e-9))))
    stride = max(1, int(ranks / pings + 0.9))
    stride = 3 if stride == 2 else stride
    players = -(-ranks // stride)
    return players * (players - 1)
