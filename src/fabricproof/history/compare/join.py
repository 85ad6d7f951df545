"""The numbers of both sides in one table, like joined with like, and what has no like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key, size_label
from fabricproof.history.compare.model import NothingComparedError, SideError, typed
from fabricproof.history.compare.sides import ChosenSide
from fabricproof.history.gone import gone_after
from fabricproof.history.store import FIELDS, Key, Run, Store, no_samples
from fabricproof.verdict.value import ERROR_UNIT

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]
    Rows = npt.NDArray[np.intp]

#: fields of a key that ``--across`` may let differ; the others say what is measured
MAY_DIFFER = frozenset(FIELDS) - {"site", "quantity", "unit", "message_size", "better", "named"}


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which quantities are compared, by patterns as in a shell; an empty field means all.

    Attributes:
        rail: a rail that the leg went over.
        node: a node of the leg.
        pair: ``vc1,vc3``: exactly these nodes; one name: every set with it.
        program: ``osu_bw``.
        size: message sizes in bytes.
    """

    check: tuple[str, ...] = ()
    stack: tuple[str, ...] = ()
    rail: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    size: tuple[int, ...] = ()

    def takes(self, key: Key) -> bool:
        """Tell whether a quantity is to be compared."""
        return (
            _fits(self.check, key.check)
            and _fits(self.stack, key.stack)
            and _fits(self.rail, *key.rails.split(","))
            and _fits(self.program, key.program)
            and _fits(self.node, *key.nodes.split(","))
            and (not self.pair or any(_is_pair(each, key.nodes) for each in self.pair))
            and (not self.size or key.message_size in self.size)
        )

    @property
    def is_all(self) -> bool:
        """Whether nothing is filtered."""
        return not any(getattr(self, each.name) for each in fields(self))

    @property
    def asked(self) -> Mapping[str, tuple[str, ...]]:
        """Key to its patterns as they are typed; what is not filtered by is not there."""
        of_name = {each.name: getattr(self, each.name) for each in fields(self)}
        of_name["size"] = tuple(map(size_label, self.size))
        return {name: values for name, values in of_name.items() if values}


def _fits(patterns: Sequence[str], *words: str) -> bool:
    return not patterns or any(fnmatchcase(word, each) for word in words for each in patterns)


def _is_pair(asked: str, nodes: str) -> bool:
    wanted, there = set(asked.split(",")), set(nodes.split(","))
    return wanted == there if len(wanted) > 1 else wanted <= there


@dataclass(frozen=True, kw_only=True)
class JoinedRows:
    """Every quantity that either side has.

    Attributes:
        keys: one for each row.
        values: shape (keys, columns), NaN where there is no usable number; columns of the first
            side, then of the second, each oldest first.
        is_second: for each column.
        words: verdict words of each row; of a baseline none.
        set_aside: row -> (column, reason) of numbers that were measured and are not used.
        gone: rows that the first side has and the second lacks, and in how many of its runs.
    """

    keys: tuple[Key, ...]
    values: Values
    run_ids: tuple[str, ...]
    is_second: tuple[bool, ...]
    words: tuple[tuple[str, ...], ...]
    set_aside: Mapping[int, list[tuple[int, str]]] = field(default_factory=dict)
    gone: Mapping[int, str] = field(default_factory=dict)

    @property
    def num_first(self) -> int:
        """How many columns are of the first side."""
        return self.is_second.count(False)


@dataclass(frozen=True, kw_only=True)
class _Half:
    """What one side has; columns in the order of its runs."""

    keys: tuple[Key, ...]
    values: Values
    words: tuple[tuple[str, ...], ...]
    run_ids: tuple[str, ...]
    set_aside: tuple[tuple[int, int, str], ...] = ()


def gather(
    store: Store,
    first: ChosenSide,
    second: ChosenSide,
    *,
    across: Sequence[str],
    filters: Filters,
) -> JoinedRows:
    """Return the numbers of both sides.

    Raises:
        SideError: a field of ``across`` that says what is measured, or that there is not.
        NothingComparedError: a filter leaves nothing.
    """
    _refuse_across(across)
    if first.samples is None and second.samples is None:
        table = _one_table(store, first.side.runs, second.side.runs, across)
    else:
        table = _two_halves(*(_half(store, each, across) for each in (first, second)))
    apart = no_samples(store.labels)
    columns = [at for at, each in enumerate(table.run_ids) if each in apart]
    gone = gone_after(table.keys, table.values, table.words, table.num_first, columns)
    table = replace(table, gone=gone)
    return table if filters.is_all else _filtered(table, filters)


