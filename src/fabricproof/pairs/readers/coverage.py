"""Which pairs a table should have and does not, and which it leaves out as a sample does.

A table of more than half of all pairs means to be whole; one of fewer, or in which nobody has more
than two partners, is a sample, of which only what it names is expected.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fabricproof.core.units import counted, first_few
from fabricproof.pairs.matrix import Flags, Indices, Matrix

_Codes = npt.NDArray[np.int64]

#: where so many of the pairs of a kind stand both ways, each row is one way, and each should
_PART_BOTH_WAYS = 0.25

#: of what is absent so many parts are named
_MOST_NAMED = 4


def stand_one_way(
    source: Indices, destination: Indices, rail: Indices, kind: Indices, num_nodes: int
) -> Flags:
    """Tell of which kinds a pair that stands once was measured one way only.

    So it is where a quarter of the pairs or more stand both ways over the same rail.
    """
    num_kinds = int(kind.max(initial=-1)) + 1
    others = source != destination
    place = rail[others].astype(np.int64) * num_kinds + kind[others]
    code = place * num_nodes + source[others]
    ways = np.unique(code * num_nodes + destination[others])
    place, both = np.divmod(ways, np.int64(num_nodes) ** 2)
    first, second = np.divmod(both, num_nodes)
    low, high = np.minimum(first, second), np.maximum(first, second)
    pairs, counts = np.unique((place * num_nodes + low) * num_nodes + high, return_counts=True)
    of_kind = pairs // num_nodes**2 % max(num_kinds, 1)
    twice = np.bincount(of_kind, weights=counts == 2, minlength=num_kinds)
    stand = np.bincount(of_kind, minlength=num_kinds)
    return np.asarray((twice > 0) & (twice >= _PART_BOTH_WAYS * stand))


def coverage_of(matrix: Matrix, kept: Flags, empty: Flags) -> tuple[tuple[str, ...], list[str]]:
    """Return in words what the table should have and does not, and what else is not measured.

    Args:
        matrix: of all rows.
        kept: rows that have a value.
        empty: rows that have none, without those of a node with itself.
    """
    num, named = np.int64(len(matrix.nodes)), kept | empty
    sheet = matrix.kind.astype(np.int64) * len(matrix.rails) + matrix.rail
    loose = empty & _says_less(matrix) & ~np.isin(sheet, sheet[kept])
    pairs = np.unique(_pairs(_ways(matrix, named), num))
    partners = np.bincount(np.concatenate(np.divmod(pairs, num)), minlength=int(num))
    every = int(num * (num - 1) // 2)
    is_whole = 2 * len(pairs) > every and int(partners.max(initial=0)) > 2
    one_way = stand_one_way(
        matrix.source[named],
        matrix.destination[named],
        matrix.rail[named],
        matrix.kind[named],
        int(num),
    )
    every_way = np.flatnonzero(~np.eye(int(num), dtype=bool)).astype(np.int64) if is_whole else None
    found: list[str] = []
    for each in np.unique(sheet[named & ~loose]).tolist():
        here = sheet == each
        is_directed = bool(one_way[each // len(matrix.rails)])
        measured = _ways(matrix, kept & here)
        expected = every_way
        if expected is None:
            # What stands one way should stand both ways, or is enough.
            expected = _ways(matrix, (named & here) | loose)
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
    known = np.unique(np.concatenate(np.divmod(measured, num)))
    ends = np.divmod(absent, num)
    silent = np.setdiff1d(np.concatenate(ends), known)
    if len(silent):
        names = [matrix.nodes[at] for at in silent.tolist()]
        yield f"any {of_kind or 'value'} of {first_few(names)}{over}"
    rest = absent[~(np.isin(ends[0], silent) | np.isin(ends[1], silent))]
    if len(rest):
        each, share = ("directions", 1) if is_directed else ("pairs", 2)
        told = f"{len(absent) // share} of {len(expected) // share} {each}"
        of_what = f", {of_kind}" if of_kind else ""
        yield f"{told}{of_what}{over}: {_named(matrix, rest, is_directed=is_directed)}"


def _named(matrix: Matrix, absent: _Codes, *, is_directed: bool) -> str:
    """Return who did not measure with whom, the nodes that lack most first."""
    num = np.int64(len(matrix.nodes))
    mutual = np.isin(absent, _turned(absent, num))
    parts: list[str] = []
    while len(absent) and len(parts) < _MOST_NAMED:
        first, second = np.divmod(absent, num)
        counts = [
            np.bincount(ends[rows], minlength=int(num))
            for ends, rows in ((first, mutual), (first, ~mutual), (second, ~mutual))
        ]
        way = int(np.argmax([count.max() for count in counts]))
        node = int(counts[way].argmax())
        here, there = (second, first) if way == 2 else (first, second)
        gone = (here == node) & (mutual == (way == 0))
        others = there[gone].tolist()
        who = matrix.nodes[others[0]] if len(others) == 1 else f"{len(others)} nodes"
        name = matrix.nodes[node]
        parts.append(f"{who} to {name}" if way == 2 else f"{name} {('with', 'to')[way]} {who}")
        if way == 0:
            gone |= mutual & (second == node)
        absent, mutual = absent[~gone], mutual[~gone]
    rest = len(absent) // (1 if is_directed else 2)
    return ", ".join(parts) + (f" and {rest} more" if rest else "")


def _notes(matrix: Matrix, kept: Flags, every: int) -> list[str]:
    """Return what else was not measured, of which nobody can tell whether it should have been."""
    num = np.int64(len(matrix.nodes))
    ways = _ways(matrix, kept)
    pairs, counts = np.unique(_pairs(ways, num), return_counts=True)
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


def _says_less(matrix: Matrix) -> Flags:
    """Tell which rows name no size, unit or rail where others of their quantity name one.

    A program may leave all cells empty of what it did not measure: it is not another kind then.
    """
    kinds = matrix.kinds
    has_unit = any(each.unit for each in kinds)
    sized = {each.quantity for each in kinds if each.size}
    less = [
        (not each.size and each.quantity in sized) or (not each.unit and has_unit) for each in kinds
    ]
    nameless = [not name and len(matrix.rails) > 1 for name in matrix.rails]
    return np.asarray(
        np.array(less, dtype=bool)[matrix.kind] | np.array(nameless, dtype=bool)[matrix.rail]
    )
