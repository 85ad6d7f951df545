"""What well-known algorithms cost: sums of rounds in Hockney's alpha-beta-gamma model.

A round of messages of m bytes costs alpha + m beta x sharing, where the sharing counts the node's
ranks whose messages of that round leave the node together over its rails; a reduction adds
gamma for each byte.  Sources, by the names used here:

- T: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in
  MPICH", Int. J. High Performance Computing Applications 19 (2005) 49-66;
- C: E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn, "Collective communication: theory,
  practice, and experience", Concurrency and Computation 19 (2007) 1749-1783;
- B: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient algorithms for all-to-all
  communications in multiport message-passing systems", IEEE TPDS 8 (1997) 1143-1156;
- P: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
  J. Parallel and Distributed Computing 69 (2009) 117-124;
- H: D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization", Int. J.
  Parallel Programming 17 (1988) 1-17 (dissemination).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from fabricproof.physics.collective import Operation, RankLayout


@dataclass(frozen=True, kw_only=True)
class Channel:
    """What a message between two ranks costs.

    Attributes:
        alpha_us: time of an empty message, one way, us.
        beta_us_per_byte: further time of each byte where one rank has the node's rails to itself.
        gamma_us_per_byte: time to reduce one byte.  By default 0.001 us (1 GB/s), which a single
            core of any machine of this century does (T, section 3, leaves it open).
    """

    alpha_us: float
    beta_us_per_byte: float
    gamma_us_per_byte: float = 0.001


@dataclass(frozen=True, kw_only=True)
class _Case:
    """One operation of ``size`` bytes on ``layout`` over ``channel``; times in us."""

    size: int
    layout: RankLayout
    channel: Channel

    @property
    def ranks(self) -> int:
        return self.layout.num_ranks

    @property
    def share(self) -> float:
        """Bytes of one rank's share of the vector."""
        return self.size / self.ranks

    @property
    def rounds(self) -> int:
        """Rounded-up binary logarithm of the number of ranks."""
        return (self.ranks - 1).bit_length()

    @property
    def steps(self) -> list[int]:
        """Distances 1, 2, 4 ... below the number of ranks."""
        return [2**step for step in range(self.rounds)]

    @property
    def power(self) -> int:
        """The largest power of two that is no more than the number of ranks."""
        return 1 << (self.ranks.bit_length() - 1)

    @property
    def halves(self) -> list[tuple[int, float]]:
        """Distances 1, 2, 4 ... below that power, and the part of the vector that goes so far."""
        steps = (step for step in self.steps if step < self.power)
        return [(step, self.size * step / self.power) for step in steps]

    def round(self, message: float, sharing: int = 1) -> float:
        """Cost of one round of messages of so many bytes, ``sharing`` of which leave a node."""
        return self.channel.alpha_us + message * self.channel.beta_us_per_byte * max(1, sharing)

    def reduced(self, size: float) -> float:
        """Time to add up so many bytes."""
        return size * self.channel.gamma_us_per_byte

    def leaving(self, distance: int) -> int:
        """Most ranks of a node whose partner is so many further on, on another node."""
        return min(distance, self.layout.ranks_per_node)

    def swapping(self, distance: int) -> int:
        """Most ranks of a node that swap with a rank of another one; distance a power of two."""
        node_of = self.layout.node_of
        swaps = ((node_of(rank), node_of(rank ^ distance)) for rank in range(self.power))
        return max(Counter(here for here, there in swaps if here != there).values(), default=0)

    def ring(self, block: float) -> float:
        """T 4.1: P-1 rounds, each block to the right neighbour; one rank of a node leaves it."""
        return (self.ranks - 1) * self.round(block)

    def pairwise(self, block: float) -> float:
        """T 4.3: P-1 rounds, each with the rank at another distance, one block each."""
        distances = (min(step, self.ranks - step) for step in range(1, self.ranks))
        return sum(self.round(block, self.leaving(distance)) for distance in distances)

    def tree_of_blocks(self, block: float) -> float:
        """C (minimum spanning tree): rounds halve the blocks, all through the root's node."""
        beta = self.channel.beta_us_per_byte
        return self.rounds * self.channel.alpha_us + (self.ranks - 1) * block * beta

    def folded(self) -> float:
        """T 4.5: where P is no power of two, the ranks beyond it hand a neighbour their vector."""
        is_even = self.ranks == self.power
        return 0.0 if is_even else 2 * self.round(self.size) + self.reduced(self.size)


def _bruck_allgather(case: _Case) -> float:
    """T 4.1, B: as doubling, for any number of ranks: the last round moves what is left."""
    blocks = ((step, min(step, case.ranks - step)) for step in case.steps)
    return sum(case.round(count * case.size, case.leaving(step)) for step, count in blocks)


