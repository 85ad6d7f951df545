"""Message schedules of well-known algorithms, played slowly: an oracle beside the closed formulas.

A schedule is a list of rounds; a round is a list of messages (source, destination, contents).
Contents are the names of what a message carries, each with its bytes; the player refuses a message
with anything that its source does not have, so that a schedule can't cheat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fabricproof.physics.collective import Operation, RankLayout

#: what a message carries: name -> bytes
Contents = dict[object, float]
Round = list[tuple[int, int, Contents]]


@dataclass
class Play:
    """Who has what, and what crossed whose border."""

    layout: RankLayout
    has: list[set[object]]
    sent: list[float] = field(default_factory=list)
    received: list[float] = field(default_factory=list)
    busiest: list[float] = field(default_factory=list)
    """of each round, the most bytes of any node or single message"""

    def __post_init__(self) -> None:
        """Begin with nothing moved."""
        self.sent = [0.0] * self.layout.num_nodes
        self.received = [0.0] * self.layout.num_nodes

    def play(self, messages: Round) -> None:
        """Move the messages of one round at once."""
        out = [0.0] * self.layout.num_nodes
        into = [0.0] * self.layout.num_nodes
        largest = 0.0
        for source, _, contents in messages:
            lacking = set(contents) - self.has[source]
            assert not lacking, f"rank {source} sends what it does not have: {lacking}"
        for source, target, contents in messages:
            size = sum(contents.values())
            largest = max(largest, size)
            self.has[target] |= set(contents)
            here, there = self.layout.node_of(source), self.layout.node_of(target)
            if here != there:
                out[here] += size
                into[there] += size
        for node in range(self.layout.num_nodes):
            self.sent[node] += out[node]
            self.received[node] += into[node]
        self.busiest.append(max(largest, *out, *into))


def _steps(ranks: int) -> list[int]:
    return [2**step for step in range((ranks - 1).bit_length())]


def binomial_bcast(layout: RankLayout, size: int) -> Play:
    """Those that have the vector pass it on, farthest first."""
    ranks = layout.num_ranks
    play = Play(layout=layout, has=[{"v"} if rank == 0 else set() for rank in range(ranks)])
    for step in reversed(_steps(ranks)):
        play.play(
            [
                (rank, rank + step, {"v": size})
                for rank in range(0, ranks, 2 * step)
                if rank + step < ranks
            ]
        )
    assert all("v" in has for has in play.has)
    return play


def _blocks(layout: RankLayout) -> list[set[object]]:
    return [{rank} for rank in range(layout.num_ranks)]


def ring_allgather(layout: RankLayout, size: int) -> Play:
    """Every rank passes to its right what it got from its left."""
    ranks = layout.num_ranks
    play = Play(layout=layout, has=_blocks(layout))
    for step in range(ranks - 1):
        play.play(
            [(rank, (rank + 1) % ranks, {(rank - step) % ranks: size}) for rank in range(ranks)]
        )
    assert all(len(has) == ranks for has in play.has)
    return play


def bruck_allgather(layout: RankLayout, size: int) -> Play:
    """What a rank has doubles, from the rank at doubling distance."""
    ranks = layout.num_ranks
    play = Play(layout=layout, has=_blocks(layout))
    for step in _steps(ranks):
        count = min(step, ranks - step)
        play.play(
            [
                (
                    (rank + step) % ranks,
                    rank,
                    {(rank + step + each) % ranks: size for each in range(count)},
                )
                for rank in range(ranks)
            ]
        )
    assert all(len(has) == ranks for has in play.has)
    return play


def pairwise_alltoall(layout: RankLayout, size: int) -> Play:
    """In round k every rank gives the one k further on its block."""
    ranks = layout.num_ranks
    has: list[set[object]] = [{(rank, to) for to in range(ranks)} for rank in range(ranks)]
    play = Play(layout=layout, has=has)
    for step in range(1, ranks):
        play.play(
            [
                (rank, (rank + step) % ranks, {(rank, (rank + step) % ranks): size})
                for rank in range(ranks)
            ]
        )
    assert all((source, rank) in play.has[rank] for rank in range(ranks) for source in range(ranks))
    return play


def bruck_alltoall(layout: RankLayout, size: int) -> Play:
    """In round k every block whose way has bit k set moves 2^k further on."""
    ranks = layout.num_ranks
    has: list[set[object]] = [{(rank, to) for to in range(ranks)} for rank in range(ranks)]
    play = Play(layout=layout, has=has)
    at = {block: block[0] for rank in range(ranks) for block in has[rank]}  # type: ignore[index]
    for step in _steps(ranks):
        messages: dict[int, Contents] = {}
        for block, holder in at.items():
            if (block[1] - block[0]) % ranks & step:  # type: ignore[index]
                messages.setdefault(holder, {})[block] = size
                at[block] = (holder + step) % ranks
        play.play([(rank, (rank + step) % ranks, what) for rank, what in messages.items()])
    assert all(holder == block[1] for block, holder in at.items())  # type: ignore[index]
    return play


def linear_gather(layout: RankLayout, size: int) -> Play:
    """Every rank sends its block to the root, one after the other."""
    play = Play(layout=layout, has=_blocks(layout))
    for rank in range(1, layout.num_ranks):
        play.play([(rank, 0, {rank: size})])
    assert len(play.has[0]) == layout.num_ranks
    return play


def binomial_gather(layout: RankLayout, size: int) -> Play:
    """Rank r + 2^k sends all that it has to rank r."""
    ranks = layout.num_ranks
    play = Play(layout=layout, has=_blocks(layout))
    for step in _steps(ranks):
        play.play(
            [
                (rank + step, rank, dict.fromkeys(play.has[rank + step], size))
                for rank in range(0, ranks, 2 * step)
                if rank + step < ranks
            ]
        )
    assert len(play.has[0]) == ranks
    return play


def linear_scatter(layout: RankLayout, size: int) -> Play:
    """The root sends every rank its block."""
    ranks = layout.num_ranks
    play = Play(
        layout=layout, has=[set(range(ranks)) if rank == 0 else set() for rank in range(ranks)]
    )
    for rank in range(1, ranks):
        play.play([(0, rank, {rank: size})])
    return play


def doubling_allreduce(layout: RankLayout, size: int) -> Play:
    """Whole partial sums at doubling distance; powers of two only.

    A partial sum over ranks is one vector, whatever it sums up.
    """
    ranks = layout.num_ranks
    sums: list[frozenset[int]] = [frozenset({rank}) for rank in range(ranks)]
    play = Play(layout=layout, has=[{part} for part in sums])
    for step in _steps(ranks):
        play.play([(rank, rank ^ step, {sums[rank]: size}) for rank in range(ranks)])
        sums = [sums[rank] | sums[rank ^ step] for rank in range(ranks)]
        for rank in range(ranks):
            play.has[rank].add(sums[rank])
    assert all(len(part) == ranks for part in sums)
    return play


def _ring_reduce_scatter(play: Play, size: float) -> None:
    """Partial sums of one share travel round the ring and end, whole, at the share's rank."""
    ranks = play.layout.num_ranks
    for step in range(ranks - 1):
        messages: Round = []
        for rank in range(ranks):
            share = (rank - step - 1) % ranks
            summed = frozenset((share + 1 + each) % ranks for each in range(step + 1))
            messages.append((rank, (rank + 1) % ranks, {(share, summed): size}))
        play.play(messages)
        for rank in range(ranks):
            share = (rank - step - 2) % ranks
            summed = frozenset((share + 1 + each) % ranks for each in range(step + 2))
            assert rank in summed
            play.has[rank].add((share, summed))


