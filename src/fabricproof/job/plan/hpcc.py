"""What is run of HPC Challenge, how long it takes, and what it must move."""

from __future__ import annotations

import math

from fabricproof.physics import Fabric, bound
from fabricproof.physics.collective import Layout
from fabricproof.verdict.rings import LEAST_STEPS, least_bytes, natural_crossings, random_crossings

HPCC_FILE = "hpcc.sh"
SUITE, PROGRAM = "hpcc", "LatencyBandwidth"
BINARY = "hpcc"

#: the message of the bandwidth measurement (bench_lat_bw), bytes
MESSAGE_BYTES = 2_000_000

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


def moved_bytes(layout: Layout) -> tuple[tuple[int, int], ...]:
    """Return what each node must send and receive, whatever the random rings were."""
    due = least_bytes(layout, MESSAGE_BYTES)
    return ((due, due),) * layout.num_nodes


def hpcc_seconds(fabric: Fabric | None, layout: Layout) -> float:
    """Return how long a run takes, in seconds; 0 where no fabric is declared.

    Rings as ``verdict.rings`` derives their steps, ping-pongs as hpcc 1.5.0 chooses their
    pairs (``cross_ping_pong_controlled``).
    """
    if fabric is None:
        return 0.0
    message_us = MESSAGE_BYTES / bound(fabric).low_mb_s
    crossings = _NATURAL * natural_crossings(layout)
    crossings += (1 - _NATURAL) * random_crossings(layout).most
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
