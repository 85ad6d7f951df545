"""The numbers of both sides as one table of quantities by runs, like joined with like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key, size_label
from fabricproof.history.compare.model import NotCompared, NothingComparedError, SideError, typed
from fabricproof.history.gone import gone_after
from fabricproof.history.store import FIELDS, Key, Run, Store, no_samples
from fabricproof.verdict.value import ERROR_UNIT

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

#: fields of a key that ``--across`` may let differ; the others say what is measured
MAY_DIFFER = frozenset(FIELDS) - {"site", "quantity", "unit", "message_size", "better", "named"}

#: key of ``--only`` to its patterns
Only = Mapping[str, Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Every quantity that either side has.

    Attributes:
        keys: one for each row.
        values: shape (keys, runs), NaN if there is no usable number; the runs of the first side,
            then of the second, each oldest first.
        num_first: how many runs are of the first side.
        words: verdict words of each row.
        set_aside: row -> reasons of numbers that were measured and are not used.
        gone: rows that the first side has and the second lacks, and in how many of its runs.
    """

    keys: tuple[Key, ...]
    values: Values
    run_ids: tuple[str, ...]
    num_first: int
    words: tuple[tuple[str, ...], ...]
    set_aside: Mapping[int, Sequence[str]] = field(default_factory=dict)
    gone: Mapping[int, str] = field(default_factory=dict)

    def rows(self, *, first: bool, second: bool) -> list[int]:
        """Return the rows that have numbers on these sides and on no other.

        Rates of errors, most of them zero, make no ratios: see :func:`error_notes`.
        """
        usable = np.isfinite(self.values)
        there = [usable[:, : self.num_first].any(axis=1), usable[:, self.num_first :].any(axis=1)]
        found = np.flatnonzero((there[0] == first) & (there[1] == second)).tolist()
        return [row for row in found if self.keys[row].unit != ERROR_UNIT]

    def take(self, rows: Sequence[int]) -> Frame:
        """Return these rows alone."""
        return replace(
            self,
            keys=tuple(self.keys[row] for row in rows),
            values=self.values[rows],
            words=tuple(self.words[row] for row in rows),
            set_aside={
                new: self.set_aside[row] for new, row in enumerate(rows) if row in self.set_aside
            },
            gone={new: self.gone[row] for new, row in enumerate(rows) if row in self.gone},
        )


def table_of(
    store: Store, first: Sequence[Run], second: Sequence[Run], across: Sequence[str], only: Only
) -> Frame:
    """Return the numbers of both sides.

    Raises:
        SideError: a field of ``across`` that says what is measured, or that there is not.
        NothingComparedError: ``only`` leaves nothing.
    """
    if wrong := [name for name in across if name not in MAY_DIFFER]:
        raise SideError(
            f"--across {wrong[0]}: numbers that differ in it are not compared",
            expected=f"one of {', '.join(sorted(MAY_DIFFER))}",
        )
    matrix = store.matrix([each.run_id for each in (*first, *second)], across=across)
    of_first = {each.run_id for each in first}
    is_second = [each.run_id not in of_first for each in matrix.runs]
    order = sorted(range(len(matrix.runs)), key=lambda at: is_second[at])
    values = matrix.values[:, order]
    ids = tuple(matrix.runs[at].run_id for at in order)
    words = {row: tuple(row[at] for at in order) for row in set(matrix.verdicts)}
    table = Frame(
        keys=matrix.keys,
        values=values,
        run_ids=ids,
        num_first=is_second.count(False),
        words=tuple(words[row] for row in matrix.verdicts),
        set_aside=by_key((row, reason) for row, _, reason in matrix.set_aside),
    )
    apart = no_samples(store.labels)
    looks = [at for at, each in enumerate(ids) if each in apart]
    gone = gone_after(table.keys, values, table.words, table.num_first, looks)
    table = replace(table, gone=gone)
    if not any(only.values()):
        return table
    rows = [row for row, key in enumerate(table.keys) if fits(key, only)]
    if not rows:
        problem, expected = nothing_fits(table.keys, only)
        raise NothingComparedError(problem, expected=expected)
    return table.take(rows)


def fits(key: Key, only: Only) -> bool:
    """Tell whether a quantity fits every key of ``--only`` by one of its patterns."""
    return all(
        any(_fits(key, name, pattern) for pattern in patterns)
        for name, patterns in only.items()
        if patterns
    )


def _fits(key: Key, name: str, pattern: str) -> bool:
    if name == "pair" and "," in pattern:
        return set(pattern.split(",")) == set(key.nodes.split(","))
    return any(fnmatchcase(word, pattern) for word in _words(key, name))


