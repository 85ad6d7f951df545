"""Six to ten rounds instead of N-1: random ones, then suspects with partners that were good.

One round cannot tell the two ends of a slow pair apart; several with unlike partners can.  The
first rounds are drawn from the leaf-wise order with shuffled names, so that each link between
switches carries one flow in each round.  Then each suspect is measured with a good node on another
leaf, and once more with a good one on its own, which tells the node from the links of its leaf.
Up to four rounds more follow while somebody is low and nobody is blamed for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fabricproof.core.units import by_key
from fabricproof.pairs.blame.judged import Judged
from fabricproof.pairs.blame.measure import evidence_of
from fabricproof.pairs.blame.suspects import SuspectKind, Tally
from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.schedule import Indices, Order, Schedule

FIRST_ROUNDS = 4
_ADAPTIVE_ROUNDS = 2

#: rounds more, each only while somebody is suspect whose low values nobody explains
MORE_ROUNDS = 4

#: rounds of second looks over one path at most: more low pairs of one node are no moment's doing
MOST_AGAIN = 4

#: a node, side or rail is a suspect where two of its rows are low and half of all
_LEAST_LOW, _LEAST_PART = 2, 0.5

#: a node is good of which no more of its rows is low without a reason
_GOOD_PART = 0.15

#: partners that are tried until one is free
_TRIES = 64


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """The rounds of a campaign."""

    leaves: Leaves
    seed: int = 0
    first_rounds: int = FIRST_ROUNDS

    def first(self) -> Iterator[Indices]:
        """Yield the random rounds: no pair twice, and nobody twice in a round."""
        random = np.random.default_rng([self.seed, 1])
        num = self.leaves.num_nodes
        names = random.permutation(num)
        leaf_names = random.permutation(self.leaves.num_leaves)
        shuffled = replace(self.leaves, leaf_of=leaf_names[self.leaves.leaf_of[names]])
        schedule = Schedule(order=Order.LEAFWISE, leaves=shuffled)
        if not schedule.is_leafwise:
            schedule = Schedule(order=Order.RANDOM, leaves=shuffled, seed=self.seed)
        choice = schedule.num_cross_rounds
        count = min(self.first_rounds, choice)
        for number in random.choice(choice, count, replace=False).tolist():
            yield names[schedule.round(number)]

    def further(self, judged: Judged, made: int) -> Indices:
        """Return the next round behind the random ones; empty: the campaign is at its end.

        Two rounds are of all suspects.  Those that follow, four at most, are only of those that
        are low where nobody who is blamed explains it.

        ``made``: rounds behind the random ones that were measured; each draws other partners.
        """
        if made >= _ADAPTIVE_ROUNDS + MORE_ROUNDS:
            return np.zeros((0, 2), dtype=np.int64)
        # The second of two is inside the leaf, which tells a node from the links of its leaf.
        inside = bool(made % 2) or self.leaves.num_leaves == 1
        if made < _ADAPTIVE_ROUNDS:
            pairs = _Pairing(self.leaves, judged, self.seed + made).pairs(inside=inside)
            if len(pairs):
                return pairs
        return self._of_unexplained(judged, self.seed + made).pairs(inside=inside)

    def _of_unexplained(self, judged: Judged, seed: int) -> _Pairing:
        pairing = _Pairing(self.leaves, judged, seed)
        evidence = evidence_of(judged.matrix, judged.low, self.leaves)
        free = judged.explanation.by == -1
        pairing.low, pairing.measured = Tally(evidence), Tally(evidence)
        pairing.low.add(np.flatnonzero(evidence.low & free))
        pairing.measured.add(free)
        return pairing

    def suspects(self, judged: Judged) -> set[int]:
        """Return the nodes of which several rows are low that nobody who is blamed explains.

        Where no node is good, there is none to measure them with, and nobody is a suspect.
        """
        pairing = self._of_unexplained(judged, self.seed)
        return set(pairing.suspects()) if len(pairing.good) else set()


class _Pairing:
    """One adaptive round: who is suspect, who is good, and who measures with whom."""

    def __init__(self, leaves: Leaves, judged: Judged, seed: int) -> None:
        self.leaves = leaves
        self.random = np.random.default_rng([seed, 2])
        evidence = evidence_of(judged.matrix, judged.low, leaves)
        explanation = judged.explanation
        # Those with too few values to be blamed are no good partners either.
        weak = [found.suspect for found in explanation.weak]
        self.suspected = [*(found.suspect for found in explanation.found), *weak]
        by_nobody = explanation.by == -1
        of_leaf = [found.suspect.kind is SuspectKind.LEAF for found in explanation.found]
        # Rows of a leaf that is found say nothing of its nodes.
        told = np.append(np.array(of_leaf, dtype=bool), [False, False])[explanation.by]
        for suspect in weak:
            rows = suspect.rows(evidence) & by_nobody
            by_nobody &= ~rows
            if suspect.kind is SuspectKind.LEAF:
                told |= rows
        self.measured, self.low = Tally(evidence), Tally(evidence)
        self.measured.add(~told)
        self.low.add(np.flatnonzero(evidence.low & ~told))
        self.free = Tally(evidence)
        self.free.add(np.flatnonzero(evidence.low & by_nobody))
        self.used_nodes = np.zeros(leaves.num_nodes, dtype=bool)
        self.found: list[tuple[int, int]] = []

    @cached_property
    def is_good(self) -> npt.NDArray[np.bool_]:
        """Nodes that are not at fault as far as is known, nor low with several."""
        low, measured = (each.nodes.sum(axis=(1, 2)) for each in (self.free, self.measured))
        good = np.asarray((low <= _GOOD_PART * measured) & (measured > 0))
        for suspect in self.suspected:
            if suspect.kind is SuspectKind.NODE:
                good[suspect.number] = False
            elif suspect.kind is SuspectKind.LEAF:
                good[self.leaves.leaf_of == suspect.number] = False
        return good

    @cached_property
    def good(self) -> Indices:
        return self.random.permutation(np.flatnonzero(self.is_good))

    @cached_property
    def good_on(self) -> dict[int, list[int]]:
        return by_key((int(self.leaves.leaf_of[node]), node) for node in self.good.tolist())

    def suspects(self) -> list[int]:
        """Return the nodes that are suspect by themselves, worst first."""
        low = self.low.nodes[..., :2] + self.low.nodes[..., 2:]
        measured = self.measured.nodes[..., :2] + self.measured.nodes[..., 2:]
        per_node = low[0].size
        is_odd = (low >= _LEAST_LOW) & (low >= _LEAST_PART * measured)
        nodes = np.flatnonzero(is_odd) // per_node
        unique, counts = np.unique(nodes, return_counts=True)
        return [int(node) for node in unique[np.argsort(-counts, kind="stable")]]

    def pairs(self, *, inside: bool) -> Indices:
        for node in self.suspects():
            own = int(self.leaves.leaf_of[node])
            near = self.good_on.get(own, []) if inside else []
            self._pair(node, (*near, *self._elsewhere(own)))
        return np.array(self.found, dtype=np.int64).reshape(-1, 2)

    def _elsewhere(self, leaf: int) -> list[int]:
        """Return some good nodes on other leaves, in no order."""
        count = min(len(self.good), _TRIES)
        some = self.random.choice(self.good, count, replace=False) if count else self.good
        return [int(node) for node in some if self.leaves.leaf_of[node] != leaf]

    def _pair(self, node: int, partners: Iterable[int]) -> None:
        for partner in partners:
            if not self.used_nodes[[node, partner]].any() and partner != node:
                self.used_nodes[[node, partner]] = True
                self.found.append((node, partner))
                return
