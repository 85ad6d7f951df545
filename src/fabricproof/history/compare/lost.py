"""Why a quantity has no like on the other side, and what was lost between the sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.compare.join import Joined, Table
from fabricproof.history.compare.model import Unpaired
from fabricproof.history.store import FIELDS, Key

if TYPE_CHECKING:
    import numpy.typing as npt

    Rows = npt.NDArray[np.intp]

#: what stays alike when the nearest quantity of the other side is looked for, closest first
_NEAREST: tuple[tuple[str, ...], ...] = (
    ("stack", "suite", "program", "check", "leg", "quantity", "nodes"),
    ("stack", "program", "check", "leg", "quantity"),
    ("program", "leg", "quantity", "nodes"),
    ("program", "quantity"),
)

#: in which two quantities of one name may be unlike
_TELLING = tuple(name for name in FIELDS if name not in {"site", "quantity"})

#: quantities unlike in more than this are no two states of one thing
_MOST_UNLIKE = 3

NOT_MEASURED = "not measured on the other side"

#: words of what was not due: all others are of a measurement that was made, or tried
_NOT_TRIED = frozenset({"", "SKIPPED"})

#: so many failures on the second side are no single mishap
_SEVERAL = 2


@dataclass(frozen=True, kw_only=True)
class Lost:
    """Quantities that the first side has and the second tried for in vain.

    Attributes:
        rows: of the table, without any usable number on the second side.
        often: rows of which most runs of the second side, or several, and fewer of the first, gave
            none.
        some: rows with fewer failures than that on the second side, and more than on the first.
    """

    rows: Mapping[int, str]
    often: Mapping[int, str]
    some: Mapping[int, str]


def find_lost(table: Table) -> Lost:
    """Return what was measured before and gave no usable number after: MISSING, INVALID, zero.

    A leg that ended before its first row has no nodes in its record: it stands for every set of
    nodes that the other runs measured it on.
    """
    split = table.num_first
    usable = np.isfinite(table.values)
    failed = _failed(table, usable)
    rows: dict[int, str] = {}
    often: dict[int, str] = {}
    some: dict[int, str] = {}
    for row in np.flatnonzero(failed[:, split:].any(axis=1) & usable[:, :split].any(axis=1)):
        bad, good = int(failed[row, split:].sum()), int(usable[row, split:].sum())
        before, was = int(failed[row, :split].sum()), int(usable[row, :split].sum())
        why = f"no usable number in {bad} of {bad + good} runs of the second side"
        why += f", {before} of {before + was} of the first"
        if not good:
            rows[int(row)] = why
        elif bad * (before + was) > before * (bad + good):
            (often if bad > good or bad >= _SEVERAL else some)[int(row)] = why
    return Lost(rows=rows, often=often, some=some)


def _failed(table: Table, usable: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return where a number was tried for in vain."""
    failed = np.zeros(usable.shape, dtype=bool)
    nowhere: dict[tuple[str, ...], set[int]] = {}
    for row in np.flatnonzero(~usable.all(axis=1)).tolist():
        words = table.words[row]
        columns = [
            at for at, word in enumerate(words) if word not in _NOT_TRIED and not usable[row, at]
        ]
        failed[row, columns] = True
        if not table.keys[row].nodes:
            nowhere.setdefault(_home(table.keys[row]), set()).update(columns)
    if nowhere:
        for row, key in enumerate(table.keys):
            columns = [at for at in nowhere.get(_home(key), ()) if not usable[row, at]]
            failed[row, columns] = True
    return failed


def _home(key: Key) -> tuple[str, ...]:
    return (key.partition, key.fabric, key.stack, key.program, key.check, key.leg, key.quantity)


def unpaired(table: Table, joined: Joined, lost: Lost) -> tuple[Unpaired, ...]:
    """Return what only one side has, and why: failed there, unlike in a field, not run.

    Args:
        table: of both sides.
        joined: of :func:`fabricproof.history.compare.join.join`.
        lost: of :func:`find_lost`.
    """
    sides = ((1, joined.only_first, joined.only_second), (2, joined.only_second, joined.only_first))
    return tuple(
        Unpaired(
            key=table.keys[row],
            side=side,
            reason=lost.rows[row] if side == 1 and row in lost.rows else reason,
            unlike=() if side == 1 and row in lost.rows else fields,
        )
        for side, rows, others in sides
        for row, reason, fields in _reasons(table.keys, rows.tolist(), others.tolist(), side)
    )


def _reasons(
    keys: Sequence[Key], rows: Iterable[int], others: Iterable[int], side: int
) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    indices: list[dict[tuple[object, ...], int]] = [{} for _ in _NEAREST]
    for other in others:
        for names, index in zip(_NEAREST, indices, strict=True):
            index.setdefault(_values(keys[other], names), other)
    for row in rows:
        near = next(
            (
                index[found]
                for names, index in zip(_NEAREST, indices, strict=True)
                if (found := _values(keys[row], names)) in index
            ),
            None,
        )
        fields = () if near is None else unlike_fields(keys[row], keys[near])
        if near is None or not 0 < len(fields) <= _MOST_UNLIKE:
            yield row, NOT_MEASURED, ()
        else:
            yield row, unlike(keys[row], keys[near], side), fields


def _values(key: Key, names: Iterable[str]) -> tuple[object, ...]:
    return tuple(getattr(key, name) for name in names)


def unlike(key: Key, other: Key, side: int = 1) -> str:
    """Return in what two quantities are unlike: ``build 51af against 8ed9``, first side first."""
    first, second = (key, other) if side == 1 else (other, key)
    return ", ".join(
        f"{name} {_shown(getattr(first, name))} against {_shown(getattr(second, name))}"
        for name in unlike_fields(first, second)
    )


def unlike_fields(key: Key, other: Key) -> tuple[str, ...]:
    """Return the fields in which two quantities are unlike."""
    return tuple(name for name in _TELLING if getattr(key, name) != getattr(other, name))


def _shown(value: object) -> str:
    return repr(value) if value in {"", None} else str(value)
