"""Which rows of a matrix are low: each held against the healthy ones of its kind.

Rows are compared with their like: one kind, rail and, where leaves are known, distance.  Which heap
of values is the healthy one is decided by what the blame can then explain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fabricproof.pairs.blame.explain import (
    CHANCE,
    LEAST_PARTNERS,
    Explanation,
    components,
    explain,
)
from fabricproof.pairs.blame.suspects import Evidence, Flags, SuspectKind, Values
from fabricproof.pairs.blame.yardstick import LEAST_VALUES, Heap, candidates
from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.limits import Limits
from fabricproof.pairs.matrix import Matrix

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
_ROUNDING = 1e-9

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
        yardsticks: kind and rail -> the healthy value, in the unit of the kind.
        scatter: the largest standard deviation of healthy rows that no reference judges.
        strays: whether many rows are fast, and neither distance nor anybody's place explains which.
        below_over: kind and rail whose healthy rows, of one distance, miss the reference.
        between: kind and rail -> the healthy value of pairs between leaves, where it misses the
            reference, and several measured at once over the uplinks of a leaf.
    """

    shortfall: Values
    low: Flags
    plainly: Flags
    fast: Flags
    contended: Flags
    yardsticks: dict[tuple[int, int], float]
    few: Flags
    scatter: float
    strays: bool = False
    below_over: tuple[tuple[int, int], ...] = ()
    between: Mapping[tuple[int, int], float] = field(default_factory=dict)

    @property
    def is_wide(self) -> bool:
        """Tell whether the healthy rows scatter so widely that they are no yardstick."""
        return self.scatter > _WIDE


def measure_matrix(
    matrix: Matrix, leaves: Leaves | None, limits: Limits
) -> tuple[Measure, Explanation]:
    """Return which rows are low, and who explains them, with the best choice of yardsticks.

    The slowest pairs alone do not tell what the others of a node are: of them nobody is low.
    """
    strata = [] if matrix.is_selection else _strata(matrix, leaves)
    crowded = _crowded(matrix, leaves, limits)
    chosen = [_choices(matrix, rows, kind, limits) for kind, _, rows in strata]
    chosen = _with_nearest(strata, chosen)
    ways = [tuple(0 for _ in chosen)]
    if any(len(each) > 1 for each in chosen):
        ways.append(tuple(len(each) - 1 for each in chosen))
    best: tuple[float, Measure, Explanation] | None = None
    for way in ways:
        heaps = [each[number] if each else None for each, number in zip(chosen, way, strict=True)]
        measure = _measure(matrix, crowded, strata, heaps, limits)
        better = [each[-1] if each else None for each in chosen]
        fast = _fast(matrix, strata, heaps, better, limits)
        measure = replace(measure, fast=fast)
        measure = replace(measure, strays=_has_strays(matrix, measure, strata, leaves))
        partners = LEAST_PARTNERS - 1 if limits.bounds else LEAST_PARTNERS
        explanation = explain(
            evidence_of(matrix, measure.low, leaves),
            least_partners=partners,
            num_kinds=max(len(matrix.kinds), 1),
        )
        cost = _cost(matrix, measure, explanation)
        if best is None or cost < best[0]:
            best = cost, measure, explanation
    assert best is not None
    return best[1], best[2]


Rows = npt.NDArray[np.int64]
_Stratum = tuple[int, int, Rows]


def _like(matrix: Matrix, leaves: Leaves | None) -> npt.NDArray[np.int32]:
    code = matrix.kind * np.int32(len(matrix.rails)) + matrix.rail
    if leaves is not None:
        code = code * 2 + leaves.crosses(matrix.source, matrix.destination)
    return np.asarray(code, dtype=np.int32)


def _strata(matrix: Matrix, leaves: Leaves | None) -> list[_Stratum]:
    """Return the rows that may be held against each other: one kind, rail and distance."""
    code = _like(matrix, leaves)
    found = []
    for each in np.flatnonzero(np.bincount(code)).tolist():
        rows = np.flatnonzero(code == each)
        found.append((int(matrix.kind[rows[0]]), int(matrix.rail[rows[0]]), rows))
    return found


