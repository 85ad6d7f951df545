"""How long one leg measures, from the command lines that were planned for it.

The repetitions stand in the commands; what one of them takes follows from the fabric as
:mod:`fabricproof.job.plan.effort` assumed it.  Starting the programs is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabricproof.benchmarks.catalogue import collective_of, program_of
from fabricproof.benchmarks.program import Collective
from fabricproof.job.plan.hpcc import SUITE as HPCC
from fabricproof.job.plan.hpcc import hpcc_seconds
from fabricproof.job.plan.leg import Leg
from fabricproof.job.plan.peer import PEER_SUITES, peer_seconds
from fabricproof.physics import bound, latency_floor_us
from fabricproof.physics.collective import Channel, Layout, best_model

#: A non-blocking program runs the operation by itself, then the same again beside a computation of
#: the same length (OSU: osu_iallreduce.c; IMB: IMB_iallreduce.c measures the three in turn).
NON_BLOCKING_RUNS = 3.0

#: IMB spends this on each message size beside its repetitions, in seconds; a non-blocking benchmark
#: also finds out how long its computation must be (48 legs of 15 sizes on the virtual cluster)
IMB_SIZE_SECONDS, IMB_NON_BLOCKING_SIZE_SECONDS = 0.13, 0.5


def operations_us(
    known: Collective, counts: Iterable[tuple[int, int]], layout: Layout, channel: Channel
) -> float:
    """Return what the operations of a run take together, in us.

    Args:
        known: what the program measures.
        counts: message sizes in bytes, and how often each is sent.
        layout: the ranks.
        channel: what a message is thought to cost.
    """
    runs = NON_BLOCKING_RUNS if known.non_blocking else 1.0
    return runs * sum(
        count * best_model(known.operation, size, layout, channel)[1] for size, count in counts
    )


#: What a small message is thought to take where the site does not say, as a multiple of the
#: physical floor.  The legs are sized by 20 times it (``rfm.legs.leg``), on the safe side for a
#: time limit; four MPIs on the virtual cluster took 12 to 15.
LATENCY_GUESS_FACTOR = 12

#: the memory of one machine in MB/s and its latency in us, where there is no fabric
MEMORY_MB_S, MEMORY_US = 3000.0, 10.0

#: IMB runs the whole benchmark once unseen before it measures (IMB_init_buffers_iter,
#: src_c/IMB_mem_manager.c); interface counters say 2.2 times the bytes of its tables, the clock
#: 2.4 times.  IMB-P2P has warm-ups of its own instead, a fifth more by the same counters.
IMB_RUNS, IMB_P2P_RUNS = 2.4, 1.2

#: the least message of a reduction
FLOAT_BYTES = 4

#: IMB's ``-iter N,MB`` counts 2**20 bytes a MB (IMB user guide, "-iter")
_IMB_MB = 2**20

_PORT_SEGMENT = re.compile(r"(?P<sizes>\d+(?:,\d+)*):(?P<i>\d+):(?P<x>\d+):(?P<w>\d+)")


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """How often one message size is sent: ``rounds`` times a window of ``window`` messages."""

    size: int
    rounds: int
    window: int = 1


def planned_rounds(leg: Leg) -> list[Rounds]:
    """Return what the leg's commands say; empty where they are of a kind that is not known."""
    read = _imb if leg.suite == "imb" else _ports if leg.suite == "osu-mpi4py" else _osu
    return [each for argv in leg.commands for each in read(argv)]


def _powers(first: int, last: int) -> Iterator[int]:
    size = first
    while size <= last:
        yield size
        size = size * 2 or 1


