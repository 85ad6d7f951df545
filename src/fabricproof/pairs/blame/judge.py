"""The verdict on a matrix: which rows are low, who explains them, and what the level is worth.

Nothing defaults to PASS.  Without a reference the population is the yardstick of blame, and a
matrix in which nobody stands out is UNJUDGED: all may be equally slow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from fabricproof.core.measure import Verdict
from fabricproof.core.units import first_few
from fabricproof.pairs.blame.explain import CAUGHT, Explanation, Found, components
from fabricproof.pairs.blame.measure import (
    PLAINLY,
    ROUNDING,
    Measure,
    are_fast_many,
    is_many,
    measure_matrix,
    seen_twice,
    the_few,
)
from fabricproof.pairs.blame.pair import BadPair, bad_pairs
from fabricproof.pairs.blame.suspects import SuspectKind
from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.limits import NO_LIMITS, Limits
from fabricproof.pairs.matrix import Flags, Matrix

#: One who may be at fault is named for so many low values, as no two of them are a node; and so
#: many are named at most.
_LEAST_WEAK, _MOST_WEAK = 3, 2

#: No pair of a healthy fabric is so many times better than the others: pairs on one leaf differ
#: by 1.6 (document 002), a rail of a newer generation by two.  Memory that two ranks of one node
#: share, and a value in another unit, are.
MOST_TIMES = 3.0


class MatrixVerdict(StrEnum):
    """The verdict on a matrix; all words but the last are those of :class:`Verdict`."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INVALID = "INVALID"
    MISSING = "MISSING"
    UNJUDGED = "UNJUDGED"
    UNDECIDED = "UNDECIDED"
    """Something is low, and the matrix does not tell whose fault it is."""

    @property
    def as_verdict(self) -> Verdict:
        """The verdict that a run would count this as."""
        return Verdict.UNJUDGED if self is MatrixVerdict.UNDECIDED else Verdict(self.value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged(Measure):
    """What a matrix came to.

    ``below_rails`` also has what the only pair misses one way, in every look.

    Attributes:
        explanation: who explains what is low.
        unexplained: rows that are plainly low and that nobody explains.
        recovered: rows that are low, and good in most other looks at the same pair.
        weak: who would explain low rows, were there more of them.
        is_contention: whether many rows are low and nobody explains them.
        impossible: rows better than physics allows.
        high: rows so much better than all others that something else was measured.
    """

    matrix: Matrix
    leaves: Leaves | None
    limits: Limits
    verdict: MatrixVerdict = MatrixVerdict.UNJUDGED
    reason: str = ""
    explanation: Explanation
    bad_pairs: tuple[BadPair, ...]
    unexplained: Flags
    recovered: Flags
    weak: tuple[Found, ...]
    is_contention: bool
    impossible: Flags
    high: Flags

    def meets(self, number: int) -> bool:
        """Tell whether all low rows of a suspect meet the reference of a bandwidth.

        By it they are no fault: links of an older generation do.  A latency has no generations.
        """
        if self.limits.bound is None or self.matrix.kind.lower_is_better:
            return False
        rows = np.flatnonzero((self.explanation.by == number) & self.low)
        bounds = np.array([
            self.limits.goodness(self.limits.bound, self.matrix, rail) or -math.inf
            for rail in range(len(self.matrix.rails))
        ])  # fmt: skip
        own = self.matrix.goodness[rows] >= bounds[self.matrix.rail[rows]] - ROUNDING
        return bool(own.all())

    def is_blamed(self, number: int) -> bool:
        """Tell whether the suspect ``number`` of the explanation is blamed.

        A round is nobody's fault.  Nor is one blamed that cannot be told from another place of the
        same kind, or that has what the reference asks for.
        """
        found = self.explanation.found[number]
        if found.suspect.kind is SuspectKind.ROUND or self.meets(number):
            return False
        return all(each.kind is not found.suspect.kind for each in found.rivals)

    @property
    def blamed(self) -> list[int]:
        """The numbers of those who are blamed."""
        return [at for at in range(len(self.explanation.found)) if self.is_blamed(at)]

    @property
    def few_below(self) -> tuple[str, ...]:
        """The two or three nodes that miss the reference, and cannot be told apart."""
        return the_few(self.matrix) if self.below_rails and not self.matrix.is_selection else ()

    @property
    def fast_group(self) -> tuple[int, ...]:
        """The only nodes that have pairs far above the yardstick, where others have none.

        Several such groups are leaves; one is either a leaf or the only healthy part.
        """
        if self.leaves is not None or self.is_contention or not are_fast_many(self.fast):
            return ()
        num = len(self.matrix.nodes)
        groups = components(np.unique(self.matrix.pair_keys[self.fast]), num)
        return tuple(groups[0]) if len(groups) == 1 and len(groups[0]) < num else ()

    @property
    def few_differ(self) -> bool:
        """Whether values that are too few to be a yardstick differ by more than the tolerance."""
        least = NO_LIMITS.threshold(self.matrix.kind) + PLAINLY
        rails = self.matrix.rail
        return any(
            float(np.ptp(self.shortfall[self.few & (rails == rail)])) > least
            for rail in np.unique(rails[self.few])
        )

    @property
    def is_undecided(self) -> bool:
        """Whether something is low that nobody is blamed for."""
        return bool(
            self.is_contention
            or self.explanation.groups
            or self.unexplained.any()
            or self.explanation.found
            or self.fast_group
            or self.few_differ
            or self.high.any()
        )


def judge_matrix(
    matrix: Matrix,
    *,
    leaves: Leaves | None = None,
    limits: Limits = NO_LIMITS,
    num_kinds: int = 1,
) -> Judged:
    """Judge a matrix of any part of the pairs, and say whose fault low ones are.

    ``num_kinds``: how many matrices the file has: chance may blame somebody in each.
    """
    measure, explanation = measure_matrix(matrix, leaves, limits, num_kinds)
    free = explanation.by == -1
    # Few rows may be low by chance.  One or two are named who would explain all of them; were more
    # suspect, it is chance.
    weak = tuple(
        found
        for found in explanation.weak
        if found.num_low >= _LEAST_WEAK and found.num_low >= CAUGHT * found.num_measured - 1e-9
    )
    weak = weak if len(weak) <= _MOST_WEAK else ()
    of_weak = np.zeros(len(matrix), dtype=bool)
    for found in weak:
        of_weak |= found.suspect.rows(matrix, leaves) & measure.low
    crowded = is_many((measure.low & free & ~of_weak)[free])
    crowded = crowded or measure.strays or measure.is_wide or bool(measure.between)
    pairs = () if crowded else bad_pairs(matrix, measure, explanation)
    low = measure.low | measure.plainly
    recovered = low & free & _good_in_most_looks(matrix, low)
    unexplained = measure.plainly & free & ~recovered
    if pairs:
        keys = [each.first * len(matrix.nodes) + each.second for each in pairs]
        unexplained &= ~np.isin(matrix.pair_keys, keys)
    is_round = any(each.suspect.kind is SuspectKind.ROUND for each in explanation.found)
    impossible = _better_than(matrix, limits)
    high = (measure.shortfall > math.log(MOST_TIMES)) & ~measure.few
    judged = Judged(
        **vars(measure) | {"below_rails": _below_rails(matrix, measure, limits)},
        matrix=matrix,
        leaves=leaves,
        limits=limits,
        explanation=explanation,
        bad_pairs=pairs,
        unexplained=unexplained,
        recovered=recovered,
        weak=weak,
        is_contention=crowded or is_round or explanation.is_endless,
        impossible=impossible,
        high=high,
    )
    judged = replace(judged, verdict=_verdict(judged))
    return replace(judged, reason=_reason(judged))


def _good_in_most_looks(matrix: Matrix, low: Flags) -> Flags:
    """Tell which low rows were not low in half of the looks at the same pair, or more.

    The looks are other rounds; of rows of one round the median counts already.
    """
    if not low.any() or not (matrix.round >= 0).any():
        return np.zeros(len(matrix), dtype=bool)
    _, at, counts = np.unique(matrix.look_keys(), return_inverse=True, return_counts=True)
    good = np.bincount(at, weights=~low)
    return np.asarray(low & (2 * good >= counts)[at])


def _verdict(judged: Judged) -> MatrixVerdict:
    if judged.impossible.any():
        return MatrixVerdict.INVALID
    if judged.blamed or judged.bad_pairs or judged.below_rails:
        return MatrixVerdict.FAIL
    if judged.matrix.unmeasured or judged.matrix.missing or not len(judged.matrix):
        return MatrixVerdict.MISSING
    if judged.is_undecided:
        return MatrixVerdict.UNDECIDED
    return MatrixVerdict.UNJUDGED if judged.limits.bound is None else MatrixVerdict.PASS


def _reason(judged: Judged) -> str:
    matrix, limits, verdict = judged.matrix, judged.limits, judged.verdict
    if verdict is MatrixVerdict.INVALID:
        row = int(judged.impossible.argmax())
        return (
            f"{int(judged.impossible.sum())} values cannot be: {matrix.name_of(row)} "
            f"{matrix.value[row]:.5g} {matrix.kind.unit}, and physics ends at "
            f"{limits.impossible:.5g}"
        )
    if verdict is MatrixVerdict.FAIL and (names := judged.few_below):
        return (
            f"{' - '.join(names)} miss the reference in every look one way at least: "
            f"{matrix.kind.words}; whose fault it is, {len(names)} nodes do not tell"
        )
    if verdict is MatrixVerdict.FAIL and judged.below_rails:
        who = "pairs that were measured twice" if matrix.is_selection else "healthy pairs"
        return f"even {who} miss the reference: {matrix.kind.words}"
    if verdict is MatrixVerdict.MISSING and matrix.missing:
        return f"not in the output: {first_few(matrix.missing, between='; ')}"
    return {
        MatrixVerdict.FAIL: "somebody is at fault for low pairs",
        MatrixVerdict.MISSING: "a node has no value at all" if len(matrix) else "no value at all",
        MatrixVerdict.UNDECIDED: "something stands out, and the matrix does not tell whose fault "
        "it is",
        MatrixVerdict.PASS: f"nobody stands out, and the level is good ({limits.origin})",
    }.get(
        verdict,
        "nobody stands out; how fast a pair should be is unknown (--link or --reference tells)",
    )


def _below_rails(matrix: Matrix, measure: Measure, limits: Limits) -> tuple[int, ...]:
    """Return the rails whose healthy values are themselves worse than the reference allows.

    Of the slowest pairs, each of which is the better of two looks, any value; of the only pair,
    what all looks one way show.
    """
    found = dict.fromkeys(measure.below_rails)
    bounds = [limits.goodness(limits.bound, matrix, rail) for rail in range(len(matrix.rails))]
    if limits.bound is None or not (matrix.is_selection or len(the_few(matrix)) == 2):
        return tuple(found)
    misses = matrix.goodness < np.array(bounds, dtype=float)[matrix.rail] - ROUNDING
    if matrix.is_selection:
        return tuple(np.unique(matrix.rail[misses]).tolist())
    twice = seen_twice(matrix, np.arange(len(matrix)))
    keys = matrix.look_keys()[twice]
    for key in np.unique(keys):
        rows = twice[keys == key]
        if misses[rows].all():
            found[int(matrix.rail[rows[0]])] = None
    return tuple(found)


def _better_than(matrix: Matrix, limits: Limits) -> Flags:
    """Tell which rows are better than physics allows."""
    if limits.impossible is None:
        return np.zeros(len(matrix), dtype=bool)
    if matrix.kind.lower_is_better:
        return np.asarray(matrix.value < limits.impossible)
    most = [limits.impossible * (name.count("+") + 1) / limits.num_rails for name in matrix.rails]
    return np.asarray(matrix.value > np.array(most)[matrix.rail])


def verdict_of_all(parts: Sequence[Judged]) -> tuple[MatrixVerdict, str]:
    """Return the verdict on the matrices of one file, the worst of those that count, and why.

    One without a reference does not count beside one of the same quantity that has one.
    """
    with_level = {each.matrix.kind.quantity for each in parts if each.limits.bound is not None}
    counting = [
        each
        for each in parts
        if each.verdict is not MatrixVerdict.UNJUDGED or each.matrix.kind.quantity not in with_level
    ]
    worst = min(counting or parts, key=lambda each: _WORST_FIRST.index(each.verdict))
    return worst.verdict, worst.reason


_WORST_FIRST = [
    MatrixVerdict.INVALID,
    MatrixVerdict.FAIL,
    MatrixVerdict.MISSING,
    MatrixVerdict.UNDECIDED,
    MatrixVerdict.UNJUDGED,
    MatrixVerdict.PASS,
]
