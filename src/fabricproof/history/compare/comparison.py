"""A comparison from its two sides to its last word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fabricproof.core.units import counted, first_few
from fabricproof.history.compare import verdict
from fabricproof.history.compare.changes import find_changes
from fabricproof.history.compare.doubts import doubts, lag_of
from fabricproof.history.compare.groups import (
    KINDS,
    Members,
    Place,
    group_rows,
    group_values,
    homes,
)
from fabricproof.history.compare.model import (
    Compared,
    Comparison,
    Group,
    NotCompared,
    NothingComparedError,
    Side,
    SideError,
)
from fabricproof.history.compare.sides import ChosenSide, History
from fabricproof.history.compare.table import Frame, Only, not_compared, table_of
from fabricproof.history.stats.shifts import ALPHA, Change, Shift, compare_rows
from fabricproof.history.store import Store
from fabricproof.history.store.model import MARGINS, class_of, metric_of, numbered
from fabricproof.history.surroundings import (
    Beside,
    around_group,
    around_quantity,
    beside,
    taken_from,
)

#: of which nothing may vanish between the sides unsaid; a program or check may not have been asked
_PLACES = frozenset({"rail", "pair", "node", "stack"})

#: changes of groups of which one is at least this share of the other are alike
_ALIKE = 0.8

_SURENESS = {Change.WORSE: 0, Change.BETTER: 1, Change.UNDECIDED: 2, Change.SAME: 3}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How two sides are to be compared.

    Attributes:
        across: fields of the key in which numbers may differ.
        only: which quantities count: key to its patterns.
        margins: metric to the smallest change that matters, as a fraction.
        alpha: the rate of comparisons without any change in which one word would be wrong.
    """

    across: tuple[str, ...] = ()
    only: Only = field(default_factory=dict)
    margins: Mapping[str, float] = field(default_factory=lambda: dict(MARGINS))
    alpha: float = ALPHA

    @property
    def options(self) -> tuple[str, ...]:
        """As they are typed, filters and defaults left out."""
        told = [word for name in self.across for word in ("--across", name)]
        for metric, margin in self.margins.items():
            if margin != MARGINS.get(metric):
                told += ["--margin", f"{metric.replace(' ', '-')}={margin * 100:g}%"]
        return (*told, *(["--alpha", f"{self.alpha:g}"] if self.alpha != ALPHA else []))


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """What shares one error rate: the quantities of both sides, then their groups."""

    table: Frame
    groups: Sequence[Members]
    shifts: Sequence[Shift]
    excused: Mapping[int, Beside]
    """Rows that were BETTER or WORSE and are UNDECIDED: what others took of either side."""

    @property
    def of_quantities(self) -> Sequence[Shift]:
        return self.shifts[: len(self.table.keys)]

    def label(self, at: int) -> str:
        split = len(self.table.keys)
        return self.table.keys[at].label if at < split else self.groups[at - split].label


def compare_sides(
    store: Store, history: History, first: ChosenSide, second: ChosenSide, asked: Asked
) -> Comparison:
    """Return everything that can be said of two sides.

    Raises:
        SideError: the sides share runs, or ``across`` names no field.
        NothingComparedError: a side is empty, or the sides have nothing in common.
    """
    sides = first.side, second.side
    _refuse_overlap(*sides)
    table = table_of(store, sides[0].runs, sides[1].runs, asked.across, asked.only)
    apart = not_compared(table)
    both = table.rows(first=True, second=True)
    directed = [row for row in both if table.keys[row].better]
    if not directed:
        raise _nothing_in_common(apart, (first, second))
    rows = _rows(store, table.take(directed), asked)
    quantities = _quantities(rows)
    suspects = {
        row
        for row, each in enumerate(quantities)
        if verdict.looks_worse(each, asked.margins[metric_of(each.key)])
    }
    groups = tuple(_groups(table, rows, suspects))
    ordered = sorted(
        (quantities[row] for row in suspects), key=lambda each: (not each.key.named, each.shift.p)
    )
    slight = tuple(_slight(groups, quantities, asked.alpha))
    word, reason = verdict.overall(
        quantities,
        groups,
        suspects=ordered,
        gone=[f"{table.keys[row].label}: {why}" for row, why in table.gone.items()],
        uncompared=_uncompared(table, directed),
        excused=[f"{rows.label(at)}: {each.said()}" for at, each in rows.excused.items()],
        slight=slight,
    )
    changes, differing = find_changes(*sides, history.machines)
    told = doubts(table, rows.table, rows.of_quantities, sides, asked.alpha)
    warnings = (*first.notes, *second.notes, *told, *differing)
    if facts := len(both) - len(directed):
        about = f"{facts} quantities have no better or worse: the inventory compares them"
        warnings = (*warnings, about)
    return Comparison(
        site=table.keys[0].site,
        first=sides[0],
        second=sides[1],
        overall=word,
        reason=reason,
        quantities=tuple(sorted(quantities, key=_rank)),
        groups=groups,
        changes=changes,
        warnings=tuple(dict.fromkeys((*warnings, *history.machines.notes, *store.notes))),
        not_compared=apart,
        alpha=asked.alpha,
        margins=dict(asked.margins),
        suspects=tuple(ordered),
        slight=slight,
        more_runs=verdict.more_runs(groups, ordered),
        filters={name: patterns for name, patterns in asked.only.items() if patterns},
        options=asked.options,
        disturbed=next((each.disturbed for each in rows.excused.values()), ""),
    )