def _words(key: Key, name: str) -> list[str]:
    """Return what a quantity is called under a key of ``--only``."""
    if name == "size":
        size = key.message_size
        return [] if size is None else [size_label(size), str(size)]
    if name in {"rail", "node", "pair"}:
        return [*filter(None, (key.rails if name == "rail" else key.nodes).split(","))]
    return [str(getattr(key, name))]


def nothing_fits(keys: Sequence[Key], only: Only) -> tuple[str, str]:
    """Return that nothing fits, and what there is of the first key that nothing fits."""
    asked = {name: patterns for name, patterns in only.items() if patterns}
    name = next(
        (name for name in asked if not any(fits(key, {name: asked[name]}) for key in keys)), ""
    )
    if not name:
        return f"nothing was measured that fits {typed(asked)} together", "fewer --only"
    known = {key.nodes for key in keys} if name == "pair" else set[str]()
    known = known or {word for key in keys for word in _words(key, name)}
    return (
        f"nothing was measured with {typed({name: asked[name]})}",
        f"one of: {', '.join(sorted(filter(None, known))[:12])}",
    )


def error_notes(table: Frame) -> Iterator[str]:
    """Yield a sentence for each rate of errors that is red in more runs of one side.

    A quiet rate is recorded as a number beside the others, and one that is red as one that carries
    a verdict (``named``): two rows of one rate.
    """
    words: dict[Key, list[str]] = {}
    for key, row in zip(table.keys, table.words, strict=True):
        if key.unit == ERROR_UNIT:
            merged = words.setdefault(replace(key, named=True), [""] * len(row))
            for at, word in enumerate(row):
                if merged[at] != Verdict.FAIL.value and word:
                    merged[at] = word
    for key, merged in words.items():
        sides = merged[: table.num_first], merged[table.num_first :]
        red = [side.count(Verdict.FAIL.value) for side in sides]
        of = [sum(map(bool, side)) for side in sides]
        if all(of) and red[0] * of[1] != red[1] * of[0]:
            yield (
                f"{key.quantity} of {key.check} {key.leg} ({key.stack}): red in {red[0]} of "
                f"{of[0]} runs of the first side, in {red[1]} of {of[1]} of the second"
            )


#: what stays alike when the nearest quantity of the other side is looked for, closest first
_NEAREST: tuple[tuple[str, ...], ...] = (
    ("stack", "suite", "program", "check", "leg", "quantity", "nodes"),
    ("stack", "program", "check", "leg", "quantity"),
    ("program", "leg", "quantity", "nodes"),
    ("program", "quantity"),
)

#: quantities unlike in more fields than this are no two states of one thing
_MOST_UNLIKE = 3


def not_compared(table: Frame) -> tuple[NotCompared, ...]:
    """Return why quantities of one side have no like on the other, the most first."""
    only = table.rows(first=True, second=False), table.rows(first=False, second=True)
    counts: Counter[tuple[int, str, tuple[str, ...]]] = Counter()
    for side, rows, others in ((1, only[0], only[1]), (2, only[1], only[0])):
        indices: list[dict[tuple[object, ...], Key]] = [
            {_values(table.keys[other], names): table.keys[other] for other in reversed(others)}
            for names in _NEAREST
        ]
        for row in rows:
            key = table.keys[row]
            near = (
                index.get(_values(key, names))
                for names, index in zip(_NEAREST, indices, strict=True)
            )
            other = next(filter(None, near), None)
            unlike = [name for name in FIELDS if other and _unlike(key, other, name)]
            if other is None or not 0 < len(unlike) <= _MOST_UNLIKE:
                counts[side, table.gone.get(row, "not measured on the other side"), ()] += 1
                continue
            pair = (key, other) if side == 1 else (other, key)
            reason = ", ".join(
                f"{name} {' against '.join(_shown(getattr(each, name)) for each in pair)}"
                for name in unlike
            )
            counts[side, reason, tuple(unlike)] += 1
    return tuple(
        NotCompared(side=side, reason=reason, unlike=unlike, quantities=count)
        for (side, reason, unlike), count in counts.most_common()
    )


def _values(key: Key, names: Sequence[str]) -> tuple[object, ...]:
    return tuple(getattr(key, name) for name in names)


def _unlike(key: Key, other: Key, name: str) -> bool:
    return name != "quantity" and getattr(key, name) != getattr(other, name)


def _shown(value: object) -> str:
    return repr(value) if value in {"", None} else str(value)
