"""A comparison from its two sides to its last word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from fabricproof.history.compare import doubts, verdict
from fabricproof.history.compare.changes import find_changes
from fabricproof.history.compare.doubts import unpaired
from fabricproof.history.compare.groups import KINDS, Members, group_rows, group_values, homes
from fabricproof.history.compare.join import Filters, Joined, JoinedRows, error_notes, gather, join
from fabricproof.history.compare.model import (
    Compared,
    Comparison,
    FieldChange,
    Group,
    NothingComparedError,
    Side,
    Unpaired,
    grouped,
)
from fabricproof.history.compare.sides import ChosenSide, History
from fabricproof.history.stats.shifts import ALPHA, Change, Shift, compare_rows
from fabricproof.history.store import Key, Store
from fabricproof.history.store.model import MARGINS, class_of, metric_of, numbered
from fabricproof.history.surroundings import (
    Beside,
    LegOfRun,
    Taken,
    around_group,
    around_quantity,
    beside,
    taken_from,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

#: of which nothing may vanish between the sides unsaid; a program or check may not have been asked
_PLACES = frozenset({"rail", "pair", "node", "stack"})

_SURENESS = {Change.WORSE: 0, Change.BETTER: 1, Change.UNDECIDED: 2, Change.SAME: 3}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How two sides are to be compared.

    Attributes:
        across: fields of the key in which numbers may differ.
        filters: which quantities count.
        margins: metric to the smallest change that matters, as a fraction.
        alpha: the rate of comparisons without any change in which one word would be wrong.
    """

    across: tuple[str, ...] = ()
    filters: Filters = field(default_factory=Filters)
    margins: Mapping[str, float] = field(default_factory=lambda: dict(MARGINS))
    alpha: float = ALPHA

    @property
    def options(self) -> tuple[str, ...]:
        """As they are typed, filters and defaults left out."""
        margins = (
            f"{metric.replace(' ', '-')}={margin * 100:g}%"
            for metric, margin in self.margins.items()
            if margin != MARGINS.get(metric)
        )
        typed = {"--across": self.across, "--margin": margins}
        told = [
            word for name, several in typed.items() for each in several for word in (name, each)
        ]
        return (*told, *(["--alpha", f"{self.alpha:g}"] if self.alpha != ALPHA else []))


@dataclass(frozen=True, kw_only=True)
class _Family:
    """All rows that share one error rate: quantities, then groups."""

    keys: tuple[Key, ...]
    values: Values
    groups: list[Members]
    group_values: Values
    shifts: list[Shift]
    explained: Mapping[int, Beside] = field(default_factory=dict)
    """Rows that were BETTER or WORSE and are UNDECIDED: what others took of either side."""


def compare_sides(
    store: Store, history: History, first: ChosenSide, second: ChosenSide, asked: Asked
) -> Comparison:
    """Return everything that can be said of two sides.

    Raises:
        SideError: the sides share runs, or ``across`` names no field.
        NothingComparedError: a side is empty, or the sides have nothing in common.
    """
    sides = first.side, second.side
    doubts.refuse_overlap(*sides)
    table = gather(store, first, second, across=asked.across, filters=asked.filters)
    joined = join(table)
    apart = unpaired(table, joined)
    if not len(joined.rows):
        raise _nothing_in_common(apart, joined, sides)
    family = _without_others(store, table, _family(table, joined, asked), asked)
    changes, differing = find_changes(*sides, history.machines)
    warnings = _warnings(table, joined, family, asked, (first, second), differing)
    notes = (*warnings, *dict.fromkeys(history.machines.notes), *store.notes)
    return _told(table, joined, family, asked, sides, apart, changes, notes)


def _family(table: JoinedRows, joined: Joined, asked: Asked) -> _Family:
    """Return all rows with what became of them, from one call: one error rate over all."""
    keys = tuple(table.keys[row] for row in joined.rows.tolist())
    values = table.values[joined.rows]
    groups = group_rows(keys)
    of_quantities = list(map(class_of, keys))
    of_groups = group_values(values, groups, numbered(of_quantities))
    kinds = [*of_quantities, *(("group", each.metric, each.band) for each in groups)]
    metrics = [*map(metric_of, keys), *(each.metric for each in groups)]
    shifts = compare_rows(
        np.concatenate([values, of_groups]),
        table.is_second,
        better=[*(key.better for key in keys), *(each.better for each in groups)],
        margins=[asked.margins[each] for each in metrics],
        classes=numbered(kinds),
        alpha=asked.alpha,
    )
    return _Family(keys=keys, values=values, groups=groups, group_values=of_groups, shifts=shifts)


