"""Six to ten rounds instead of N-1: random ones, then suspects with partners that were good.

One round cannot tell the two ends of a slow pair apart; several with unlike partners can.  The
first rounds are drawn from the leaf-wise order with shuffled names, so that each link between
switches carries one flow in each round.  Then each suspect is measured with a good node on another
leaf, and once more with a good one on its own, which tells the node from the links of its leaf.
Up to four rounds more follow while somebody is low and nobody is blamed for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fabricproof.core.units import by_key
from fabricproof.pairs.blame.judge import Judged
from fabricproof.pairs.blame.suspects import EITHER, RECEIVE, TRANSMIT, SuspectKind, Tally
from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.matrix import Flags, Indices
from fabricproof.pairs.schedule import Order, Schedule

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
        names = random.permutation(self.leaves.num_nodes)
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
        counted = _rows_of_nodes(judged)
        suspects = _suspects(judged, counted) if made < _ADAPTIVE_ROUNDS else []
        if not suspects:
            counted = judged.explanation.by == -1
            suspects = _suspects(judged, counted)
        good = _is_good(judged, self.leaves, counted)
        # The second of two is inside the leaf, which tells a node from the links of its leaf.
        inside = bool(made % 2) or self.leaves.num_leaves == 1
        return self._partners(suspects, np.flatnonzero(good), self.seed + made, inside=inside)

    def suspects(self, judged: Judged) -> set[int]:
        """Return the nodes of which several rows are low that nobody who is blamed explains.

        Where no node is good, there is none to measure them with, and nobody is a suspect.
        """
        counted = judged.explanation.by == -1
        has_good = _is_good(judged, self.leaves, counted).any()
        return set(_suspects(judged, counted)) if has_good else set()

    def _partners(self, suspects: list[int], good: Indices, seed: int, *, inside: bool) -> Indices:
        """Pair each suspect with a good node that is free yet."""
        random = np.random.default_rng([seed, 2])
        leaf_of = self.leaves.leaf_of
        good = random.permutation(good)
        good_on = by_key((int(leaf_of[node]), node) for node in good.tolist())
        used: set[int] = set()
        found = []
        for node in suspects:
            own = int(leaf_of[node])
            near = good_on.get(own, []) if inside else []
            some = random.choice(good, min(len(good), _TRIES), replace=False) if len(good) else good
            for partner in (*near, *(int(each) for each in some if leaf_of[each] != own)):
                if not used & {node, partner} and partner != node:
                    used |= {node, partner}
                    found.append((node, partner))
                    break
        return np.array(found, dtype=np.int64).reshape(-1, 2)


def _rows_of_nodes(judged: Judged) -> Flags:
    """Tell which rows say something of nodes: not those of a leaf that is found, or may be."""
    explanation = judged.explanation
    of_leaf = [found.suspect.kind is SuspectKind.LEAF for found in explanation.found]
    told = np.append(np.array(of_leaf, dtype=bool), [False, False])[explanation.by]
    by_nobody = explanation.by == -1
    for found in explanation.weak:
        if found.suspect.kind is SuspectKind.LEAF:
            told |= found.suspect.rows(judged.matrix, judged.leaves) & by_nobody
    return np.asarray(~told)


def _tally(judged: Judged, rows: Flags) -> Tally:
    tally = Tally(judged.matrix, judged.leaves)
    tally.add(rows)
    return tally


def _suspects(judged: Judged, counted: Flags) -> list[int]:
    """Return the nodes of which, by the rows that count, a side over a rail is low; worst first."""
    low, measured = (
        each[..., [TRANSMIT, RECEIVE]] + each[..., [EITHER]]
        for each in (
            _tally(judged, judged.low & counted).nodes,
            _tally(judged, counted).nodes,
        )
    )
    is_odd = (low >= _LEAST_LOW) & (low >= _LEAST_PART * measured)
    counts = is_odd.sum(axis=(1, 2))
    order = np.argsort(-counts, kind="stable")
    return [int(node) for node in order[: int((counts > 0).sum())]]


def _is_good(judged: Judged, leaves: Leaves, counted: Flags) -> Flags:
    """Tell which nodes are not at fault as far as is known, nor low in several rows that count."""
    explanation = judged.explanation
    free = explanation.by == -1
    # Those with too few values to be blamed are no good partners either.
    for found in explanation.weak:
        free &= ~found.suspect.rows(judged.matrix, judged.leaves)
    low = _tally(judged, judged.low & free).nodes.sum(axis=(1, 2))
    measured = _tally(judged, counted).nodes.sum(axis=(1, 2))
    good: Flags = np.asarray((low <= _GOOD_PART * measured) & (measured > 0))
    for found in (*explanation.found, *explanation.weak):
        if found.suspect.kind is SuspectKind.NODE:
            good[found.suspect.number] = False
        elif found.suspect.kind is SuspectKind.LEAF:
            good[leaves.leaf_of == found.suspect.number] = False
    return good
