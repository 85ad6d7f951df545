"""What programs of all ranks are told to do, and the least that must be seen of them.

They are the collectives of OSU and IMB, nccl-tests, and HPC Challenge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fabricproof.benchmarks.catalogue import collective_of, program_of
from fabricproof.core.errors import ConfigError
from fabricproof.job.commands import LARGE_MESSAGE_BYTES, Job
from fabricproof.job.leg import Traffic
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
_HOLDS_ALL_BLOCKS = frozenset({
    Operation.ALLGATHER, Operation.ALLTOALL, Operation.GATHER, Operation.SCATTER,
    Operation.REDUCE_SCATTER,
})  # fmt: skip

#: nccl-tests on the GPUs of each kind; rccl-tests is its port
BUS_SUITES: Mapping[str, str] = {"cuda": "nccl-tests", "rocm": "rccl-tests"}

#: messages of a bus bandwidth: from the first to the last of these, in bytes; the last shows the
#: plateau of 400 Gb/s rails, where an operation takes milliseconds
BUS_BYTES = (1024, 128 * 1024 * 1024)

#: repetitions of each size, unseen ones and seconds that a run may take: loading CUDA and NCCL and
#: finding the topology takes most of them
BUS_REPETITIONS, BUS_WARMUPS, BUS_SECONDS = 20, 5, 180

HPCC_FILE = "hpcc.sh"
HPCC_SUITE, HPCC_PROGRAM = "hpcc", "LatencyBandwidth"

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


def collective_sizes(operation: Operation, layout: RankLayout, max_size: int) -> tuple[int, ...]:
    """Return the message sizes to measure: doubling from 4 B, as far as buffers allow."""
    if operation is Operation.BARRIER:
        return ()
    most = BUFFER_BYTES // layout.num_ranks if operation in _HOLDS_ALL_BLOCKS else max_size
    last = max(SMALLEST_BYTES, min(max_size, most))
    return tuple(SMALLEST_BYTES << step for step in range((last // SMALLEST_BYTES).bit_length()))


def make_collective_job(
    suite: str,
    program: str,
    argv: Sequence[str],
    layout: RankLayout,
    *,
    max_size: int,
    channel: Channel,
    seconds: float,
) -> Job:
    """Return the job that measures ``program`` on ``layout`` in about ``seconds``.

    ``max_size`` is of a message, in bytes; what a message costs by ``channel`` only sizes the
    effort; the start of the program is not in ``seconds``.

    Raises:
        ConfigError: the program is no collective that is known.
    """
    known = collective_of(suite, program)
    if known is None:
        raise ConfigError(
            "not a known collective", expected="osu_allreduce, Bcast ...", got=program
        )
    sizes = collective_sizes(known.operation, layout, max_size)
    small = tuple(size for size in sizes if size <= LARGE_MESSAGE_BYTES)
    parts = [small, sizes[len(small) :]] if suite != "imb" and sizes else [sizes or (0,)]
    parts = [part for part in parts if part]
    shares = layout.num_ranks if known.share_sized else 1
    segments = []
    for part in parts:
        times = (best_model(known.operation, each * shares, layout, channel)[1] for each in part)
        fitting = int(seconds / len(parts) * 1e6 / (MODEL_SLACK * sum(times)))
        iterations = max(LEAST_REPETITIONS, min(MOST_REPETITIONS, fitting))
        warmups = max(2, iterations // 10)
        segments.append(Segment(sizes=part, iterations=iterations, warmups=warmups))
    total, packets = _nothing(layout), 0
    for segment in segments:
        # IMB's own warm-ups are not counted.
        rounds = segment.iterations + (0 if suite == "imb" else segment.warmups)
        for size in segment.sizes:
            total = _more(total, least_bytes(known.operation, size, layout), rounds)
            # If every rank waits for all others, nobody begins the next operation before all have
            # spoken in this one, and no two share a packet.
            packets += segment.iterations * everyone_waits(known.operation, size, layout)
    return Job(
        commands=collective_lines(suite, program, argv, segments, num_ranks=layout.num_ranks),
        sizes=sizes,
        traffic=_at_least(total, packets),
    )


def _nothing(layout: RankLayout) -> list[NodeBytes]:
    return [NodeBytes(sent=0, received=0)] * layout.num_nodes


def _more(total: Sequence[NodeBytes], once: Sequence[NodeBytes], rounds: int) -> list[NodeBytes]:
    return [sum_ + each.times(rounds) for sum_, each in zip(total, once, strict=True)]


def _at_least(total: Sequence[NodeBytes], packets: int = 0) -> Traffic:
    return Traffic(at_least=tuple((each.sent, each.received, packets) for each in total))


def make_bus_job(suite: str, program: str, argv: Sequence[str], layout: RankLayout) -> Job:
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
    total = _nothing(layout)
    for size in sizes:
        once = [NodeBytes(sent=size, received=size)] * layout.num_nodes
        if row.bus.operation is not None:
            once = list(least_bytes(row.bus.operation, size, layout))
        total = _more(total, once, 2 * BUS_REPETITIONS)
    options = ["-b", str(least), "-e", str(most), "-f", "2", "-g", "1"]
    options += ["-n", str(BUS_REPETITIONS), "-w", str(BUS_WARMUPS)]
    return Job(commands=((*argv, *options),), sizes=sizes, traffic=_at_least(total))


def hpcc_command(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return what each rank is told, after ``rank.sh``, in the job's folder."""
    return ("bash", HPCC_FILE, *argv)


def hpcc_traffic(layout: RankLayout) -> Traffic:
    """Return what each node must send and receive, whatever the random rings were."""
    due = least_ring_bytes(layout, HPCC_MESSAGE_BYTES)
    return _at_least([NodeBytes(sent=due, received=due)] * layout.num_nodes)


def hpcc_seconds(fabric: Fabric | None, layout: RankLayout) -> float:
    """Return how long a run takes, in seconds; 0 if no fabric is declared.

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
    pings = max(5, math.isqrt(int(PING_PONG_SECONDS / max(pair, 1e-9))))
    stride = max(1, int(layout.num_ranks / pings + 0.9))
    stride = 3 if stride == 2 else stride
    players = -(-layout.num_ranks // stride)
    return rings + players * (players - 1) * pair + OTHER_SECONDS
