"""Whose fault low pairs are: the fewest suspects that explain them, by likelihood.

A suspect that is at fault makes each of its rows low with probability :data:`CAUGHT`; a row that
nobody is at fault for is low with the rate of chance.  The suspect with the largest ratio of the
two likelihoods is taken, its rows are explained, and so on.  At the end the rate of chance is
counted in what is left, and who does not stand up to it is let go, the weakest first: where many
rows are low and nobody explains them, or all rows are few, nobody is blamed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from fabricproof.pairs.blame.suspects import (
    ALL,
    LEAST_PART,
    Evidence,
    Family,
    Flags,
    Indices,
    Suspect,
    SuspectKind,
    Tally,
    Values,
    all_families,
)

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


def explain(
    evidence: Evidence, *, least_partners: int = LEAST_PARTNERS, num_kinds: int = 1
) -> Explanation:
    """Return who explains the low rows.

    One has to be low with ``least_partners`` unlike nodes, 2 or more, to be blamed.  Each of
    ``num_kinds`` kinds of values is looked at: so many times more could be blamed.
    """
    search = _Search(evidence, least_partners, num_kinds)
    search.run()
    for each in search.found:
        # Most nodes of a leaf look like the leaf: those are likelier where they explain more.
        if each.suspect.kind is SuspectKind.LEAF and each.num_low < CAUGHT * each.num_measured:
            without = _Search(evidence, least_partners, num_kinds)
            without.left_out = search.left_out | {each.suspect.place}
            without.run()
            if without.total > search.total:
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


#: suspects of one sort that may be near the bar: where they stand in it, and their scores
_Scored = tuple[Family, Indices, Values]


class _Search:
    def __init__(self, evidence: Evidence, least_partners: int, num_kinds: int) -> None:
        self.evidence = evidence
        self.least_partners = least_partners
        self.by = np.full(len(evidence.low), -1, dtype=np.int64)
        self.found: list[Found] = []
        self.weak: list[Found] = []
        self.is_endless = False
        self.left_out: frozenset[tuple[SuspectKind, int]] = frozenset()
        self._measured, self._low = Tally(evidence), Tally(evidence)
        self._measured.add(np.ones(len(evidence.low), dtype=bool))
        self._low.add(np.flatnonzero(evidence.low))
        self._refused: set[Suspect] = set()
        self._bar = MARGIN + math.log(max(self._num_suspects(), 1) * num_kinds)

    def _num_suspects(self) -> int:
        """Return how many could be at fault: a side is nobody of its own where no row has one."""
        has_sides = not self.evidence.both_ways.all()
        return sum(
            int(np.count_nonzero(family.measured))
            for family in all_families(self._measured, self._low)
            if has_sides or family.side == ALL
        )

    def run(self) -> None:
        if not self.evidence.low.any():
            return
        while len(self.found) < _MOST:
            ranked = self._ranked()
            top = self._top(ranked)
            if top is None:
                return
            self._take(*top, ranked)
        self.is_endless = True

    @property
    def total(self) -> float:
        """By how much all that are found beat chance, each with the price of one more suspect."""
        return sum(each.margin for each in self.found)

    def _ranked(self) -> list[_Scored]:
        """Return the suspects that may be near the bar, sort by sort, with their scores."""
        ranked = []
        least = (self._bar - _TOLD_APART) / math.log(CAUGHT / CHANCE)
        for family in all_families(self._measured, self._low):
            low = family.low.reshape(-1)
            places = np.flatnonzero(low >= least)
            if len(places):
                low, measured = low[places], family.measured.reshape(-1)[places]
                scores = likelihood(measured, low)
                scores[low < LEAST_PART[family.kind] * measured] = -np.inf
                ranked.append((family, places, scores))
        return ranked

    def _top(self, ranked: list[_Scored]) -> tuple[Suspect, float] | None:
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
            family, places, scores = ranked[number]
            suspect = family.suspect_at(int(places[index]))
            if suspect not in self._refused and suspect.place not in self.left_out:
                return suspect, score
            scores[index] = -np.inf

    def _take(self, suspect: Suspect, score: float, ranked: list[_Scored]) -> None:
        rows = np.flatnonzero(suspect.rows(self.evidence) & (self.by == -1))
        low = rows[self.evidence.low[rows]]
        partners = self._partners(suspect, low)
        if suspect.kind is not SuspectKind.ROUND and partners < self.least_partners:
            self._refused.add(suspect)
            self.weak.append(
                Found(
                    suspect=suspect, num_measured=len(rows), num_low=len(low), partners=partners,
                    margin=score - self._bar + MARGIN,
                )
            )  # fmt: skip
            return
        close = self._close(suspect, score, ranked)
        self.by[rows] = len(self.found)
        self._measured.add(rows, -1)
        self._low.add(low, -1)
        found = Found(
            suspect=suspect,
            num_measured=len(rows),
            num_low=len(low),
            partners=partners,
            margin=score - self._bar + MARGIN,
            rivals=tuple(each for each in close if self._is_emptied(each)),
        )
        self.found.append(found)

    def _partners(self, suspect: Suspect, low: Indices) -> int:
        """Return how many unlike nodes the suspect was low with."""
        source, destination = self.evidence.source[low], self.evidence.destination[low]
        if suspect.kind is SuspectKind.NODE:
            return len(np.unique(np.where(source == suspect.number, destination, source)))
        # Of a leaf the ends on both sides have to differ.
        return min(
            len(np.unique(np.minimum(source, destination) * np.int64(2**31)
                          + np.maximum(source, destination))),
            len(np.unique(np.concatenate([source, destination]))) - 1,
        )  # fmt: skip

    def _close(self, taken: Suspect, score: float, ranked: list[_Scored]) -> list[Suspect]:
        """Return the suspects of other places whose score is nearly that of the one taken.

        Which of them explain the same rows, and are rivals, shows once these are explained.
        """
        close: dict[tuple[SuspectKind, int], Suspect] = {}
        for family, places, scores in ranked:
            for index in np.flatnonzero(scores > score - _TOLD_APART)[:50].tolist():
                suspect = family.suspect_at(int(places[index]))
                if suspect.place != taken.place:
                    close.setdefault(suspect.place, suspect)
        return list(close.values())

    def _is_emptied(self, suspect: Suspect) -> bool:
        """Tell whether nothing speaks against a suspect any more, now that rows are explained."""
        measured, low = self._measured.of(suspect), self._low.of(suspect)
        return float(likelihood(np.array(measured), np.array(low))) < self._bar / 2

    def settle(self) -> None:
        """Let those go whose low rows chance may have made, the weakest first.

        What the rows of one let go say of the rate of chance counts against the others.
        """
        measured = self._by_like(np.ones(len(self.by), dtype=bool))
        low = self._by_like(self.evidence.low)
        others, others_low = measured[0].copy(), low[0].copy()
        kept = set(range(len(self.found)))
        while kept:
            elsewhere = others.sum() - others
            weight = np.minimum(1.0, (_PRIOR_LOW + _PRIOR_GOOD) / np.maximum(elsewhere, 1))
            known, known_low = (
                others + weight * elsewhere,
                others_low + weight * (others_low.sum() - others_low),
            )
            scores = {
                number: sum(
                    beyond_chance(*each)
                    for each in zip(
                        measured[number + 1], low[number + 1], known, known_low, strict=True
                    )
                    if each[0]
                )
                for number in sorted(kept)
            }
            weakest = min(scores, key=scores.__getitem__)
            if scores[weakest] >= self._bar - math.log(len(kept)):
                break
            kept.remove(weakest)
            others += measured[weakest + 1]
            others_low += low[weakest + 1]
            self.weak.append(self.found[weakest])
        if len(kept) < len(self.found):
            self._drop([number for number in range(len(self.found)) if number not in kept], -1)

    def _by_like(self, rows: Flags) -> Indices:
        """Count ``rows`` of nobody (first) and of each one found, by their like."""
        likes = int(self.evidence.like.max(initial=0)) + 1
        at = (self.by[rows] + 1) * likes + self.evidence.like[rows]
        shape = (len(self.found) + 1, likes)
        return np.bincount(at, minlength=shape[0] * shape[1]).reshape(shape)

    def _drop(self, numbers: list[int], to: int) -> None:
        kept = [number for number in range(len(self.found)) if number not in numbers]
        renamed = np.full(len(self.found) + 2, to, dtype=np.int64)
        renamed[kept] = np.arange(len(kept))
        renamed[-1], renamed[-2] = -1, -2
        self.by = renamed[self.by]
        self.found = [self.found[number] for number in kept]

    def part_groups(self) -> tuple[tuple[Found, ...], ...]:
        """Take out blamed nodes that are good with each other: it is not these nodes."""
        blamed = {
            each.suspect.number: number
            for number, each in enumerate(self.found)
            if each.suspect.kind is SuspectKind.NODE
        }
        groups = self._good_together(list(blamed)) if len(blamed) > 1 else []
        parted = tuple(tuple(self.found[blamed[node]] for node in group) for group in groups)
        taken = [blamed[node] for group in groups for node in group]
        if taken:
            self._drop(taken, -2)
        return parted

    def _good_together(self, nodes: list[int]) -> list[list[int]]:
        evidence = self.evidence
        is_blamed = np.zeros(evidence.num_nodes, dtype=bool)
        is_blamed[nodes] = True
        mutual = is_blamed[evidence.source] & is_blamed[evidence.destination] & (self.by >= 0)
        rows = np.flatnonzero(mutual)
        if not len(rows):
            return []
        first = np.minimum(evidence.source[rows], evidence.destination[rows])
        second = np.maximum(evidence.source[rows], evidence.destination[rows])
        pairs, at = np.unique(first * np.int64(2**31) + second, return_inverse=True)
        good = np.bincount(at, weights=~evidence.low[rows])
        low = np.bincount(at, weights=evidence.low[rows])
        missed = self._missed(is_blamed)
        together = (missed**good < _CONTRADICTION) & (low <= good)
        return components(pairs[together])

    def _missed(self, is_blamed: Flags) -> float:
        """Return how often a row of the blamed with the others is not low."""
        evidence = self.evidence
        outside = (self.by >= 0) & ~(is_blamed[evidence.source] & is_blamed[evidence.destination])
        total = int(outside.sum())
        return max(float((outside & ~evidence.low).sum()) / total if total else 0.0, 1 - 0.97)


def components(pairs: Indices) -> list[list[int]]:
    """Return the nodes that hang together by ``pairs`` (first * 2^31 + second)."""
    of: dict[int, list[int]] = {}
    for pair in pairs.tolist():
        first, second = divmod(pair, 2**31)
        one, other = of.setdefault(first, [first]), of.setdefault(second, [second])
        if one is not other:
            one += other
            for node in other:
                of[node] = one
    unique = {id(each): each for each in of.values()}
    return [sorted(each) for each in unique.values()]