def bound_of(matrix: Matrix, kind: int, limits: Limits) -> float | None:
    """Return the worst value that the reference of a kind allows, as goodness."""
    bound = limits.bounds.get(kind)
    if bound is None:
        return None
    return -math.log(bound) if matrix.kinds[kind].lower_is_better else math.log(bound)


def _choices(matrix: Matrix, rows: Rows, kind: int, limits: Limits) -> tuple[Heap, ...]:
    """Return what may be the healthy rows of a stratum; nothing where they are too few to tell."""
    least = bound_of(matrix, kind, limits)
    own = matrix.goodness[rows]
    if len(own) >= LEAST_VALUES and _num_nodes(matrix, rows) > LEAST_PARTNERS:
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
    seen = np.zeros(len(matrix.nodes), dtype=bool)
    seen[matrix.source] = seen[matrix.destination] = True
    if seen.sum() > LEAST_PARTNERS:
        return ()
    return tuple(matrix.nodes[at] for at in np.flatnonzero(seen).tolist())


def seen_twice(matrix: Matrix, rows: Rows) -> Rows:
    """Return those of ``rows`` whose pair was measured that way at two looks or more."""
    _, at, looks = np.unique(
        matrix.look_keys(with_round=False)[rows], return_inverse=True, return_counts=True
    )
    return rows[looks[at] > 1]


def _with_nearest(strata: list[_Stratum], chosen: list[tuple[Heap, ...]]) -> list[tuple[Heap, ...]]:
    """Give pairs inside leaves that are too few to tell the yardstick of those across.

    They are next to those in ``strata``, and a healthy one is no slower.
    """
    found = list(chosen)
    for at, (kind, rail, _) in enumerate(strata[:-1]):
        if not chosen[at] and strata[at + 1][:2] == (kind, rail):
            found[at] = chosen[at + 1]
    return found


def _num_nodes(matrix: Matrix, rows: Rows) -> int:
    seen = np.zeros(len(matrix.nodes), dtype=bool)
    seen[matrix.source[rows]] = True
    seen[matrix.destination[rows]] = True
    return int(seen.sum())


def _crowded(matrix: Matrix, leaves: Leaves | None, limits: Limits) -> Flags:
    """Tell which rows are between leaves and shared uplinks with others of their round.

    How many uplinks a leaf has nobody says, so that nobody knows what such a row could have; it
    matters where a reference judges the level.
    """
    found = np.zeros(len(matrix), dtype=bool)
    if leaves is None or not limits.bounds:
        return found
    for rows in _rounds(matrix):
        first = leaves.leaf_of[matrix.source[rows]]
        second = leaves.leaf_of[matrix.destination[rows]]
        across, back = first != second, (first != second) & matrix.both_ways[rows]
        begin = np.concatenate([first[across], second[back]])
        end = np.concatenate([second[across], first[back]])
        up, down = (np.bincount(each, minlength=leaves.num_leaves) for each in (begin, end))
        shares = (up[first] > 1) | (down[second] > 1)
        found[rows] = across & (shares | (back & ((up[second] > 1) | (down[first] > 1))))
    return found


def _rounds(matrix: Matrix) -> Iterator[Rows]:
    """Yield the rows of each round over each rail; those of no round are left out."""
    code = matrix.round.astype(np.int64) * len(matrix.rails) + matrix.rail
    order = np.argsort(code, kind="stable")
    order = order[matrix.round[order] >= 0]
    if len(order):
        yield from np.split(order, np.flatnonzero(np.diff(code[order])) + 1)