def _refuse_across(across: Sequence[str]) -> None:
    for name in across:
        if name not in MAY_DIFFER:
            raise SideError(
                f"--across {name}: numbers that differ in it are never alike"
                if name in FIELDS
                else f"--across {name}: no field of a quantity",
                expected=f"one of {', '.join(sorted(MAY_DIFFER))}",
            )


def _one_table(
    store: Store,
    first: Sequence[Run],
    second: Sequence[Run],
    across: Sequence[str],
) -> JoinedRows:
    of_second = {each.run_id for each in second}
    matrix = store.matrix([each.run_id for each in (*first, *second)], across=across)
    is_second = np.array([each.run_id in of_second for each in matrix.runs], dtype=bool)
    order = np.argsort(is_second, kind="stable")
    at = {int(old): new for new, old in enumerate(order)}
    aside = by_key((row, (at[column], reason)) for row, column, reason in matrix.set_aside)
    is_sorted = bool((order == np.arange(len(order))).all())
    columns = order.tolist()
    return JoinedRows(
        keys=matrix.keys,
        values=matrix.values[:, order],
        run_ids=tuple(matrix.runs[each].run_id for each in columns),
        is_second=tuple(bool(is_second[each]) for each in columns),
        words=matrix.verdicts
        if is_sorted
        else tuple(tuple(row[each] for each in columns) for row in matrix.verdicts),
        set_aside=aside,
    )


def _half(store: Store, chosen: ChosenSide, across: Sequence[str]) -> _Half:
    """Return one side by itself, of which the other is a baseline, or which is one."""
    if chosen.samples is not None:
        return _of_baseline(chosen.samples, across)
    matrix = store.matrix([each.run_id for each in chosen.side.runs], across=across)
    return _Half(
        keys=matrix.keys,
        values=matrix.values,
        words=matrix.verdicts,
        run_ids=tuple(each.run_id for each in matrix.runs),
        set_aside=matrix.set_aside,
    )


def _of_baseline(samples: Mapping[Key, Mapping[str, float]], across: Sequence[str]) -> _Half:
    run_ids = tuple(sorted({run_id for each in samples.values() for run_id in each}))
    column = {run_id: index for index, run_id in enumerate(run_ids)}
    stars: dict[str, Any] = dict.fromkeys(across, "*")
    found = by_key((replace(key, **stars), values) for key, values in samples.items())
    table = np.full((len(found), len(run_ids)), np.nan)
    for row, several in enumerate(found.values()):
        for run_id in {each for values in several for each in values}:
            numbers = [values[run_id] for values in several if run_id in values]
            table[row, column[run_id]] = np.median(numbers)
    return _Half(keys=tuple(found), values=table, words=((),) * len(found), run_ids=run_ids)


def _two_halves(first: _Half, second: _Half) -> JoinedRows:
    place = {key: row for row, key in enumerate(first.keys)}
    for key in second.keys:
        place.setdefault(key, len(place))
    split = len(first.run_ids)
    values = np.full((len(place), split + len(second.run_ids)), np.nan)
    values[: len(first.keys), :split] = first.values
    rows = [place[key] for key in second.keys]
    values[rows, split:] = second.values
    words = list(first.words) + [()] * (len(place) - len(first.keys))
    for row, more in zip(rows, second.words, strict=True):
        words[row] = (*(words[row] or ("",) * split), *more)
    aside = by_key(
        (
            *((row, (column, reason)) for row, column, reason in first.set_aside),
            *((rows[row], (column + split, reason)) for row, column, reason in second.set_aside),
        )
    )
    return JoinedRows(
        keys=tuple(place),
        values=values,
        run_ids=(*first.run_ids, *second.run_ids),
        is_second=(False,) * split + (True,) * len(second.run_ids),
        words=tuple(words),
        set_aside=aside,
    )


