"""Which rows of a matrix are low: each held against the healthy ones of its like.

Rows are alike that have one rail and, where leaves are known, one distance.  Which heap of their
values is the healthy one is decided by what the blame can then explain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fabricproof.pairs.blame.explain import (
    CHANCE,
    LEAST_PARTNERS,
    Explanation,
    components,
    explain,
    like_of,
)
from fabricproof.pairs.blame.suspects import SuspectKind
from fabricproof.pairs.blame.yardstick import LEAST_VALUES, Heap, candidates
from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.limits import Limits
from fabricproof.pairs.matrix import Flags, Indices, Matrix, Values

#: A row is low where it misses the yardstick by the tolerance and by this many standard
#: deviations of the healthy rows: one in 4,000 of a normal distribution does.
DEVIATIONS = 3.5

#: values that far beyond the tolerance are of another population (a logarithm)
PLAINLY = 0.05

#: A standard deviation (a logarithm) beyond which values are no yardstick: of those that should be
#: alike, one in six is 15 % off.  Latencies over one to five switches have 0.12 (document 002).
_WIDE = 0.15

#: part of the pairs of a group that is near each other which may not be fast: low ones
_NOT_FAST = 0.2

#: A value is not below a bound that it was made from (a logarithm).
ROUNDING = 1e-9

#: part of the rows of a distance whose load must be unknown for their level to be so
_MOSTLY = 0.5

#: so large a part of all rows may be low or fast by chance, and three rows more
MANY = 0.02

#: what an explanation costs against an unexplained row, both as logarithms of odds
_ROW_COST = -math.log(CHANCE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Measure:
    """Rows held against one choice of yardsticks.

    Attributes:
        shortfall: of each row the logarithm of value over yardstick, better is more.
        low: rows that are low.
        plainly: low rows that chance does not make in a matrix of this size; also rows that miss
            a reference to which rows too few for a yardstick are held: nobody says who is low.
        fast: rows that are plainly better than the yardstick.
        contended: rows that the load of their round may explain, which nobody knows.
        few: rows that are too few to have a yardstick.
        yardsticks: rail -> the healthy value, in the unit of the kind.
        scatter: the largest standard deviation of healthy rows that no reference judges.
        strays: whether many rows are fast, and neither distance nor anybody's place explains which.
        below_rails: rails whose healthy rows, of one distance, miss the reference.
        between: rail -> the healthy value of pairs between leaves, if it misses the reference and
            several were measured at once over the uplinks of a leaf.
    """

    shortfall: Values
    low: Flags
    plainly: Flags
    fast: Flags
    contended: Flags
    few: Flags
    yardsticks: dict[int, float]
    scatter: float = 0.0
    strays: bool = False
    below_rails: tuple[int, ...] = ()
    between: dict[int, float]

    @property
    def is_wide(self) -> bool:
        """Tell whether the healthy rows scatter so widely that they are no yardstick."""
        return self.scatter > _WIDE


@dataclass(frozen=True, kw_only=True, eq=False)
class _Stratum:
    """Rows that may be held against each other, and what may be the healthy ones of them."""

    rail: int
    rows: Indices
    choices: tuple[Heap, ...]


def measure_matrix(
    matrix: Matrix, leaves: Leaves | None, limits: Limits, num_kinds: int = 1
) -> tuple[Measure, Explanation]:
    """Return which rows are low, and who explains them, with the best choice of yardsticks.

    The slowest pairs alone do not tell what the others of a node are: of them nobody is low.
    """
    strata = [] if matrix.is_selection else _strata(matrix, leaves, limits)
    crowded = _crowded(matrix, leaves, limits)
    best: tuple[float, Measure, Explanation] | None = None
    for way in (0, -1) if any(len(each.choices) > 1 for each in strata) else (0,):
        measure = _measure(matrix, crowded, strata, way, limits)
        measure = replace(measure, strays=_has_strays(matrix, measure, strata, leaves))
        partners = LEAST_PARTNERS - (limits.bound is not None)
        explanation = explain(
            matrix, measure.low, leaves, least_partners=partners, num_kinds=num_kinds
        )
        cost = _cost(matrix, measure, explanation)
        if best is None or cost < best[0]:
            best = cost, measure, explanation
    assert best is not None
    return best[1:]


def _strata(matrix: Matrix, leaves: Leaves | None, limits: Limits) -> list[_Stratum]:
    code = like_of(matrix, leaves)
    found: list[_Stratum] = []
    for each in np.flatnonzero(np.bincount(code)).tolist():
        rows = np.flatnonzero(code == each)
        rail = int(matrix.rail[rows[0]])
        found.append(_Stratum(rail=rail, rows=rows, choices=_choices(matrix, rows, rail, limits)))
    # Pairs inside leaves that are too few to tell get the yardstick of those across, which follow:
    # a healthy one is no slower.
    return [
        replace(each, choices=after.choices) if each.rail == after.rail and not each.choices
        else each
        for each, after in zip(found, [*found[1:], *found[-1:]], strict=True)
    ]  # fmt: skip


def _choices(matrix: Matrix, rows: Indices, rail: int, limits: Limits) -> tuple[Heap, ...]:
    """Return what may be the healthy rows of a stratum; nothing if they are too few to tell."""
    least = limits.goodness(limits.bound, matrix, rail)
    own = matrix.goodness[rows]
    if len(own) >= LEAST_VALUES and matrix.rows(rows).seen.sum() > LEAST_PARTNERS:
        return candidates(own, least)
    if least is None:
        return ()
    # Too few to be a population: the reference itself is the yardstick.
    good = own[own >= least]
    if not len(good) and the_few(matrix) and len(seen_twice(matrix, rows)) == len(rows):
        good = own  # all of them miss it, each in every look: that is what they have
    return (Heap(centre=float(np.median(good)) if len(good) else least, scatter=0.0, weight=1.0),)


def the_few(matrix: Matrix) -> tuple[str, ...]:
    """Return the nodes that have values, where none of so few can be told from its partners."""
    seen = np.flatnonzero(matrix.seen)
    return () if len(seen) > LEAST_PARTNERS else matrix.names(seen)


def seen_twice(matrix: Matrix, rows: Indices) -> Indices:
    """Return those of ``rows`` whose pair was measured that way at two looks or more."""
    _, at, looks = np.unique(matrix.look_keys()[rows], return_inverse=True, return_counts=True)
    return rows[looks[at] > 1]


def _crowded(matrix: Matrix, leaves: Leaves | None, limits: Limits) -> Flags:
    """Tell which rows are between leaves and shared uplinks with others of their round.

    How many uplinks a leaf has nobody says, so that nobody knows what such a row could have; it
    matters where a reference judges the level.  A latency is that of an idle fabric.
    """
    found = np.zeros(len(matrix), dtype=bool)
    if leaves is None or limits.bound is None or matrix.kind.lower_is_better:
        return found
    code = matrix.round.astype(np.int64) * len(matrix.rails) + matrix.rail
    order = np.argsort(code, kind="stable")
    order = order[matrix.round[order] >= 0]
    starts = np.flatnonzero(np.diff(code[order])) + 1
    for rows in np.split(order, starts) if len(order) else []:
        first = leaves.leaf_of[matrix.source[rows]]
        second = leaves.leaf_of[matrix.destination[rows]]
        across, back = first != second, (first != second) & matrix.both_ways[rows]
        begin = np.concatenate([first[across], second[back]])
        end = np.concatenate([second[across], first[back]])
        up, down = (np.bincount(each, minlength=leaves.num_leaves) for each in (begin, end))
        shares = (up[first] > 1) | (down[second] > 1)
        found[rows] = across & (shares | (back & ((up[second] > 1) | (down[first] > 1))))
    return found


def _sure_deviations(num_rows: int) -> float:
    """Return by how many standard deviations no healthy row of so many is low.

    In one of some hundreds of matrices one is.  The largest of n normal values lies near
    sqrt(2 ln n); the deviation itself, found from the median of n distances, is off by
    1.2 / sqrt(n) of it (Rousseeuw and Croux 1993).
    """
    most = math.sqrt(2 * math.log(max(num_rows, 2))) + 0.8
    return max(DEVIATIONS, most * (1 + 1.2 / math.sqrt(max(num_rows, 1))))


def _measure(
    matrix: Matrix, crowded: Flags, strata: list[_Stratum], way: int, limits: Limits
) -> Measure:
    """Hold all rows against the first choice of each stratum (``way`` 0), or the last (-1)."""
    shortfall = np.zeros(len(matrix))
    low, plainly, fast, contended, few = (np.zeros(len(matrix), dtype=bool) for _ in range(5))
    yardsticks: dict[int, float] = {}
    below: dict[int, None] = {}
    between: dict[int, float] = {}
    scatter, least = 0.0, limits.threshold(matrix.kind)
    surely = _sure_deviations(len(matrix))
    for each in strata:
        rows, rail, own = each.rows, each.rail, matrix.goodness[each.rows]
        if not each.choices:
            few[rows] = True
            shortfall[rows] = own - np.median(own)
            continue
        heap = each.choices[way]
        off = own - heap.centre
        is_low = off < -max(least, DEVIATIONS * heap.scatter)
        is_plain = is_low & (off < -max(least, surely * heap.scatter))
        value = math.exp(-heap.centre if matrix.kind.lower_is_better else heap.centre)
        yardsticks.setdefault(rail, value)
        bound = limits.goodness(limits.bound, matrix, rail)
        if bound is None:
            scatter = max(scatter, heap.scatter)
            edge = heap.centre + max(least, DEVIATIONS * heap.scatter)
            better = each.choices[-1]
            if better.centre > heap.centre:
                of_better = better.centre - max(least, DEVIATIONS * better.scatter)
                edge = min(edge, max(of_better, heap.centre + least))
            fast[rows] = own > edge + PLAINLY
        elif heap.centre < bound - ROUNDING:  # all miss it: that is no one's fault
            if crowded[rows].mean() > _MOSTLY:
                contended[rows] = crowded[rows] & (own < bound)
                between[rail] = value
            elif float(np.median(own)) < bound:
                below[rail] = None
        else:
            # However widely the others scatter, this one plainly misses the reference.
            missed = own < bound - PLAINLY
            is_plain |= missed
            is_low |= missed
            if heap.scatter == 0:  # the yardstick is the reference: its noise excuses nobody
                is_plain |= own < bound - ROUNDING
        low[rows], plainly[rows], shortfall[rows] = is_low, is_plain, off
    return Measure(
        shortfall=shortfall,
        low=low,
        plainly=plainly,
        fast=fast,
        contended=contended,
        few=few,
        yardsticks=yardsticks,
        scatter=scatter,
        below_rails=tuple(below),
        between=between,
    )


def _has_strays(
    matrix: Matrix, measure: Measure, strata: list[_Stratum], leaves: Leaves | None
) -> bool:
    """Tell whether many rows are fast that are neither those of groups nor of single places.

    Nodes that are near each other are fast together: all pairs of a group, and no others.
    """
    strays = measure.fast.copy()
    if not are_fast_many(strays):
        return False
    for each in strata:
        fast = measure.fast[each.rows]
        group = np.full(len(matrix.nodes), -1)
        pairs = np.unique(matrix.pair_keys[each.rows][fast])
        for number, nodes in enumerate(components(pairs, len(matrix.nodes))):
            group[nodes] = number
        first, second = group[matrix.source[each.rows]], group[matrix.destination[each.rows]]
        together = (first == second) & (first >= 0)
        if float((together & ~fast).sum()) <= _NOT_FAST * float(together.sum()):
            strays[each.rows] = False
    if not are_fast_many(strays):
        return False
    return are_fast_many(strays & (explain(matrix, strays, leaves).by == -1))


def are_fast_many(fast: Flags) -> bool:
    """Tell whether fast rows are more than single ones: they may be what all should have."""
    return float(fast.sum()) > MANY * len(fast) + 1


def is_many(flags: Flags) -> bool:
    """Tell whether more rows are set than chance would set."""
    return float(flags.sum()) > MANY * len(flags) + 3


def _cost(matrix: Matrix, measure: Measure, explanation: Explanation) -> float:
    """Return how badly a choice of yardsticks explains the matrix: faults and what is left over.

    Fast rows that nothing explains are what healthy ones reach: they are the yardstick then.
    """
    found = explanation.found
    nodes = {each.suspect.number for each in found if each.suspect.kind is SuspectKind.NODE}
    if len(nodes) * 2 > len(matrix.nodes):
        return math.inf
    faults = len(found) * (math.log(len(matrix.nodes)) + 3)
    left_over = int((measure.low & (explanation.by < 0)).sum()) + int(measure.fast.sum())
    missed = int((~measure.low & (explanation.by >= 0)).sum())
    strays = len(matrix) * _ROW_COST if measure.strays else 0.0
    return faults + left_over * _ROW_COST + missed * 3.0 + strays
