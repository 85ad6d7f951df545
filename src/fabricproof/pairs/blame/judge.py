"""The verdict on a matrix: which rows are low, who explains them, and what the level is worth.

Nothing defaults to PASS.  Without a reference the population is the yardstick of blame, and a
matrix in which nobody stands out is UNJUDGED: all may be equally slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fabricproof.core.units import counted, first_few
from fabricproof.pairs.blame.explain import CAUGHT, Explanation, Found, components
from fabricproof.pairs.blame.judged import Judged, MatrixVerdict
from fabricproof.pairs.blame.measure import (
    PLAINLY,
    Measure,
    are_fast_many,
    bound_of,
    evidence_of,
    is_many,
    measure_matrix,
    seen_twice,
    the_few,
)
from fabricproof.pairs.blame.pair import BadPair, bad_pairs
from fabricproof.pairs.blame.suspects import ALL, Flags, Indices, Suspect, SuspectKind
from fabricproof.pairs.fabric import Leaves
from fabricproof.pairs.limits import NO_LIMITS, Limits
from fabricproof.pairs.matrix import Matrix

#: One who may be at fault is named for so many low values, as no two of them are a node; and so
#: many are named at most.
_LEAST_WEAK, _MOST_WEAK = 3, 2


def judge_matrix(
    matrix: Matrix, *, leaves: Leaves | None = None, limits: Limits = NO_LIMITS
) -> Judged:
    """Judge a matrix of any part of the pairs, and say whose fault low ones are."""
    kinds = np.flatnonzero(np.bincount(matrix.kind)).tolist()
    if len(kinds) < 2:
        judged = _without_verdict(matrix, leaves, limits)
    else:
        # A fault may show in one size or quantity alone: blame is of each by itself.
        rows = [np.flatnonzero(matrix.kind == kind) for kind in kinds]
        parts = [_without_verdict(matrix.rows(each), leaves, limits) for each in rows]
        judged = _merged(matrix, parts, rows)
    judged = replace(judged, verdict=_verdict(judged, limits))
    return replace(judged, reason=_reason(judged, limits))


def _without_verdict(matrix: Matrix, leaves: Leaves | None, limits: Limits) -> Judged:
    measure, explanation = measure_matrix(matrix, leaves, limits)
    rounds = [
        number
        for number, each in enumerate(explanation.found)
        if each.suspect.kind is SuspectKind.ROUND
    ]
    free = explanation.by == -1
    weak, of_weak = _told_by_few(matrix, measure, explanation, leaves)
    crowded = is_many((measure.low & free & ~of_weak)[free])
    crowded = crowded or measure.strays or measure.is_wide or bool(measure.between)
    pairs = () if crowded else bad_pairs(matrix, measure, explanation)
    low = measure.low | measure.plainly
    recovered = low & free & _good_in_most_looks(matrix, low)
    unexplained = measure.plainly & free & ~recovered
    for pair in pairs:
        ends = (pair.first, pair.second)
        unexplained &= ~(np.isin(matrix.source, ends) & np.isin(matrix.destination, ends))
    return Judged(
        **vars(measure) | {"below_over": _below(matrix, measure, limits)},
        matrix=matrix,
        verdict=MatrixVerdict.UNJUDGED,
        explanation=explanation,
        bad_pairs=pairs,
        unexplained=unexplained,
        recovered=recovered,
        weak=weak,
        is_contention=crowded or bool(rounds) or explanation.is_endless,
        bounded=frozenset(limits.bounds),
        impossible=_impossible(matrix, limits),
        leaves=leaves,
    )


def _told_by_few(
    matrix: Matrix, measure: Measure, explanation: Explanation, leaves: Leaves | None
) -> tuple[tuple[Found, ...], Flags]:
    """Return one or two who would explain what is low, all of it, and the low rows of theirs.

    Chance may have made them low in so few rows; where more would be suspect, it is chance.
    """
    evidence = evidence_of(matrix, measure.low, leaves)
    rows = np.zeros(len(matrix), dtype=bool)
    weak = tuple(
        found
        for found in explanation.weak
        if found.num_low >= _LEAST_WEAK and found.num_low >= CAUGHT * found.num_measured - 1e-9
    )
    if len(weak) > _MOST_WEAK:
        return (), rows
    for found in weak:
        rows |= found.suspect.rows(evidence) & measure.low
    return weak, rows


def _good_in_most_looks(matrix: Matrix, low: Flags) -> Flags:
    """Tell which low rows were not low in half of the looks at the same pair, or more.

    The looks are other rounds; of rows of one round the median counts already.
    """
    if not low.any() or not (matrix.round >= 0).any():
        return np.zeros(len(matrix), dtype=bool)
    key = matrix.look_keys(with_round=False)
    _, at, counts = np.unique(key, return_inverse=True, return_counts=True)
    good = np.bincount(at, weights=~low)
    return np.asarray(low & (2 * good >= counts)[at])


def is_blamed(judged: Judged, number: int) -> bool:
    """Tell whether the suspect ``number`` of the explanation is blamed: a round is nobody's fault.

    Nor is one blamed that cannot be told from another place of the same kind.
    """
    found = judged.explanation.found[number]
    if found.suspect.kind is SuspectKind.ROUND:
        return False
    return all(each.kind is not found.suspect.kind for each in found.rivals)


def _verdict(judged: Judged, limits: Limits) -> MatrixVerdict:
    if judged.impossible.any():
        return MatrixVerdict.INVALID
    blamed = any(is_blamed(judged, number) for number in range(len(judged.explanation.found)))
    if blamed or judged.bad_pairs or judged.below:
        return MatrixVerdict.FAIL
    if judged.matrix.unmeasured or judged.matrix.missing or not len(judged.matrix):
        return MatrixVerdict.MISSING
    if is_undecided(judged):
        return MatrixVerdict.UNDECIDED
    kinds = judged.matrix.kinds
    named = {kind.quantity for kind in kinds}
    if named == {kinds[number].quantity for number in limits.bounds}:
        return MatrixVerdict.PASS
    return MatrixVerdict.UNJUDGED


def _reason(judged: Judged, limits: Limits) -> str:
    if judged.verdict is MatrixVerdict.INVALID:
        return _impossible_words(judged, limits)
    if judged.verdict is MatrixVerdict.FAIL and judged.below:
        return _below_words(judged)
    if judged.verdict is MatrixVerdict.MISSING and not len(judged.matrix):
        return "no pair has a value"
    if judged.verdict is MatrixVerdict.MISSING and judged.matrix.missing:
        return f"not in the output: {first_few(judged.matrix.missing, between='; ')}"
    if judged.verdict is MatrixVerdict.PASS:
        origins = ", ".join(dict.fromkeys(limits.origins.values()))
        return f"nobody stands out, and the level is good ({origins})"
    return _REASONS[judged.verdict]


def _below_words(judged: Judged) -> str:
    kinds = ", ".join(judged.matrix.kinds[number].words for number in judged.below)
    if nodes := few_below(judged):
        told = f"whose fault it is, {len(nodes)} nodes do not tell"
        names = " - ".join(nodes)
        return f"{names} miss the reference in every look one way at least: {kinds}; {told}"
    who = "pairs that were measured twice" if judged.matrix.is_selection else "healthy pairs"
    return f"even {who} miss the reference: {kinds}"


_REASONS = {
    MatrixVerdict.FAIL: "somebody is at fault for low pairs",
    MatrixVerdict.MISSING: "a node has no value at all",
    MatrixVerdict.UNDECIDED: "something is low, and the matrix does not tell whose fault it is",
    MatrixVerdict.UNJUDGED: "nobody stands out; nobody says how fast a pair should be (--link or "
    "--reference would)",
}


def _impossible_words(judged: Judged, limits: Limits) -> str:
    matrix, row = judged.matrix, int(judged.impossible.argmax())
    number = int(matrix.kind[row])
    first, second = (matrix.nodes[end[row]] for end in (matrix.source, matrix.destination))
    return (
        f"{counted(int(judged.impossible.sum()), 'value')} cannot be: {first} to {second} "
        f"{matrix.value[row]:.5g} {matrix.kinds[number].unit}, and physics ends at "
        f"{limits.impossible[number]:.5g}"
    )


def is_undecided(judged: Judged) -> bool:
    """Tell whether something is low that nobody is blamed for."""
    return bool(
        judged.is_contention
        or judged.explanation.groups
        or judged.unexplained.any()
        or judged.explanation.found
        or fast_group(judged)
        or differs(judged)
    )


def fast_group(judged: Judged) -> tuple[int, ...]:
    """Return the only nodes that have pairs far above the yardstick, where others have none.

    Several such groups are leaves; one is either a leaf or the only healthy part.
    """
    matrix, fast = judged.matrix, judged.fast
    if judged.leaves is not None or judged.is_contention or not are_fast_many(fast):
        return ()
    key = np.minimum(matrix.source, matrix.destination) * np.int64(2**31)
    key += np.maximum(matrix.source, matrix.destination)
    groups = components(np.unique(key[fast]))
    return tuple(groups[0]) if len(groups) == 1 and len(groups[0]) < len(matrix.nodes) else ()


def differs(judged: Judged) -> bool:
    """Tell whether values that are too few to be a yardstick differ by more than the tolerance."""
    matrix = judged.matrix
    code = matrix.kind.astype(np.int64) * len(matrix.rails) + matrix.rail
    for each in np.unique(code[judged.few]).tolist():
        rows = judged.few & (code == each)
        lower = matrix.kinds[each // len(matrix.rails)].lower_is_better
        least = NO_LIMITS.threshold(lower_is_better=lower) + PLAINLY
        if float(np.ptp(judged.shortfall[rows])) > least:
            return True
    return False


def few_below(judged: Judged) -> tuple[str, ...]:
    """Return the two or three nodes that miss the reference, and cannot be told apart."""
    return the_few(judged.matrix) if judged.below and not judged.matrix.is_selection else ()


def _below(matrix: Matrix, measure: Measure, limits: Limits) -> tuple[tuple[int, int], ...]:
    """Return kind and rail whose healthy values are themselves worse than the reference allows.

    Of the slowest pairs, each of which is the better of two looks, any value; of the only pair,
    what all looks one way show.
    """
    if not matrix.is_selection:
        return tuple(dict.fromkeys((*measure.below_over, *_below_one_way(matrix, limits))))
    found = []
    columns = (matrix.kind.tolist(), matrix.rail.tolist(), matrix.goodness.tolist())
    for kind, rail, goodness in zip(*columns, strict=True):
        bound = bound_of(matrix, kind, limits)
        if bound is not None and goodness < bound - 1e-9:
            found.append((kind, rail))
    return tuple(dict.fromkeys(found))


def _below_one_way(matrix: Matrix, limits: Limits) -> Iterator[tuple[int, int]]:
    """Yield kind and rail over which the only pair misses the reference in every look one way."""
    if len(the_few(matrix)) != 2:
        return
    twice = seen_twice(matrix, np.arange(len(matrix)))
    keys = matrix.look_keys(with_round=False)[twice]
    for key in np.unique(keys).tolist():
        rows = twice[keys == key]
        kind, rail = int(matrix.kind[rows[0]]), int(matrix.rail[rows[0]])
        bound = bound_of(matrix, kind, limits)
        if bound is not None and bool((matrix.goodness[rows] < bound - 1e-9).all()):
            yield kind, rail


def _impossible(matrix: Matrix, limits: Limits) -> Flags:
    found = np.zeros(len(matrix), dtype=bool)
    for number, limit in limits.impossible.items():
        lower_is_better = matrix.kinds[number].lower_is_better
        better = matrix.value < limit if lower_is_better else matrix.value > limit
        found |= better & (matrix.kind == number)
    return found


def _merged(matrix: Matrix, parts: Sequence[Judged], rows: Sequence[Indices]) -> Judged:
    columns: dict[str, Any] = {}
    for name, first in vars(parts[0]).items():
        if isinstance(first, np.ndarray):
            columns[name] = np.zeros(len(matrix), dtype=first.dtype)
            for part, at in zip(parts, rows, strict=True):
                columns[name][at] = getattr(part, name)
    weak = {found.suspect: found for part in parts for found in part.weak}
    return replace(
        parts[0],
        **columns,
        matrix=matrix,
        explanation=_explanation_of(matrix, parts, rows),
        bad_pairs=_pairs_of(parts),
        yardsticks={at: value for part in parts for at, value in part.yardsticks.items()},
        weak=tuple(weak.values()),
        is_contention=any(part.is_contention for part in parts),
        scatter=max(part.scatter for part in parts),
        strays=any(part.strays for part in parts),
        between={at: value for part in parts for at, value in part.between.items()},
        below_over=tuple(each for part in parts for each in part.below_over),
    )


def _explanation_of(
    matrix: Matrix, parts: Sequence[Judged], rows: Sequence[Indices]
) -> Explanation:
    """Return one explanation; one suspect is found once, by the kind that shows most of it."""
    found: list[Found] = []
    by = np.full(len(matrix), -1, dtype=np.int64)
    everyone = {each.suspect for part in parts for each in part.explanation.found}
    for part, at in zip(parts, rows, strict=True):
        numbers = []
        for each in part.explanation.found:
            suspect = _widest(each.suspect, everyone)
            known = next((at for at, one in enumerate(found) if one.suspect == suspect), None)
            numbers.append(len(found) if known is None else known)
            if known is None:
                found.append(replace(each, suspect=suspect))
            else:
                found[known] = _together(found[known], each)
        # The last two places are those of -2, a group, and of -1, nobody.
        by[at] = np.array([*numbers, -2, -1], dtype=np.int64)[part.explanation.by]
    groups = {
        frozenset(each.suspect.number for each in group): group
        for part in parts
        for group in part.explanation.groups
    }
    return Explanation(
        found=tuple(found),
        groups=tuple(groups.values()),
        by=by,
        weak=tuple(each for part in parts for each in part.explanation.weak),
        is_endless=any(part.explanation.is_endless for part in parts),
    )


def _widest(suspect: Suspect, everyone: set[Suspect]) -> Suspect:
    """Return who of the found holds a suspect: of one rail all of them, of a side both."""
    for rail, side in ((ALL, ALL), (ALL, suspect.side), (suspect.rail, ALL)):
        wider = replace(suspect, rail=rail, side=side)
        if wider in everyone:
            return wider
    return suspect


def _together(first: Found, second: Found) -> Found:
    return replace(
        first,
        num_measured=first.num_measured + second.num_measured,
        num_low=first.num_low + second.num_low,
        partners=max(first.partners, second.partners),
        margin=max(first.margin, second.margin),
        rivals=tuple(dict.fromkeys((*first.rivals, *second.rivals))),
    )


def _pairs_of(parts: Sequence[Judged]) -> tuple[BadPair, ...]:
    found: dict[tuple[int, int], BadPair] = {}
    for part in parts:
        for each in part.bad_pairs:
            known = found.get((each.first, each.second))
            if known is not None:
                each = replace(  # noqa: PLW2901 - the same pair, in two kinds
                    known,
                    num_measured=known.num_measured + each.num_measured,
                    num_low=known.num_low + each.num_low,
                    both_sides=known.both_sides or each.both_sides,
                )
            found[each.first, each.second] = each
    return tuple(found.values())