def _filtered(table: JoinedRows, filters: Filters) -> JoinedRows:
    rows = [row for row, key in enumerate(table.keys) if filters.takes(key)]
    if not rows:
        raise _nothing_left(table.keys, filters)
    return JoinedRows(
        keys=tuple(table.keys[row] for row in rows),
        values=table.values[rows],
        run_ids=table.run_ids,
        is_second=table.is_second,
        words=tuple(table.words[row] for row in rows),
        set_aside={
            new: table.set_aside[row] for new, row in enumerate(rows) if row in table.set_aside
        },
        gone={new: table.gone[row] for new, row in enumerate(rows) if row in table.gone},
    )


def _nothing_left(keys: Sequence[Key], filters: Filters) -> NothingComparedError:
    known = {
        "check": {key.check for key in keys},
        "stack": {key.stack for key in keys},
        "rail": {rail for key in keys for rail in key.rails.split(",") if rail},
        "node": {node for key in keys for node in key.nodes.split(",") if node},
        "pair": {key.nodes for key in keys if key.nodes},
        "program": {key.program for key in keys},
    }
    for name, values in known.items():
        asked = Filters(**{name: getattr(filters, name)})
        if not asked.is_all and not any(asked.takes(key) for key in keys):
            return NothingComparedError(
                f"nothing was measured with {typed(name, getattr(filters, name))}",
                expected=f"one of: {', '.join(sorted(values)[:12])}",
            )
    sizes = sorted({key.message_size for key in keys if key.message_size is not None})
    return NothingComparedError(
        "nothing was measured that passes all the filters together",
        expected=f"sizes such as {', '.join(map(size_label, sizes[:12]))}" if sizes else None,
        next_step="leave one --only out",
    )


@dataclass(frozen=True, kw_only=True)
class Joined:
    """The rows that both sides have, and the rest.

    Attributes:
        rows: of the table, both sides have a number and more or less of it is better.
        only_first: rows that have a usable number on the first side only.
        directionless: how many rows both have of which nobody can say what is better.
    """

    rows: Rows
    only_first: Rows
    only_second: Rows
    directionless: int


def join(table: JoinedRows) -> Joined:
    """Return which rows both sides have."""
    usable = np.isfinite(table.values)
    split = table.num_first
    here, there = usable[:, :split].any(axis=1), usable[:, split:].any(axis=1)
    directed = np.array([key.better != 0 for key in table.keys], dtype=bool)
    # Rates of errors, most of them zero, make no ratios: see error_notes.
    speeds = np.array([key.unit != ERROR_UNIT for key in table.keys], dtype=bool)
    return Joined(
        rows=np.flatnonzero(here & there & directed),
        only_first=np.flatnonzero(here & ~there & speeds),
        only_second=np.flatnonzero(there & ~here & speeds),
        directionless=int((here & there & ~directed & speeds).sum()),
    )


def error_notes(table: JoinedRows) -> list[str]:
    """Return a sentence for each rate of errors that is red in more runs of one side.

    The judge has held each run's events against what may be lost; here only runs are counted.
    """
    split, found = table.num_first, []
    for key, words in _words_of_errors(table).items():
        sides = words[:split], words[split:]
        red = [side.count(Verdict.FAIL.value) for side in sides]
        of = [sum(map(bool, side)) for side in sides]
        if all(of) and red[0] * of[1] != red[1] * of[0]:
            found.append(
                f"{key.quantity} of {key.check} {key.leg} ({key.stack}): red in {red[0]} of "
                f"{of[0]} runs of the first side, in {red[1]} of {of[1]} of the second"
            )
    return found


def _words_of_errors(table: JoinedRows) -> dict[Key, list[str]]:
    """Return the verdict words of each rate of errors in each column.

    A quiet rate is recorded as a number beside the others, and one that is red as one that carries
    a verdict (``named``): two rows of one rate.
    """
    found: dict[Key, list[str]] = {}
    for key, words in zip(table.keys, table.words, strict=False):
        if key.unit != ERROR_UNIT:
            continue
        merged = found.setdefault(replace(key, named=True), [""] * len(table.run_ids))
        for at, word in enumerate(words):
            if merged[at] != Verdict.FAIL.value and word:
                merged[at] = word
    return found
