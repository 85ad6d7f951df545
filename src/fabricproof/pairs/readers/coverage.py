"""Which pairs a table should have and does not.

A table that names more than half of all pairs means to be whole; of one of fewer only what it names
is expected.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fabricproof.core.units import counted, first_few
from fabricproof.pairs.matrix import Flags, Matrix

_Codes = npt.NDArray[np.int64]

#: where so many of the pairs of a kind stand both ways, each should
_PART_BOTH_WAYS = 0.25


def coverage_of(matrix: Matrix, kept: Flags, empty: Flags) -> tuple[tuple[str, ...], list[str]]:
    """Return in words what the table should have and does not, and what else is not measured.

    ``empty``: rows that have none, without those of a node with itself.
    """
    num, named = np.int64(len(matrix.nodes)), kept | empty
    every = int(num * (num - 1) // 2)
    is_whole = 2 * len(np.unique(_pairs(_ways(matrix, named), num))) > every
    every_way = np.flatnonzero(~np.eye(int(num), dtype=bool)) if is_whole else None
    sheet = matrix.kind.astype(np.int64) * len(matrix.rails) + matrix.rail
    found: list[str] = []
    for each in np.unique(sheet[named]).tolist():
        of_kind = named & (matrix.kind == each // len(matrix.rails)) & ~matrix.both_ways
        stand = _ways(matrix, of_kind)
        once = len(np.unique(_pairs(stand, num)))
        is_directed = 0 < once <= (len(stand) - once) / _PART_BOTH_WAYS
        measured, expected = _ways(matrix, kept & (sheet == each)), every_way
        if expected is None:
            expected = _ways(matrix, named & (sheet == each))
            expected = np.union1d(expected, _turned(expected, num))
        if not is_directed:
            measured = np.union1d(measured, _turned(measured, num))
        found += _absent_words(matrix, each, measured, expected, is_directed=is_directed)
    return tuple(found), _notes(matrix, kept, every)


def _ways(matrix: Matrix, rows: Flags) -> _Codes:
    """Return who is sent to by whom in some rows, as numbers: of a row both ways both."""
    num = np.int64(len(matrix.nodes))
    code = matrix.source[rows] * num + matrix.destination[rows]
    return np.unique(np.concatenate([code, _turned(code[matrix.both_ways[rows]], num)]))


def _turned(ways: _Codes, num: np.int64) -> _Codes:
    first, second = np.divmod(ways, num)
    return np.asarray(second * num + first)


def _pairs(ways: _Codes, num: np.int64) -> _Codes:
    return np.minimum(ways, _turned(ways, num))


def _absent_words(
    matrix: Matrix, sheet: int, measured: _Codes, expected: _Codes, *, is_directed: bool
) -> Iterator[str]:
    """Yield what of one kind over one rail is expected and was not measured."""
    num = np.int64(len(matrix.nodes))
    absent = np.setdiff1d(expected, measured, assume_unique=True)
    if not len(absent):
        return
    kind, rail = divmod(sheet, len(matrix.rails))
    over = f" over {matrix.rails[rail]}" if matrix.rails[rail] else ""
    of_kind = matrix.kinds[kind].words if len(matrix.kinds) > 1 else ""
    if not len(measured):
        yield f"any {of_kind or 'value'}{over}"
        return
    ends = np.divmod(absent, num)
    silent = np.setdiff1d(np.concatenate(ends), np.concatenate(np.divmod(measured, num)))
    if len(silent):
        names = [matrix.nodes[at] for at in silent.tolist()]
        yield f"any {of_kind or 'value'} of {first_few(names)}{over}"
    rest = absent[~(np.isin(ends[0], silent) | np.isin(ends[1], silent))]
    if len(rest):
        what, share, arrow = ("directions", 1, "to") if is_directed else ("pairs", 2, "with")
        if not is_directed:
            rest = np.unique(_pairs(rest, num))
        told = f"{len(absent) // share} of {len(expected) // share} {what}"
        names = [
            f"{matrix.nodes[one]} {arrow} {matrix.nodes[other]}"
            for one, other in (divmod(code, int(num)) for code in rest.tolist())
        ]
        yield f"{told}{f', {of_kind}' if of_kind else ''}{over}: {first_few(names)}"


def _notes(matrix: Matrix, kept: Flags, every: int) -> list[str]:
    """Return what else was not measured, of which nobody can tell whether it should have been."""
    num = np.int64(len(matrix.nodes))
    pairs, counts = np.unique(_pairs(_ways(matrix, kept), num), return_counts=True)
    if len(matrix.nodes) < 3 or not len(pairs):
        return []
    found = []
    if len(pairs) < every:
        found.append(f"{len(pairs)} of {every} pairs measured: nothing is said of the others")
    if half := int((counts == 1).sum()):
        found.append(f"{counted(half, 'pair')} measured one way only: nothing is said of the other")
    partners = np.bincount(np.concatenate(np.divmod(pairs, num)), minlength=int(num))
    single = [matrix.nodes[at] for at in np.flatnonzero(partners == 1).tolist()]
    if single:
        found.append(f"with one partner only, and not told from it: {first_few(single)}")
    return found