def _refuse_overlap(first: Side, second: Side) -> None:
    ids = [{run.run_id for run in side.runs} for side in (first, second)]
    if shared := sorted(ids[0] & ids[1]):
        raise SideError(
            f"{counted(len(shared), 'run')} on both sides: {first_few(shared, 5)}",
            expected=f"no run of {first.words!r} in {second.words!r}",
            next_step="narrow one side: a shorter range, or the part of a fact "
            "(rail1.mtu=1400, vc2:firmware=28.39)",
        )


def _rows(store: Store, table: Frame, asked: Asked) -> _Rows:
    """Return what became of all rows, from one test: one error rate over all."""
    groups = group_rows(table.keys)
    kinds = [class_of(key) for key in table.keys]
    values = np.concatenate([table.values, group_values(table.values, groups, numbered(kinds))])
    margins = [asked.margins[metric_of(key)] for key in table.keys]
    margins += [asked.margins[each.metric] for each in groups]
    better = [*(key.better for key in table.keys), *(each.better for each in groups)]
    shifts = compare_rows(
        values,
        [at >= table.num_first for at in range(len(table.run_ids))],
        better=better,
        margins=margins,
        classes=numbered([*kinds, *(("group", each.metric, each.band) for each in groups)]),
        alpha=asked.alpha,
        lag=lag_of(table),
    )
    changed = [at for at, each in enumerate(shifts) if each.change in {Change.WORSE, Change.BETTER}]
    excused: dict[int, Beside] = {}
    taken = taken_from(store, table.run_ids, across=asked.across) if changed else {}
    for at in changed:
        # The numbers of a group are shares of what is typical, and no times.
        in_us, num_nodes = False, 2
        if at < len(table.keys):
            key = table.keys[at]
            seen = around_quantity(taken, key, table.run_ids)
            in_us, num_nodes = key.unit == "us", key.nodes.count(",") + 1
        else:
            members = (table.keys[row] for row in groups[at - len(table.keys)].rows)
            seen = around_group([around_quantity(taken, key, table.run_ids) for key in members])
        others = beside(seen, values[at].tolist(), table.num_first, num_nodes)
        ratio = shifts[at].ratio
        if others and ratio and others.explains(ratio, better[at], margins[at], in_us=in_us):
            excused[at] = others
            # No number of runs beside the others would decide it.
            shifts[at] = replace(shifts[at], change=Change.UNDECIDED, more_runs=None)
    return _Rows(table=table, groups=groups, shifts=shifts, excused=excused)


def _quantities(rows: _Rows) -> list[Compared]:
    table, split = rows.table, rows.table.num_first
    found: list[Compared] = []
    usable = np.isfinite(table.values)
    numbers = table.values.tolist()
    for at, (key, shift) in enumerate(zip(table.keys, rows.of_quantities, strict=True)):
        others, aside = rows.excused.get(at), table.set_aside.get(at, ())
        columns = np.flatnonzero(usable[at]).tolist()
        notes = [f"no change but of what others did: {others.said()}"] if others else []
        notes += [f"{len(aside)} numbers set aside: {aside[0]}"] if aside else []
        if shift.scatter is not None:
            more = "more" if shift.scatter > 1 else "less"
            notes.append(f"scatters {more}, {shift.scatter:.2g} times as much")
        found.append(
            Compared(
                key=key,
                shift=shift,
                first={table.run_ids[each]: numbers[at][each] for each in columns if each < split},
                second={
                    table.run_ids[each]: numbers[at][each] for each in columns if each >= split
                },
                note="; ".join(notes),
            )
        )
    return found


def _rank(each: Compared) -> tuple[object, ...]:
    """The surest worsening first; named quantities before points of a curve."""
    shift = each.shift
    off = 0.0 if shift.ratio is None else (shift.ratio - 1) * each.key.better
    return (_SURENESS[shift.change], not each.key.named, off if off < 0 else shift.p, off)