def _without_others(store: Store, table: JoinedRows, family: _Family, asked: Asked) -> _Family:
    """Return the family, UNDECIDED where what others took of one side explains a change."""
    changed = {Change.BETTER, Change.WORSE}
    if not any(each.change in changed for each in family.shifts):
        return family
    taken = taken_from(store, table.run_ids, across=asked.across)
    explained: dict[int, Beside] = {}
    for at, shift in enumerate(family.shifts):
        if shift.change not in changed or shift.ratio is None:
            continue
        others = _beside(taken, table, family, at)
        row = _row(family, at)
        metric = metric_of(row) if isinstance(row, Key) else row.metric
        # The numbers of a group are shares of what is typical, and no times.
        in_us = isinstance(row, Key) and row.unit == "us"
        if others and others.explains(shift.ratio, row.better, asked.margins[metric], in_us=in_us):
            explained[at] = others
    # No number of runs beside the others would decide it.
    shifts = [
        replace(shift, change=Change.UNDECIDED, more_runs=None) if at in explained else shift
        for at, shift in enumerate(family.shifts)
    ]
    return replace(family, shifts=shifts, explained=explained)


def _row(family: _Family, at: int) -> Key | Members:
    here = at - len(family.keys)
    return family.keys[at] if here < 0 else family.groups[here]


def _beside(
    taken: Mapping[LegOfRun, Taken], table: JoinedRows, family: _Family, at: int
) -> Beside | None:
    row, runs = _row(family, at), table.run_ids
    if isinstance(row, Key):
        seen, numbers = around_quantity(taken, row, runs), family.values[at].tolist()
        return beside(seen, numbers, table.num_first, row.nodes.count(",") + 1)
    keys = (family.keys[each] for each in row.rows.tolist())
    seen = around_group([around_quantity(taken, key, runs) for key in keys])
    numbers = family.group_values[at - len(family.keys)].tolist()
    return beside(seen, numbers, table.num_first)


def _told(
    table: JoinedRows,
    joined: Joined,
    family: _Family,
    asked: Asked,
    sides: tuple[Side, Side],
    apart: tuple[Unpaired, ...],
    changes: tuple[FieldChange, ...],
    warnings: tuple[str, ...],
) -> Comparison:
    quantities = _quantities(table, joined, family)
    suspect = {
        row
        for row, each in enumerate(quantities)
        if verdict.looks_worse(each, asked.margins[metric_of(each.key)])
    }
    groups = _groups(table, family, suspect)
    ranked = sorted(quantities, key=_rank)
    suspects = sorted(
        (quantities[row] for row in suspect), key=lambda each: (not each.key.named, each.shift.p)
    )
    word = verdict.overall(
        quantities,
        groups,
        suspects=suspects,
        gone=[f"{table.keys[row].label}: {why}" for row, why in table.gone.items()],
        uncompared=_uncompared(table, joined),
        explained=[f"{_label(family, at)}: {each.said()}" for at, each in family.explained.items()],
    )
    return Comparison(
        site=family.keys[0].site,
        first=sides[0],
        second=sides[1],
        overall=word.change,
        reason=word.reason,
        quantities=tuple(ranked),
        groups=groups,
        changes=changes,
        warnings=warnings,
        unpaired=apart,
        alpha=asked.alpha,
        margins=dict(asked.margins),
        directionless=joined.directionless,
        suspects=tuple(suspects),
        more_runs=verdict.more_runs(groups, suspects),
        filters=asked.filters.asked,
        options=asked.options,
        disturbed=next((each.disturbed for each in family.explained.values()), ""),
    )


def _quantities(table: JoinedRows, joined: Joined, family: _Family) -> list[Compared]:
    split = table.num_first
    usable = np.isfinite(family.values)
    found: list[Compared] = []
    for at, (row, key, numbers, there, shift) in enumerate(zip(
        joined.rows.tolist(), family.keys, family.values.tolist(), usable, family.shifts,
        strict=False,
    )):  # fmt: skip
        others = family.explained.get(at)
        columns = np.flatnonzero(there).tolist()
        found.append(
            Compared(
                key=key,
                shift=shift,
                first={table.run_ids[each]: numbers[each] for each in columns if each < split},
                second={table.run_ids[each]: numbers[each] for each in columns if each >= split},
                note=verdict.note(
                    shift, table.set_aside.get(row, []), others.said() if others else ""
                ),
            )
        )
    return found


def _rank(each: Compared) -> tuple[object, ...]:
    """The surest worsening first; named quantities before points of a curve."""
    shift = each.shift
    off = 0.0 if shift.ratio is None else (shift.ratio - 1) * each.key.better
    return (_SURENESS[shift.change], not each.key.named, off if off < 0 else shift.p, off)