def _sure_deviations(num_rows: int) -> float:
    """Return by how many standard deviations no healthy row of so many is low.

    In one of some hundreds of matrices one is.  The largest of n normal values lies near
    sqrt(2 ln n); the deviation itself, found from the median of n distances, is off by
    1.2 / sqrt(n) of it (Rousseeuw and Croux 1993).
    """
    most = math.sqrt(2 * math.log(max(num_rows, 2))) + 0.8
    return max(DEVIATIONS, most * (1 + 1.2 / math.sqrt(max(num_rows, 1))))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Held:
    """The rows of a stratum held against their yardstick and the reference.

    Attributes:
        off: of each row the logarithm of value over yardstick.
        low: rows that are low.
        missed: those of them that plainly miss the reference which the others reach.
        contended: rows that the load of their round may explain.
        all_miss: whether the yardstick itself misses the reference.
        misses: rows that miss the reference, where it is the yardstick for want of others.
        is_unknown: whether that may be the load of the rounds, of which nobody knows.
    """

    off: Values
    low: Flags
    missed: Flags
    contended: Flags
    misses: Flags
    all_miss: bool = False
    is_unknown: bool = False


def _hold(own: Values, crowded: Flags, heap: Heap, bound: float | None, least: float) -> _Held:
    """Hold the rows of one stratum against their yardstick and the reference.

    ``crowded``: rows of which nobody knows what the load of their round lets them have.
    ``bound``: the worst that the reference allows, if there is one.
    ``least``: how far off a row is low at the least.
    """
    off = own - heap.centre
    threshold = max(least, DEVIATIONS * heap.scatter)
    low = off < -threshold
    missed = np.zeros(len(own), dtype=bool)
    misses = np.zeros(len(own), dtype=bool)
    contended = np.zeros(len(own), dtype=bool)
    if bound is not None and heap.centre < bound - _ROUNDING:
        # All miss it: that is no one's fault.
        is_unknown = bool(crowded.mean() > _MOSTLY)
        if is_unknown:
            contended = crowded & (own < bound)
        all_miss = is_unknown or float(np.median(own)) < bound
        return _Held(off=off, low=low, missed=missed, contended=contended, misses=misses,
                     all_miss=all_miss, is_unknown=is_unknown)  # fmt: skip
    if bound is not None:
        # However widely the others scatter, this one plainly misses the reference.
        missed = own < bound - PLAINLY
        low |= missed
        # The yardstick is the reference, not what healthy rows have: its noise excuses nobody.
        if heap.scatter == 0:
            misses = own < bound - _ROUNDING
    return _Held(off=off, low=low, missed=missed, misses=misses, contended=contended)


def _measure(
    matrix: Matrix,
    crowded: Flags,
    strata: list[_Stratum],
    heaps: list[Heap | None],
    limits: Limits,
) -> Measure:
    shortfall = np.zeros(len(matrix))
    low, plainly, contended, few = (np.zeros(len(matrix), dtype=bool) for _ in range(4))
    yardsticks: dict[tuple[int, int], float] = {}
    below: dict[tuple[int, int], None] = {}
    between: dict[tuple[int, int], float] = {}
    scatter = 0.0
    surely = _sure_deviations(len(matrix))
    for (kind, rail, rows), heap in zip(strata, heaps, strict=True):
        own = matrix.goodness[rows]
        if heap is None:
            few[rows] = True
            shortfall[rows] = own - np.median(own)
            continue
        lower_is_better = matrix.kinds[kind].lower_is_better
        least = limits.threshold(lower_is_better=lower_is_better)
        # Latency is that of an idle fabric.
        unknown = crowded[rows] & (not lower_is_better)
        bound = bound_of(matrix, kind, limits)
        held = _hold(own, unknown, heap, bound, least)
        value = math.exp(-heap.centre if lower_is_better else heap.centre)
        if held.is_unknown:
            between[kind, rail] = value
        elif held.all_miss:
            below[kind, rail] = None
        low[rows], contended[rows], shortfall[rows] = held.low, held.contended, held.off
        surely_low = held.off < -max(least, surely * heap.scatter)
        plainly[rows] = held.misses | (held.low & (surely_low | held.missed))
        if kind not in limits.bounds:
            scatter = max(scatter, heap.scatter)
        yardsticks.setdefault((kind, rail), value)
    return Measure(
        shortfall=shortfall,
        low=low,
        plainly=plainly,
        fast=np.zeros(len(matrix), dtype=bool),
        contended=contended,
        yardsticks=yardsticks,
        scatter=scatter,
        few=few,
        below_over=tuple(below),
        between=between,
    )