def _bruck_alltoall(case: _Case) -> float:
    """T 4.3, B: logarithmic rounds, in each about half of all blocks."""
    blocks = ((step, sum(1 for k in range(case.ranks) if k & step)) for step in case.steps)
    return sum(case.round(count * case.size, case.leaving(step)) for step, count in blocks)


def _doubling_allgather(case: _Case) -> float | None:
    """T 4.1: distance and message double; powers of two only."""
    if case.ranks != case.power:
        return None
    return sum(case.round(step * case.size, case.swapping(step)) for step in case.steps)


def _doubling_allreduce(case: _Case) -> float:
    """T 4.5 (recursive doubling): whole vectors at doubling distance."""
    rounds = sum(case.round(case.size, case.swapping(step)) for step, _ in case.halves)
    return rounds + len(case.halves) * case.reduced(case.size) + case.folded()


def _halving(case: _Case) -> float:
    """T 4.4 (recursive halving): messages and distances halve; other than powers of two folded."""
    rounds = (
        case.round(part, case.swapping(step)) + case.reduced(part) for step, part in case.halves
    )
    return sum(rounds) + case.folded()


def _rabenseifner(case: _Case) -> float:
    """T 4.5 (Rabenseifner): recursive halving, then recursive doubling of the shares."""
    return _halving(case) + sum(case.round(part, case.swapping(at)) for at, part in case.halves)


#: an algorithm's time in us; None where it does not apply
_Algorithm = Callable[[_Case], float | None]

#: C: the tree, or the root exchanges one block with each of the others in turn
_ROOTED: Mapping[str, _Algorithm] = {
    "binomial": lambda case: case.tree_of_blocks(case.size),
    "linear": lambda case: case.ring(case.size),
}

_ALGORITHMS: Mapping[Operation, Mapping[str, _Algorithm]] = {
    Operation.BCAST: {
        # T 4.2: those that have the vector pass it on, one rank of a node in each round
        "binomial": lambda case: case.rounds * case.round(case.size),
        # T 4.2 (van de Geijn): a binomial scatter, then a ring, for long broadcasts
        "scatter-allgather": lambda case: case.tree_of_blocks(case.share) + case.ring(case.share),
    },
    Operation.REDUCE: {
        # T 4.5: the broadcast's tree backwards, with a reduction in each round
        "binomial": lambda case: case.rounds * (case.round(case.size) + case.reduced(case.size)),
        # T 4.5: recursive halving, then a binomial gather at the root
        "Rabenseifner": lambda case: _halving(case) + case.tree_of_blocks(case.share),
    },
    Operation.ALLREDUCE: {
        "recursive doubling": _doubling_allreduce,
        "Rabenseifner": _rabenseifner,
        # P: a reduce-scatter and an allgather on a ring, 2(P-1) rounds of one share each
        "ring": lambda case: 2 * case.ring(case.share) + case.reduced(case.size - case.share),
    },
    Operation.ALLGATHER: {
        "recursive doubling": _doubling_allgather,
        "Bruck": _bruck_allgather,
        "ring": lambda case: case.ring(case.size),
    },
    Operation.ALLTOALL: {
        "Bruck": _bruck_alltoall,
        "pairwise": lambda case: case.pairwise(case.size),
    },
    Operation.GATHER: _ROOTED,
    Operation.SCATTER: _ROOTED,
    Operation.REDUCE_SCATTER: {
        "recursive halving": _halving,
        # T 4.4 (pairwise exchange): one share in each round
        "pairwise": lambda case: case.pairwise(case.share) + case.reduced(case.size - case.share),
    },
    # H: in round k every rank signals the one 2^k further on
    Operation.BARRIER: {"dissemination": lambda case: case.rounds * case.round(0)},
}


def models(
    operation: Operation, size: int, layout: RankLayout, channel: Channel
) -> Mapping[str, float]:
    """Return the modelled time of each algorithm of ``operation``, in us, by its name.

    ``size`` is in bytes, as :class:`Operation` counts it; root is rank 0.
    """
    case = _Case(size=size, layout=layout, channel=channel)
    found = {name: cost(case) for name, cost in _ALGORITHMS[operation].items()}
    return {name: time for name, time in found.items() if time is not None}


@lru_cache(maxsize=4096)  # every stack asks the same of the same wires
def best_model(
    operation: Operation, size: int, layout: RankLayout, channel: Channel
) -> tuple[str, float]:
    """Return the cheapest algorithm by the model, and its time in us; arguments as above."""
    return min(models(operation, size, layout, channel).items(), key=lambda each: each[1])