def _groups(table: JoinedRows, family: _Family, suspect: set[int]) -> tuple[Group, ...]:
    # Each place by itself, for one may be in the table.
    keys = [table.keys[row] for row in table.gone]
    gone = {each.places[0]: each for each in group_rows(keys, merged=False)}
    words = [each.change for each in family.shifts[: len(family.keys)]]
    found: list[Group] = []
    for at, members in enumerate(family.groups, start=len(family.keys)):
        row = family.shifts[at]
        rows = members.rows.tolist()
        counts = Counter(words[at] for at in rows)
        suspects = sum(at in suspect for at in rows)
        missing = max((len(gone[each].rows) for each in members.places if each in gone), default=0)
        explained = [each for each in (at, *rows) if each in family.explained]
        change = verdict.group_change(
            row.change, counts, suspects=suspects, lost=missing, explained=bool(explained)
        )
        sentence = verdict.group_sentence(change, row, counts, suspects, missing)
        if explained and change is Change.UNDECIDED:
            sentence = f"{family.explained[explained[0]].said()}; {sentence}"
        found.append(
            Group(
                kind=members.kind,
                name=members.name,
                metric=members.metric,
                change=change,
                shift=row,
                counts={word: counts.get(word, 0) for word in Change},
                sentence=sentence,
                better=members.better,
                band=members.band,
                also=members.also,
            )
        )
    there = {place for each in family.groups for place in each.places}
    found += [_wholly_lost(each) for place, each in gone.items() if place not in there]
    return tuple(sorted(found, key=lambda each: KINDS.index(each.kind)))


def _label(family: _Family, at: int) -> str:
    row = _row(family, at)
    return row.label if isinstance(row, Key) else f"{row.metric} of {row.kind} {row.name}"


def _uncompared(table: JoinedRows, joined: Joined) -> tuple[str, ...]:
    """Return the rails, pairs, nodes and stacks of which a metric has no like after."""

    def places(row: int) -> list[tuple[str, str, str]]:
        key = table.keys[row]
        return [(metric_of(key), *each) for each in homes(key) if each[0] in _PLACES]

    there = {each for row in joined.rows.tolist() for each in places(row)}
    gone = [row for row in joined.only_first.tolist() if table.keys[row].better]
    several = dict.fromkeys(each for row in gone for each in places(row) if each not in there)
    return tuple(f"{metric} of {kind} {name}" for metric, kind, name in several)


def _wholly_lost(members: Members) -> Group:
    """Return a group of which nothing is left to compare; its row says so."""
    return Group(
        kind=members.kind,
        name=members.name,
        metric=members.metric,
        change=Change.UNDECIDED,
        shift=None,
        counts=dict.fromkeys(Change, 0),
        sentence=f"all {len(members.rows)} gave no number on the second side",
        better=members.better,
        band=members.band,
        also=members.also,
    )


def _warnings(
    table: JoinedRows,
    joined: Joined,
    family: _Family,
    asked: Asked,
    chosen: tuple[ChosenSide, ChosenSide],
    differing: tuple[str, ...],
) -> tuple[str, ...]:
    sides = chosen[0].side, chosen[1].side
    split = table.num_first
    told = [each for one in chosen for each in one.notes]
    told += error_notes(table)
    told += differing
    counts = split, len(table.run_ids) - split
    told += doubts.few_notes(counts, sides)
    told += doubts.unreachable_notes(counts, asked.alpha)
    told += doubts.order_notes(*sides)
    told += doubts.scatter_notes(family.keys, family.shifts[: len(family.keys)])
    aside = [why for several in table.set_aside.values() for _, why in several]
    if aside:
        told.append(f"{len(aside)} numbers set aside as no measurements, first: {aside[0]}")
    if joined.directionless:
        told.append(
            f"{joined.directionless} quantities on both sides have no better or worse (states, "
            "rates of links): not tested, the inventory compares them"
        )
    if asked.across:
        told.append(f"numbers of unlike {', '.join(asked.across)} stand against each other")
    return tuple(dict.fromkeys(told))


def _nothing_in_common(
    apart: Sequence[Unpaired],
    joined: Joined,
    sides: tuple[Side, Side],
) -> NothingComparedError:
    here, there = len(joined.only_first), len(joined.only_second)
    if not here or not there:
        empty = sides[1] if here else sides[0]
        return NothingComparedError(
            f"no usable number on the side {empty.words!r}",
            expected="a run that measured something",
            got=f"{joined.directionless} quantities without better or worse"
            * bool(joined.directionless)
            or None,
            next_step="fabricproof runs",
        )
    reasons = grouped(apart)
    fields = Counter(name for _, _, unlike, _ in reasons for name in unlike)
    step = "choose runs of the same checks: fabricproof runs"
    if fields:
        step = " ".join(f"--across {name}" for name, _ in fields.most_common(3))
        step = f"if that difference is what you ask about: {step}"
    return NothingComparedError(
        "the sides have no quantity in common",
        expected="the same check, stack, build, nodes and settings on both",
        got=f"{here} quantities against {there}; {reasons[0][1]}",
        next_step=step,
    )