def _fast(
    matrix: Matrix,
    strata: list[_Stratum],
    heaps: list[Heap | None],
    better: list[Heap | None],
    limits: Limits,
) -> Flags:
    """Tell which rows are plainly better than the yardstick, or belong to a better heap.

    Where a reference says that the yardstick is good, none is: the others are not slow.
    """
    fast = np.zeros(len(matrix), dtype=bool)
    for (kind, _, rows), heap, above in zip(strata, heaps, better, strict=True):
        if heap is None or kind in limits.bounds:
            continue
        own = matrix.goodness[rows]
        least = limits.threshold(lower_is_better=matrix.kinds[kind].lower_is_better)
        edge = heap.centre + max(least, DEVIATIONS * heap.scatter)
        if above is not None and above.centre > heap.centre:
            of_better = above.centre - max(least, DEVIATIONS * above.scatter)
            edge = min(edge, max(of_better, heap.centre + least))
        fast[rows] = own > edge + PLAINLY
    return fast


def _has_strays(
    matrix: Matrix, measure: Measure, strata: list[_Stratum], leaves: Leaves | None
) -> bool:
    """Tell whether many rows are fast that are neither those of groups nor of single places.

    Nodes that are near each other are fast together: all pairs of a group, and no others.
    """
    strays = measure.fast.copy()
    if not are_fast_many(strays):
        return False
    for _, _, rows in strata:
        first = np.minimum(matrix.source[rows], matrix.destination[rows])
        second = np.maximum(matrix.source[rows], matrix.destination[rows])
        fast = measure.fast[rows]
        group = np.full(len(matrix.nodes), -1)
        pairs = np.unique(first[fast] * np.int64(2**31) + second[fast])
        for number, nodes in enumerate(components(pairs)):
            group[nodes] = number
        together = (group[first] == group[second]) & (group[first] >= 0)
        if float((together & ~fast).sum()) <= _NOT_FAST * float(together.sum()):
            strays[rows] = False
    if not are_fast_many(strays):
        return False
    explanation = explain(evidence_of(matrix, strays, leaves))
    return are_fast_many(strays & (explanation.by == -1))


def are_fast_many(fast: Flags) -> bool:
    """Tell whether fast rows are more than single ones: they may be what all should have."""
    return float(fast.sum()) > MANY * len(fast) + 1


def is_many(flags: Flags) -> bool:
    """Tell whether more rows are set than chance would set."""
    return float(flags.sum()) > MANY * len(flags) + 3


def evidence_of(matrix: Matrix, low: Flags, leaves: Leaves | None) -> Evidence:
    """Return the rows of a matrix as evidence for blame."""
    return Evidence(
        source=matrix.source,
        destination=matrix.destination,
        both_ways=matrix.both_ways,
        rail=matrix.rail,
        round=matrix.round,
        low=low,
        like=_like(matrix, leaves),
        num_nodes=len(matrix.nodes),
        num_rails=len(matrix.rails),
        leaves=leaves,
    )


def _cost(matrix: Matrix, measure: Measure, explanation: Explanation) -> float:
    """Return how badly a choice of yardsticks explains the matrix: faults and what is left over.

    Fast rows that nothing explains are what healthy ones reach: they are the yardstick then.
    """
    nodes = {
        each.suspect.number for each in explanation.found if each.suspect.kind is SuspectKind.NODE
    }
    if len(nodes) * 2 > len(matrix.nodes):
        return math.inf
    faults = len(explanation.found) * (math.log(len(matrix.nodes)) + 3)
    unexplained = int((measure.low & (explanation.by < 0)).sum())
    fast = int(measure.fast.sum())
    missed = int((~measure.low & (explanation.by >= 0)).sum())
    strays = len(matrix) * _ROW_COST if measure.strays else 0.0
    return faults + (unexplained + fast) * _ROW_COST + missed * 3.0 + strays