def _shares(layout: RankLayout) -> list[set[object]]:
    ranks = layout.num_ranks
    return [{(share, frozenset({rank})) for share in range(ranks)} for rank in range(ranks)]


def ring_reduce_scatter(layout: RankLayout, size: int) -> Play:
    """Partial sums travel round the ring; ``size`` must be a multiple of the ranks."""
    play = Play(layout=layout, has=_shares(layout))
    _ring_reduce_scatter(play, size / layout.num_ranks)
    everybody = frozenset(range(layout.num_ranks))
    assert all((rank, everybody) in play.has[rank] for rank in range(layout.num_ranks))
    return play


def ring_allreduce(layout: RankLayout, size: int) -> Play:
    """A reduce-scatter on the ring, then an allgather of the sums."""
    play = ring_reduce_scatter(layout, size)
    ranks = layout.num_ranks
    everybody = frozenset(range(ranks))
    for step in range(ranks - 1):
        play.play(
            [
                (
                    rank,
                    (rank + 1) % ranks,
                    {((rank - step) % ranks, everybody): size / ranks},
                )
                for rank in range(ranks)
            ]
        )
    assert all((share, everybody) in has for has in play.has for share in range(ranks))
    return play


def binomial_reduce(layout: RankLayout, size: int) -> Play:
    """Partial sums go up a tree."""
    ranks = layout.num_ranks
    sums: list[frozenset[int]] = [frozenset({rank}) for rank in range(ranks)]
    play = Play(layout=layout, has=[{part} for part in sums])
    for step in _steps(ranks):
        senders = list(range(step, ranks, 2 * step))
        play.play([(rank, rank - step, {sums[rank]: size}) for rank in senders])
        for rank in senders:
            sums[rank - step] |= sums[rank]
            play.has[rank - step].add(sums[rank - step])
    assert len(sums[0]) == ranks
    return play


#: operation -> (name of the model, schedule, only for powers of two)
SCHEDULES: list[tuple[Operation, str, Callable[[RankLayout, int], Play], bool]] = [
    (Operation.BCAST, "binomial", binomial_bcast, False),
    (Operation.REDUCE, "binomial", binomial_reduce, False),
    (Operation.ALLREDUCE, "recursive doubling", doubling_allreduce, True),
    (Operation.ALLREDUCE, "ring", ring_allreduce, False),
    (Operation.ALLGATHER, "ring", ring_allgather, False),
    (Operation.ALLGATHER, "Bruck", bruck_allgather, False),
    (Operation.ALLTOALL, "pairwise", pairwise_alltoall, False),
    (Operation.ALLTOALL, "Bruck", bruck_alltoall, False),
    (Operation.GATHER, "linear", linear_gather, False),
    (Operation.GATHER, "binomial", binomial_gather, False),
    (Operation.SCATTER, "linear", linear_scatter, False),
    (Operation.REDUCE_SCATTER, "pairwise", ring_reduce_scatter, False),
]