def _option(argv: Sequence[str], name: str) -> tuple[int, ...]:
    """Return the whole numbers after option ``name``; none where it is absent or no number."""
    at = argv.index(name) + 1 if name in argv else len(argv)
    value = argv[at] if at < len(argv) else ""
    parts = re.split("[:,]", value)
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def _osu(argv: Sequence[str]) -> Iterator[Rounds]:
    sizes, measured = _option(argv, "-m"), _option(argv, "-i")
    if not measured or ("-m" in argv and not sizes):
        return
    # A reduction is told its largest message alone, a barrier none.
    sizes = (FLOAT_BYTES, *sizes) if len(sizes) == 1 else sizes or (0, 0)
    warmups, window = _option(argv, "-x") or (0,), _option(argv, "-W") or (1,)
    for size in _powers(*sizes):
        yield Rounds(size=size, rounds=measured[0] + warmups[0], window=window[0])


def _ports(argv: Sequence[str]) -> Iterator[Rounds]:
    for word in argv:
        match = _PORT_SEGMENT.fullmatch(word)
        if match is not None:
            rounds = int(match["i"]) + int(match["x"])
            for size in map(int, match["sizes"].split(",")):
                yield Rounds(size=size, rounds=rounds, window=int(match["w"]))


def _imb(argv: Sequence[str]) -> Iterator[Rounds]:
    powers, repetitions = _option(argv, "-msglog"), _option(argv, "-iter")
    if len(powers) != 2 or len(repetitions) != 2:
        if not powers and repetitions:
            yield Rounds(size=0, rounds=repetitions[0])
        return
    for size in _powers(2 ** powers[0], 2 ** powers[1]):
        yield Rounds(
            size=size, rounds=max(1, min(repetitions[0], repetitions[1] * _IMB_MB // size))
        )


def assumed_path(leg: Leg) -> tuple[float, float]:
    """Return the rate in MB/s and the latency in us that the leg's effort was made for."""
    fabric = leg.rules().fabric
    if fabric is None:
        return MEMORY_MB_S, MEMORY_US
    guess = LATENCY_GUESS_FACTOR * latency_floor_us(fabric, 0).us
    known = leg.references.get("latency")
    return bound(fabric).low_mb_s, min(guess, known.value) if known else guess


def model_seconds(leg: Leg) -> float:
    """Return how long the leg measures, in seconds, 0 where its commands say nothing."""
    if leg.suite in PEER_SUITES:
        return sum(map(peer_seconds, leg.commands))
    if leg.suite == HPCC:
        ranks = Layout(num_ranks=leg.num_ranks, ranks_per_node=leg.ranks_per_node)
        return hpcc_seconds(leg.rules().fabric, ranks)
    rate_mb_s, latency_us = assumed_path(leg)
    known = collective_of(leg.suite, leg.program)
    if known is not None:
        return _collective_seconds(leg, known, rate_mb_s, latency_us)
    row = program_of(leg.suite, leg.program)
    crossings = float(row.messages.crossings) if row is not None and row.messages else 1.0
    if leg.suite == "imb":
        crossings *= IMB_P2P_RUNS if "IMB-P2P" in leg.commands[0][0] else IMB_RUNS
    # MB/s are bytes per us.
    return sum(
        each.rounds * (latency_us + each.window * each.size / rate_mb_s) * crossings / 1e6
        for each in planned_rounds(leg)
    )


def _collective_seconds(leg: Leg, known: Collective, rate_mb_s: float, latency_us: float) -> float:
    alpha_us = min(latency_us, leg.stated_alpha_us or latency_us)
    channel = Channel(alpha_us=alpha_us, beta_us_per_byte=1 / rate_mb_s)
    layout = Layout(num_ranks=leg.num_ranks, ranks_per_node=leg.ranks_per_node)
    counts = [(each.size, each.rounds) for each in planned_rounds(leg)]
    seconds = operations_us(known, counts, layout, channel) / 1e6
    if leg.suite != "imb":
        return seconds
    each = IMB_NON_BLOCKING_SIZE_SECONDS if known.non_blocking else IMB_SIZE_SECONDS
    return IMB_RUNS * seconds + each * len(counts)
