"""Whose fault low pairs are: the fewest suspects that explain them, by likelihood.

A suspect that is at fault makes each of its rows low with probability :data:`CAUGHT`; a row that
nobody is at fault for is low with the rate of chance.  The suspect with the largest ratio of the
two likelihoods is taken, its rows are explained, and so on.  At the end the rate of chance is
counted in what is left, and who does not stand up to it is let go, the weakest first: where many
rows are low and nobody explains them, or all rows are few, nobody is blamed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from fabricproof.pairs.blame.suspects import (
    ALL,
    Sheet,
    Suspect,
    SuspectKind,
    Tally,
    sheets,
)
from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.matrix import Flags, Indices, Matrix, Numbers, Values

#: how often a row of one that is at fault is low
CAUGHT = 0.95

#: how often a healthy row is low by chance, at least (one in a hundred)
CHANCE = 0.01

#: What is known of the rate of chance before a matrix tells: one row in ten is low, a guess that
#: weighs as much as ten rows (a Beta distribution).  Few rows cannot tell a fault from chance that
#: is frequent; many tell the rate themselves.
_PRIOR_LOW, _PRIOR_GOOD = 1, 9

#: A suspect is blamed where it explains this much more than chance would let any of all suspects
#: do: logarithm of 2,000, for false blame in less than one of 2,000 campaigns.
MARGIN = math.log(2000)

#: two suspects whose likelihoods differ by less than 20 to 1 are not told apart
_TOLD_APART = math.log(20)

#: one is low with so many unlike nodes to be blamed, where nobody says what a pair should reach
LEAST_PARTNERS = 3

#: how many are looked for; with more at fault the machine as a whole is
_MOST = 400

#: a good row between two that are blamed contradicts both where it is rarer than this
_CONTRADICTION = 0.05

#: part of the rows of a suspect that has to be low for it to be blamed.  Of a leaf it is more: a
#: few bad nodes on it are no bad leaf.
_LEAST_PART = {SuspectKind.NODE: 0.6, SuspectKind.LEAF: 0.8, SuspectKind.ROUND: 0.6}


@dataclass(frozen=True, kw_only=True)
class Found:
    """A suspect that explains low rows.

    Attributes:
        num_measured: rows that it alone would explain.
        num_low: of these, low ones.
        partners: unlike nodes that it was low with.
        margin: logarithm by which it beats chance over all suspects; above 0.
        rivals: others that explain nearly the same rows as well.
    """

    suspect: Suspect
    num_measured: int
    num_low: int
    partners: int
    margin: float
    rivals: tuple[Suspect, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """What explains the low rows of a matrix.

    Attributes:
        found: who is at fault, strongest first.
        groups: nodes that are low with all others and good among themselves: the way between, or
            the distance, and not these nodes.
        weak: who would explain low rows, and is let go: chance could have made them low.
        by: of each row the number in ``found`` of who explains it; -1 nobody, -2 a group.
        is_endless: whether more would have been found than are looked for.
    """

    found: tuple[Found, ...]
    groups: tuple[tuple[Found, ...], ...]
    by: Indices = field(repr=False)
    weak: tuple[Found, ...] = ()
    is_endless: bool = False


def likelihood(measured: Values, low: Values) -> Values:
    """Return the logarithm of how much likelier the rows are with the suspect at fault."""
    caught = low * math.log(CAUGHT / CHANCE)
    return np.asarray(caught + (measured - low) * math.log((1 - CAUGHT) / (1 - CHANCE)))


def beyond_chance(measured: int, low: int, others: float, others_low: float) -> float:
    """Return the logarithm of how much likelier a fault makes the rows of a suspect than chance.

    The rate of chance is not known: all rates count that fit what is seen of the other rows
    (a beta-binomial distribution).
    """
    good = measured - low
    seen_low, seen_good = _PRIOR_LOW + others_low, _PRIOR_GOOD + others - others_low
    by_chance = _log_beta(seen_low + low, seen_good + good) - _log_beta(seen_low, seen_good)
    return low * math.log(CAUGHT) + good * math.log(1 - CAUGHT) - by_chance


def _log_beta(first: float, second: float) -> float:
    return math.lgamma(first) + math.lgamma(second) - math.lgamma(first + second)


def like_of(matrix: Matrix, leaves: Leaves | None) -> Numbers:
    """Number the rows that are held against each other: one rail and, with leaves, one distance."""
    if leaves is None:
        return matrix.rail
    crosses = leaves.crosses(matrix.source, matrix.destination)
    return np.asarray(matrix.rail * 2 + crosses, dtype=np.int32)


def explain(
    matrix: Matrix,
    low: Flags,
    leaves: Leaves | None,
    *,
    least_partners: int = LEAST_PARTNERS,
    num_kinds: int = 1,
) -> Explanation:
    """Return who explains the rows that are ``low``.

    One has to be low with ``least_partners`` unlike nodes, 2 or more, to be blamed.  Each of
    ``num_kinds`` matrices of a file is looked at: so many times more could be blamed.
    """
    search = _Search(matrix, low, leaves, least_partners, num_kinds)
    search.run()
    for each in search.found:
        # Most nodes of a leaf look like the leaf: those are likelier where they explain more.
        if each.suspect.kind is SuspectKind.LEAF and each.num_low < CAUGHT * each.num_measured:
            without = _Search(matrix, low, leaves, least_partners, num_kinds)
            without.left_out = search.left_out | {each.suspect.place}
            without.run()
            if sum(one.margin for one in without.found) > sum(one.margin for one in search.found):
                search = without
    search.settle()
    groups = search.part_groups()
    return Explanation(
        found=tuple(search.found),
        groups=groups,
        by=search.by,
        weak=tuple(search.weak),
        is_endless=search.is_endless,
    )


class _Search:
    def __init__(
        self, matrix: Matrix, low: Flags, leaves: Leaves | None, least_partners: int, num_kinds: int
    ) -> None:
        self.matrix, self.low, self.leaves = matrix, low, leaves
        self.least_partners = least_partners
        self.by = np.full(len(matrix), -1, dtype=np.int64)
        self.found: list[Found] = []
        self.weak: list[Found] = []
        self.is_endless = False
        self.left_out: frozenset[tuple[SuspectKind, int]] = frozenset()
        self._measured, self._low = Tally(matrix, leaves), Tally(matrix, leaves)
        self._measured.add(np.ones(len(matrix), dtype=bool))
        self._low.add(np.flatnonzero(low))
        self._refused: set[Suspect] = set()
        # A side is nobody of its own where no row has one.
        has_sides = not matrix.both_ways.all()
        count = sum(
            int(np.count_nonzero(sheet.measured))
            for sheet in sheets(self._measured, self._low)
            if has_sides or sheet.example.side == ALL
        )
        self._bar = MARGIN + math.log(max(count, 1) * num_kinds)

    def run(self) -> None:
        """Take suspect after suspect, the likeliest first, while one is above the bar."""
        while self.low.any() and len(self.found) < _MOST:
            ranked = self._ranked()
            top = self._top(ranked)
            if top is None:
                return
            self._take(*top, ranked)
        self.is_endless = len(self.found) >= _MOST

    def _ranked(self) -> list[tuple[Sheet, Indices, Values]]:
        """Return the suspects that may be near the bar, where they stand, and their scores."""
        ranked = []
        least = (self._bar - _TOLD_APART) / math.log(CAUGHT / CHANCE)
        for sheet in sheets(self._measured, self._low):
            low = sheet.low.reshape(-1)
            places = np.flatnonzero(low >= least)
            if len(places):
                low, measured = low[places], sheet.measured.reshape(-1)[places]
                scores = likelihood(measured, low)
                scores[low < _LEAST_PART[sheet.example.kind] * measured] = -np.inf
                ranked.append((sheet, places, scores))
        return ranked

    def _top(self, ranked: list[tuple[Sheet, Indices, Values]]) -> tuple[Suspect, float] | None:
        """Return the best suspect that is not refused, and its score; None below the bar."""
        while True:
            best: tuple[float, int, int] | None = None
            for number, (_, _, scores) in enumerate(ranked):
                index = int(np.argmax(scores))
                if best is None or scores[index] > best[0] + 1e-9:
                    best = (float(scores[index]), number, index)
            if best is None or best[0] < self._bar:
                return None
            score, number, index = best
            sheet, places, scores = ranked[number]
            suspect = sheet.suspect_at(int(places[index]))
            if suspect not in self._refused and suspect.place not in self.left_out:
                return suspect, score
            scores[index] = -np.inf

    def _take(
        self, suspect: Suspect, score: float, ranked: list[tuple[Sheet, Indices, Values]]
    ) -> None:
        rows = np.flatnonzero(suspect.rows(self.matrix, self.leaves) & (self.by == -1))
        low = rows[self.low[rows]]
        partners = self._partners(suspect, low)
        found = Found(
            suspect=suspect, num_measured=len(rows), num_low=len(low), partners=partners,
            margin=score - self._bar + MARGIN,
        )  # fmt: skip
        if suspect.kind is not SuspectKind.ROUND and partners < self.least_partners:
            self._refused.add(suspect)
            self.weak.append(found)
            return
        self.by[rows] = len(self.found)
        self._measured.add(rows, -1)
        self._low.add(low, -1)
        # Of other places with nearly its score, those are rivals that explain the same rows:
        # nothing speaks against them now that these are explained.
        close: dict[tuple[SuspectKind, int], Suspect] = {}
        for sheet, places, scores in ranked:
            for index in np.flatnonzero(scores > score - _TOLD_APART)[:50].tolist():
                rival = sheet.suspect_at(int(places[index]))
                if rival.place != suspect.place:
                    close.setdefault(rival.place, rival)
        rivals = tuple(
            each
            for each in close.values()
            if float(likelihood(np.array(self._measured.of(each)), np.array(self._low.of(each))))
            < self._bar / 2
        )
        self.found.append(replace(found, rivals=rivals))

    def _partners(self, suspect: Suspect, low: Indices) -> int:
        """Return how many unlike nodes the suspect was low with."""
        source, destination = self.matrix.source[low], self.matrix.destination[low]
        if suspect.kind is SuspectKind.NODE:
            return len(np.unique(np.where(source == suspect.number, destination, source)))
        # Of a leaf the ends on both sides have to differ.
        pairs = len(np.unique(self.matrix.pair_keys[low]))
        return min(pairs, len(np.unique(np.concatenate([source, destination]))) - 1)

    def settle(self) -> None:
        """Let those go whose low rows chance may have made, the weakest first.

        What the rows of one let go say of the rate of chance counts against the others.
        """
        like = like_of(self.matrix, self.leaves)
        shape = len(self.found) + 1, int(like.max(initial=0)) + 1

        def counts(rows: Flags) -> Values:
            """Count rows of nobody (first) and of each one found, by their like."""
            at = (self.by[rows] + 1) * shape[1] + like[rows]
            return np.bincount(at, minlength=shape[0] * shape[1]).reshape(shape).astype(float)

        measured, low = counts(np.ones(len(self.by), dtype=bool)), counts(self.low)
        others, others_low = measured[0].copy(), low[0].copy()
        kept = set(range(len(self.found)))
        while kept:
            elsewhere = others.sum() - others
            weight = np.minimum(1.0, (_PRIOR_LOW + _PRIOR_GOOD) / np.maximum(elsewhere, 1))
            known = others + weight * elsewhere
            known_low = others_low + weight * (others_low.sum() - others_low)
            scores = {}
            for number in sorted(kept):
                own = zip(measured[number + 1], low[number + 1], known, known_low, strict=True)
                scores[number] = sum(beyond_chance(*each) for each in own if each[0])
            weakest = min(scores, key=scores.__getitem__)
            if scores[weakest] >= self._bar - math.log(len(kept)):
                break
            kept.remove(weakest)
            others += measured[weakest + 1]
            others_low += low[weakest + 1]
            self.weak.append(self.found[weakest])
        if len(kept) < len(self.found):
            self._drop([number for number in range(len(self.found)) if number not in kept], -1)

    def _drop(self, numbers: list[int], to: int) -> None:
        kept = [number for number in range(len(self.found)) if number not in numbers]
        renamed = np.full(len(self.found) + 2, to, dtype=np.int64)
        renamed[kept] = np.arange(len(kept))
        renamed[-1], renamed[-2] = -1, -2
        self.by = renamed[self.by]
        self.found = [self.found[number] for number in kept]

    def part_groups(self) -> tuple[tuple[Found, ...], ...]:
        """Take out blamed nodes that are good with each other: it is not these nodes."""
        matrix, of_found = self.matrix, self.by >= 0
        blamed = {
            each.suspect.number: number
            for number, each in enumerate(self.found)
            if each.suspect.kind is SuspectKind.NODE
        }
        is_blamed = np.zeros(len(matrix.nodes), dtype=bool)
        is_blamed[list(blamed)] = True
        mutual = is_blamed[matrix.source] & is_blamed[matrix.destination]
        rows = np.flatnonzero(mutual & of_found)
        if not len(rows):
            return ()
        pairs, at = np.unique(matrix.pair_keys[rows], return_inverse=True)
        good = np.bincount(at, weights=~self.low[rows])
        low = np.bincount(at, weights=self.low[rows])
        # How often a row of the blamed with the others is not low.
        outside = of_found & ~mutual
        total = int(outside.sum())
        missed = max(float((outside & ~self.low).sum()) / total if total else 0.0, 1 - 0.97)
        together = (missed**good < _CONTRADICTION) & (low <= good)
        groups = components(pairs[together], len(matrix.nodes))
        parted = tuple(tuple(self.found[blamed[node]] for node in group) for group in groups)
        if groups:
            self._drop([blamed[node] for group in groups for node in group], -2)
        return parted


def components(pairs: Indices, num_nodes: int) -> list[list[int]]:
    """Return the nodes that hang together by ``pairs`` (as :attr:`Matrix.pair_keys`)."""
    of: dict[int, list[int]] = {}
    for pair in pairs.tolist():
        first, second = divmod(pair, num_nodes)
        one, other = of.setdefault(first, [first]), of.setdefault(second, [second])
        if one is not other:
            one += other
            for node in other:
                of[node] = one
    unique = {id(each): each for each in of.values()}
    return [sorted(each) for each in unique.values()]