def _groups(table: Frame, rows: _Rows, suspects: set[int]) -> Iterator[Group]:
    """Yield all groups, those of which nothing is left on the second side too."""
    # Each place by itself, for one of several may be in the table.
    lost = group_rows([table.keys[row] for row in table.gone], merged=False)
    gone = {_place(each, each.places[0]): each for each in lost}
    words = [each.change for each in rows.of_quantities]
    found: list[tuple[Members, Shift | None]] = list(
        zip(rows.groups, rows.shifts[len(words) :], strict=True)
    )
    there = {_place(each, at) for each, _ in found for at in each.places}
    found += [(each, None) for place, each in gone.items() if place not in there]
    found.sort(key=lambda each: KINDS.index(each[0].places[0][0]))
    numbers = {id(each): at for at, each in enumerate(rows.groups, start=len(words))}
    for members, shift in found:
        inside = members.rows if shift else ()
        counts = Counter(words[at] for at in inside)
        num_suspects = sum(at in suspects for at in inside)
        missing = max(
            (len(gone[place].rows) for at in members.places
             if (place := _place(members, at)) in gone),
            default=0,
        )  # fmt: skip
        excused = [at for at in (numbers.get(id(members), -1), *inside) if at in rows.excused]
        change = verdict.group_change(
            shift.change if shift else None,
            counts,
            suspects=num_suspects,
            lost=missing,
            excused=bool(excused),
        )
        sentence = verdict.group_sentence(change, shift, counts, num_suspects, missing)
        if excused and change is Change.UNDECIDED:
            sentence = f"{rows.excused[excused[0]].said()}; {sentence}"
        (kind, name), *others = members.places
        yield Group(
            kind=kind,
            name=name,
            metric=members.metric,
            change=change,
            shift=shift,
            counts={word: counts.get(word, 0) for word in Change},
            sentence=sentence if shift else f"all {missing} gave no number after",
            better=members.better,
            band=members.band,
            also=tuple(" ".join(each) for each in others),
        )


def _place(members: Members, place: Place) -> tuple[object, ...]:
    return place, members.metric, members.band


def _slight(groups: Sequence[Group], quantities: Sequence[Compared], alpha: float) -> Iterator[str]:
    """Yield what is surely worse by less than its margin, the largest group that is so first."""
    slight = [e for e in groups if e.shift and verdict.is_slight(e.shift, e.better, alpha)]
    off = {id(each): abs(((each.shift and each.shift.ratio) or 1) - 1) for each in slight}
    most = max(off.values(), default=0.0)
    # Not the whole, of which a rail lost twice as much; nor a pair, if all pairs lost alike.
    slight.sort(key=lambda each: (off[id(each)] < _ALIKE * most, -sum(each.counts.values())))
    rows = [(f"{each.what} of {each.where}", each.shift, each.better) for each in slight]
    rows += [
        (each.key.label, each.shift, each.key.better)
        for each in quantities
        if verdict.is_slight(each.shift, each.key.better, alpha)
    ]
    for label, shift, better in rows:
        if shift and shift.ratio and shift.low and shift.high:
            least, most = sorted(100 * abs(each - 1) for each in (shift.low, shift.high))
            word = "lower" if better > 0 else "higher"
            by = f"{100 * abs(shift.ratio - 1):.1f} % ({least:.1f} to {most:.1f})"
            yield f"{label} {word} by {by}"


def _uncompared(table: Frame, directed: Sequence[int]) -> list[str]:
    """Return the rails, pairs, nodes and stacks of which a metric has no like after."""

    def places(row: int) -> list[tuple[str, Place]]:
        key = table.keys[row]
        return [(metric_of(key), each) for each in homes(key) if each[0] in _PLACES]

    there = {each for row in directed for each in places(row)}
    gone = [row for row in table.rows(first=True, second=False) if table.keys[row].better]
    lost = dict.fromkeys(each for row in gone for each in places(row) if each not in there)
    return [f"{metric} of {' '.join(place)}" for metric, place in lost]


def _nothing_in_common(
    apart: Sequence[NotCompared], chosen: tuple[ChosenSide, ChosenSide]
) -> NothingComparedError:
    here, there = (sum(each.quantities for each in apart if each.side == of) for of in (1, 2))
    if not here or not there:
        empty = chosen[1] if here else chosen[0]
        return NothingComparedError(
            f"no usable number on the side {empty.side.words!r}",
            expected="a run that measured something",
            next_step="fabricproof runs",
        )
    fields = Counter(name for each in apart for name in each.unlike)
    step = "choose runs of the same checks: fabricproof runs"
    if fields:
        across = " ".join(f"--across {name}" for name, _ in fields.most_common(3))
        step = f"if that difference is what you ask about: {across}"
    return NothingComparedError(
        "the sides have no quantity in common",
        expected="the same check, stack, build, nodes and settings on both",
        got=f"{here} quantities against {there}; {apart[0].reason}",
        next_step=step,
    )
