"""Which rows of a matrix are low: each held against the healthy ones of its kind.

Rows are compared with their like: one kind, rail and, where leaves are known, distance.  Which heap
of values is the healthy one is decided by what the blame can then explain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabricproof.pairs.blame.explain import CHANCE, Explanation, explain
from fabricproof.pairs.blame.suspects import Evidence, Flags, SuspectKind, Values
from fabricproof.pairs.blame.yardstick import LEAST_VALUES, Heap, candidates
from fabricproof.pairs.fabric import Leaves, load_of_flows, loads_of
from fabricproof.pairs.limits import Limits
from fabricproof.pairs.matrix import Matrix
from fabricproof.verdict.value import DEFAULT_TOLERANCE

#: A row is low where it misses the yardstick by the tolerance and by this many standard
#: deviations of the healthy rows: one in 4,000 of a normal distribution does.
_DEVIATIONS = 3.5
#: pairs that are blamed at most, in numbers and as a part of all: many bad pairs have one cause
_MOST_PAIRS, _MOST_PAIRS_PART = 3, 0.005

#: how often chance may make any pair of a matrix look bad for one to be blamed: what two low
#: values come to where no other value of the matrix is low
_PAIR_CHANCE = 0.003

#: of the rows of a bad pair one in so many may be good, as of any other at fault (CAUGHT).  A row
#: that is good contradicts a bad way between two nodes: so looks chance, not a fault
_ROWS_PER_GOOD = 10

#: The rate of chance is estimated from one matrix.  That it is CHANCE counts as so many rows more.
_PRIOR_ROWS = 1 / CHANCE

#: the low values of a bad pair are alike, within 22 % (a logarithm); disturbances are not
_ALIKE = 0.2

#: what an explanation costs against an unexplained row, both as logarithms of odds
_ROW_COST = -math.log(CHANCE)


@dataclass(frozen=True, kw_only=True)
class BadPair:
    """Two nodes that are low together and good with all others.

    Attributes:
        first: number of a node.
        second: number of the other.
        num_measured: rows of the two.
        num_low: of these, low ones.
        both_sides: whether rows of both directions are low, or of rows that name none.
    """

    first: int
    second: int
    num_measured: int
    num_low: int
    both_sides: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Measure:
    """Rows held against one choice of yardsticks.

    Attributes:
        shortfall: of each row the logarithm of value over yardstick, better is more.
        low: rows that are low.
        plainly: low rows that chance does not make in a matrix of this size.
        contended: rows that the load of their round explains.
        yardsticks: kind and rail -> the healthy value, in the unit of the kind.
        few: whether there are too few nodes or values to be a yardstick.
    """

    shortfall: Values
    low: Flags
    plainly: Flags
    contended: Flags
    yardsticks: dict[tuple[int, int], float]
    few: bool


def measure_matrix(
    matrix: Matrix, leaves: Leaves | None, limits: Limits
) -> tuple[Measure, Explanation]:
    """Return which rows are low, and who explains them, with the best choice of yardsticks.

    Args:
        matrix: the rows; may be of any part of the pairs.
        leaves: where the nodes hang, if known; their spines, if the routing is static.
        limits: reference and ceiling of the values, if any.
    """
    strata = _strata(matrix, leaves)
    chosen = [_choices(matrix, rows, kind, limits) for kind, _, rows in strata]
    chosen = _with_nearest(strata, chosen)
    loads = _loads(matrix, leaves)
    ways = [tuple(0 for _ in chosen)]
    if any(len(each) > 1 for each in chosen):
        ways.append(tuple(len(each) - 1 for each in chosen))
    best: tuple[float, Measure, Explanation] | None = None
    for way in ways:
        heaps = [each[number] if each else None for each, number in zip(chosen, way, strict=True)]
        measure = _measure(matrix, strata, heaps, limits, loads)
        partners = 2 if limits.bounds else 3
        explanation = explain(evidence_of(matrix, measure.low, leaves), least_partners=partners)
        cost = _cost(matrix, measure, explanation)
        if best is None or cost < best[0]:
            best = cost, measure, explanation
    assert best is not None
    return best[1], best[2]


Rows = npt.NDArray[np.int64]
_Stratum = tuple[int, int, Rows]


def _strata(matrix: Matrix, leaves: Leaves | None) -> list[_Stratum]:
    """Return the rows that may be held against each other: one kind, rail and distance."""
    code = matrix.kind.astype(np.int64) * len(matrix.rails) + matrix.rail
    if leaves is not None:
        code = code * 2 + leaves.crosses(matrix.source, matrix.destination)
    found = []
    for each in np.unique(code).tolist():
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
    if len(own) >= LEAST_VALUES and _num_nodes(matrix, rows) > 3:
        return candidates(own, least)
    if least is None:
        return ()
    # Too few to be a population: the reference itself is the yardstick.
    good = own[own >= least]
    return (Heap(centre=float(np.median(good)) if len(good) else least, scatter=0.0, weight=1.0),)


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


def _loads(matrix: Matrix, leaves: Leaves | None) -> Values:
    """Return the logarithm of what the load of its round lets a row have: 0 or less."""
    found = np.zeros(len(matrix))
    if leaves is None or leaves.num_spines == 0:
        return found
    code = matrix.round.astype(np.int64) * len(matrix.rails) + matrix.rail
    for each in np.unique(code[matrix.round >= 0]).tolist():
        rows = np.flatnonzero(code == each)
        source, destination = matrix.source[rows], matrix.destination[rows]
        both = matrix.both_ways[rows]
        begin = np.concatenate([source, destination[both]])
        end = np.concatenate([destination, source[both]])
        loads = loads_of(np.stack([begin, end], axis=1), leaves, both_ways=False)
        flows = load_of_flows(source, destination, loads, leaves)
        flows[both] = np.maximum(
            flows[both], load_of_flows(destination[both], source[both], loads, leaves)
        )
        found[rows] = -np.log(flows)
    return found


def _measure(
    matrix: Matrix,
    strata: list[_Stratum],
    heaps: list[Heap | None],
    limits: Limits,
    loads: Values,
) -> Measure:
    shortfall = np.zeros(len(matrix))
    low, plainly = np.zeros(len(matrix), dtype=bool), np.zeros(len(matrix), dtype=bool)
    contended = np.zeros(len(matrix), dtype=bool)
    yardsticks: dict[tuple[int, int], float] = {}
    few = False
    surely = max(_DEVIATIONS, math.sqrt(2 * math.log(max(len(matrix), 2))) + 0.7)
    for (kind, rail, rows), heap in zip(strata, heaps, strict=True):
        own = matrix.goodness[rows]
        if heap is None:
            few = True
            shortfall[rows] = own - np.median(own)
            continue
        lower_is_better = matrix.kinds[kind].lower_is_better
        # The bandwidth of a loaded link is shared; latency is that of an idle fabric.
        share = np.zeros(len(rows)) if lower_is_better else loads[rows]
        off = own - heap.centre
        least = limits.threshold(lower_is_better=lower_is_better)
        threshold = max(least, _DEVIATIONS * heap.scatter)
        below = off < -threshold
        contended[rows] = below & (share < 0) & (off >= share - threshold)
        low[rows] = below & ~contended[rows]
        plainly[rows] = low[rows] & (off < -max(least, surely * heap.scatter))
        shortfall[rows] = off
        yardsticks.setdefault(
            (kind, rail), math.exp(-heap.centre if lower_is_better else heap.centre)
        )
    return Measure(
        shortfall=shortfall,
        low=low,
        plainly=plainly,
        contended=contended,
        yardsticks=yardsticks,
        few=few,
    )


def evidence_of(matrix: Matrix, low: Flags, leaves: Leaves | None) -> Evidence:
    """Return the rows of a matrix as evidence for blame."""
    return Evidence(
        source=matrix.source,
        destination=matrix.destination,
        both_ways=matrix.both_ways,
        rail=matrix.rail,
        round=matrix.round,
        low=low,
        num_nodes=len(matrix.nodes),
        num_rails=len(matrix.rails),
        leaves=leaves,
    )


def _cost(matrix: Matrix, measure: Measure, explanation: Explanation) -> float:
    """Return how badly a choice of yardsticks explains the matrix: faults and what is left over."""
    nodes = {
        each.suspect.number for each in explanation.found if each.suspect.kind is SuspectKind.NODE
    }
    if len(nodes) * 2 > len(matrix.nodes):
        return math.inf
    faults = len(explanation.found) * (math.log(len(matrix.nodes)) + 3)
    unexplained = int((measure.low & (explanation.by < 0)).sum())
    fast = int((measure.shortfall > math.log1p(DEFAULT_TOLERANCE) + 0.05).sum())
    missed = int((~measure.low & (explanation.by >= 0)).sum())
    return faults + (unexplained + fast) * _ROW_COST + missed * 3.0


def _chance_of(count: int, singles: int, num_rows: int) -> float:
    """Return how likely chance makes all of ``count`` rows low.

    The rate is not known: of ``num_rows`` others ``singles`` are low.  Averaged over all rates that
    fit (Gamma, the conjugate prior of a Poisson rate) it is more than the best guess to the power.
    """
    return math.prod((singles + 1 + row) / (num_rows + _PRIOR_ROWS) for row in range(count))


def bad_pairs(matrix: Matrix, measure: Measure, explanation: Explanation) -> tuple[BadPair, ...]:
    """Return the pairs of which all is low, and that more often than chance would let any be."""
    rows = np.flatnonzero(measure.low & (explanation.by == -1))
    if not len(rows):
        return ()
    num = len(matrix.nodes)

    def keys(chosen: Rows) -> Rows:
        first, second = matrix.source[chosen], matrix.destination[chosen]
        low = np.minimum(first, second).astype(np.int64)
        return low * num + np.maximum(first, second)

    pairs, counts = np.unique(keys(rows), return_counts=True)
    often = pairs[counts > 1]
    singles = int((counts == 1).sum())
    if not len(often) or len(often) > 10_000:
        return ()
    free = np.flatnonzero(explanation.by == -1)
    own = free[np.isin(keys(free), often)]
    of_own = np.searchsorted(often, keys(own))
    measured = np.bincount(of_own, minlength=len(often))
    low = np.bincount(of_own, weights=measure.low[own], minlength=len(often))
    num_pairs = num * (num - 1) / 2
    found = []
    for number in np.flatnonzero(low >= 2).tolist():
        total, count = int(measured[number]), int(low[number])
        good = total - count
        chance = num_pairs * math.comb(total, good)
        chance *= _chance_of(count, singles, len(free) - total)
        if good * _ROWS_PER_GOOD > total or chance > _PAIR_CHANCE:
            continue
        first, second = divmod(int(often[number]), num)
        mine = own[(of_own == number) & measure.low[own]]
        if np.ptp(measure.shortfall[mine]) > _ALIKE:
            continue
        both = bool(matrix.both_ways[mine].any()) or len(np.unique(matrix.source[mine])) > 1
        found.append(
            BadPair(first=first, second=second, num_measured=total, num_low=count, both_sides=both)
        )
    if len(found) > max(_MOST_PAIRS, _MOST_PAIRS_PART * len(np.unique(keys(free)))):
        return ()
    return tuple(found)
