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

from fabricproof.physics.collective.operation import Operation, RankLayout


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
    """One operation of ``size`` bytes on ``layout`` over ``channel``."""

    size: int
    layout: RankLayout
    channel: Channel

    @property
    def ranks(self) -> int:
        return self.layout.num_ranks

    @property
    def rounds(self) -> int:
        """Rounded-up binary logarithm of the number of ranks."""
        return (self.ranks - 1).bit_length()

    @property
    def even(self) -> bool:
        """The number of ranks is a power of two."""
        return self.ranks & (self.ranks - 1) == 0

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
        power = 2 ** (self.ranks.bit_length() - 1)
        leavers = Counter(
            self.layout.node_of(rank)
            for rank in range(power)
            if self.layout.node_of(rank) != self.layout.node_of(rank ^ distance)
        )
        return max(leavers.values(), default=0)


#: an algorithm: its name, and its time in us; None where it does not apply
_Algorithm = Callable[[_Case], float | None]


def _binomial(case: _Case) -> float:
    """T 4.2: those that have the vector pass it on, one rank of a node in each round."""
    return case.rounds * case.round(case.size)


def _binomial_reduce(case: _Case) -> float:
    """T 4.5: the broadcast's tree backwards, with a reduction in each round."""
    return case.rounds * (case.round(case.size) + case.reduced(case.size))


def _binomial_blocks(case: _Case, blocks: int, size: float) -> float:
    """C (minimum spanning tree): rounds halve the blocks, all through the root's node."""
    alphas = case.rounds * case.channel.alpha_us
    return alphas + (blocks - 1) * size * case.channel.beta_us_per_byte


def _binomial_tree_of_blocks(case: _Case) -> float:
    return _binomial_blocks(case, case.ranks, case.size)


def _linear_to_or_from_root(case: _Case) -> float:
    """C: the root exchanges one block with each of the others in turn."""
    return (case.ranks - 1) * case.round(case.size)


def _ring_of(case: _Case, block: float) -> float:
    """T 4.1: P-1 rounds, each block to the right neighbour; one rank of a node leaves it."""
    return (case.ranks - 1) * case.round(block)


def _ring_allgather(case: _Case) -> float:
    return _ring_of(case, case.size)


def _doubling_allgather(case: _Case) -> float | None:
    """T 4.1: distance and message double; powers of two only."""
    if not case.even:
        return None
    return _doubling_blocks(case, case.size)


def _doubling_blocks(case: _Case, block: float) -> float:
    steps = [2**step for step in range(case.rounds)]
    return sum(case.round(step * block, case.swapping(step)) for step in steps)


def _bruck_allgather(case: _Case) -> float:
    """T 4.1, B: as doubling, for any number of ranks: the last round moves what is left."""
    total = 0.0
    for step in (2**each for each in range(case.rounds)):
        blocks = min(step, case.ranks - step)
        total += case.round(blocks * case.size, case.leaving(step))
    return total


def _scatter_allgather(case: _Case) -> float:
    """T 4.2 (van de Geijn): a binomial scatter, then a ring, for long broadcasts."""
    block = case.size / case.ranks
    return _binomial_blocks(case, case.ranks, block) + _ring_of(case, block)


def _folded(case: _Case) -> float:
    """T 4.5: where P is no power of two, the ranks beyond it hand their vector to a neighbour."""
    if case.even:
        return 0.0
    return 2 * case.round(case.size) + case.reduced(case.size)


def _doubling_allreduce(case: _Case) -> float:
    """T 4.5 (recursive doubling): whole vectors at doubling distance."""
    steps = [2**step for step in range(case.ranks.bit_length() - 1)]
    each = case.reduced(case.size)
    rounds = sum(case.round(case.size, case.swapping(step)) + each for step in steps)
    return rounds + _folded(case)


def _halving(case: _Case) -> float:
    """T 4.4 (recursive halving): messages and distances halve; other than powers of two folded."""
    total = _folded(case)
    message = case.size / 2
    for step in reversed([2**each for each in range(case.ranks.bit_length() - 1)]):
        total += case.round(message, case.swapping(step)) + case.reduced(message)
        message /= 2
    return total


def _rabenseifner(case: _Case) -> float:
    """T 4.5 (Rabenseifner): recursive halving, then recursive doubling of the shares."""
    power = 2 ** (case.ranks.bit_length() - 1)
    steps = [2**each for each in range(case.ranks.bit_length() - 1)]
    gather = sum(case.round(step * case.size / power, case.swapping(step)) for step in steps)
    return _halving(case) + gather


def _rabenseifner_reduce(case: _Case) -> float:
    """T 4.5: recursive halving, then a binomial gather at the root."""
    return _halving(case) + _binomial_blocks(case, case.ranks, case.size / case.ranks)


def _ring_allreduce(case: _Case) -> float:
    """P: a reduce-scatter and an allgather on a ring, 2(P-1) rounds of one share each."""
    block = case.size / case.ranks
    return 2 * _ring_of(case, block) + (case.ranks - 1) * case.reduced(block)


def _pairwise_reduce_scatter(case: _Case) -> float:
    """T 4.4 (pairwise exchange): P-1 rounds, each with another partner, one share each."""
    block = case.size / case.ranks
    return _pairwise_of(case, block) + (case.ranks - 1) * case.reduced(block)


def _pairwise_of(case: _Case, block: float) -> float:
    distances = (min(step, case.ranks - step) for step in range(1, case.ranks))
    return sum(case.round(block, case.leaving(distance)) for distance in distances)


def _pairwise_alltoall(case: _Case) -> float:
    """T 4.3: P-1 rounds, each with the rank at another distance, one block each."""
    return _pairwise_of(case, case.size)


def _bruck_alltoall(case: _Case) -> float:
    """T 4.3, B: logarithmic rounds, in each about half of all blocks."""
    total = 0.0
    for step in (2**each for each in range(case.rounds)):
        blocks = sum(1 for block in range(case.ranks) if block & step)
        total += case.round(blocks * case.size, case.leaving(step))
    return total


def _dissemination(case: _Case) -> float:
    """H: in round k every rank signals the one 2^k further on."""
    return case.rounds * case.round(0)


_ALGORITHMS: Mapping[Operation, Mapping[str, _Algorithm]] = {
    Operation.BCAST: {"binomial": _binomial, "scatter-allgather": _scatter_allgather},
    Operation.REDUCE: {"binomial": _binomial_reduce, "Rabenseifner": _rabenseifner_reduce},
    Operation.ALLREDUCE: {
        "recursive doubling": _doubling_allreduce,
        "Rabenseifner": _rabenseifner,
        "ring": _ring_allreduce,
    },
    Operation.ALLGATHER: {
        "recursive doubling": _doubling_allgather,
        "Bruck": _bruck_allgather,
        "ring": _ring_allgather,
    },
    Operation.ALLTOALL: {"Bruck": _bruck_alltoall, "pairwise": _pairwise_alltoall},
    Operation.GATHER: {"binomial": _binomial_tree_of_blocks, "linear": _linear_to_or_from_root},
    Operation.SCATTER: {"binomial": _binomial_tree_of_blocks, "linear": _linear_to_or_from_root},
    Operation.REDUCE_SCATTER: {
        "recursive halving": _halving,
        "pairwise": _pairwise_reduce_scatter,
    },
    Operation.BARRIER: {"dissemination": _dissemination},
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
