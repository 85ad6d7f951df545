"""A matrix of several sizes or quantities: each is judged by itself, and what they say is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fabricproof.pairs.blame.explain import Explanation, Found
from fabricproof.pairs.blame.judged import Judged
from fabricproof.pairs.blame.pair import BadPair
from fabricproof.pairs.blame.suspects import ALL, Indices, Suspect
from fabricproof.pairs.matrix import Matrix


def merged(matrix: Matrix, parts: Sequence[Judged], rows: Sequence[Indices]) -> Judged:
    """Return what the kinds of a matrix come to together."""
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
        explanation=_explanation(matrix, parts, rows),
        bad_pairs=_pairs(parts),
        yardsticks={at: value for part in parts for at, value in part.yardsticks.items()},
        weak=tuple(weak.values()),
        is_contention=any(part.is_contention for part in parts),
        scatter=max(part.scatter for part in parts),
        strays=any(part.strays for part in parts),
        between={at: value for part in parts for at, value in part.between.items()},
        below_over=tuple(each for part in parts for each in part.below_over),
    )


def _explanation(matrix: Matrix, parts: Sequence[Judged], rows: Sequence[Indices]) -> Explanation:
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


def _pairs(parts: Sequence[Judged]) -> tuple[BadPair, ...]:
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
