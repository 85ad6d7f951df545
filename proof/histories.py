"""Histories of simulated nights, judged by the product: compared, over time, and by a baseline.

From the file of records on all is the product: store, choice of sides, join, statistics, words;
steps, drifts, events; what is known to be good, bounds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from fabricproof.core.measure import Verdict
from fabricproof.history.baseline.file import keyed
from fabricproof.history.baseline.freeze import Ask, freeze
from fabricproof.history.compare.comparison import Asked, compare_sides
from fabricproof.history.compare.model import Comparison
from fabricproof.history.compare.sides import History, choose_side
from fabricproof.history.machines import Machines
from fabricproof.history.stats.shifts import Change
from fabricproof.history.store import Key, Store
from fabricproof.history.trend.find import Question, find_trend
from fabricproof.history.trend.model import Trend
from fabricproof.verdict.references import Baseline, BaselineRow
from fabricproof.verdict.value import judge_value
from proof.machine.model import ModelMachine
from proof.nights import (
    SITE,
    SIZES,
    MadeNight,
    Place,
    Slow,
    Touches,
    night_of,
    run_id_of,
    together,
    write_nights,
)

#: nodes of the machine, all pairs of which are measured
NODES = 4

#: nights on each side, of a history, and of a baseline
SIDE, HISTORY, LEARNT = 7, 20, 10

#: nights on each side that can never be BETTER or WORSE
FEW = 3

#: nights on either side of a step at least, and of one that is taken back; nights at the end that
#: gave no number
LEAST_SIDE, SILENT = 6, 3

#: what share of the time others took before they took more
OTHERS_BEFORE = 0.02

#: from which message size on a firmware is slow, bytes
LONG_BYTES = 64 * 1024


class HistoryEffect(StrEnum):
    """How a history is made, and which part of the product is asked."""

    SIDES_NOTHING = "sides_nothing"
    SIDES_NOISY = "sides_noisy"
    SIDES_DISTURBED = "sides_disturbed"
    SIDES_FIRMWARE = "sides_firmware"
    SIDES_RAIL = "sides_rail"
    SIDES_LONG = "sides_long"
    SIDES_FEW = "sides_few"
    SIDES_ONE = "sides_one"
    SIDES_SILENT = "sides_silent"
    TREND_NOTHING = "trend_nothing"
    TREND_NOISY = "trend_noisy"
    TREND_DISTURBED = "trend_disturbed"
    TREND_SHUFFLED = "trend_shuffled"
    TREND_ONE_NIGHT = "trend_one_night"
    TREND_STEP = "trend_step"
    TREND_BACK = "trend_back"
    TREND_LAST = "trend_last"
    TREND_TWO = "trend_two"
    TREND_TOGETHER = "trend_together"
    TREND_DRIFT = "trend_drift"
    TREND_SILENT = "trend_silent"
    BASELINE_NOTHING = "baseline_nothing"
    BASELINE_NOISY = "baseline_noisy"
    BASELINE_RAIL = "baseline_rail"
    BASELINE_SICK = "baseline_sick"
    BASELINE_SICK_THIRD = "baseline_sick_third"


#: nights at the end of a history in which a rail is slow
NEWEST = {HistoryEffect.TREND_LAST: 1, HistoryEffect.TREND_TWO: 2}


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the product said of a history.

    Attributes:
        word: WORSE, SAME ... of ``compare`` and ``trend``; FAIL or PASS of a night that a baseline
            judges.
        is_in_place: what is slow was named, and nothing else.
    """

    word: str
    is_in_place: bool
    said: str


def tell(effect: HistoryEffect, strength: float, machine: ModelMachine) -> Told:
    """Make a history and have it judged.

    Args:
        effect: what is made.
        strength: of what is wrong; of a noisy one, how many times as much numbers scatter.
        machine: of the model.
    """
    judge = _JUDGES[effect.partition("_")[0]]
    with tempfile.TemporaryDirectory() as folder:
        return judge(effect, strength, machine, Path(folder))


def _rail_of(machine: ModelMachine) -> str:
    return machine.fabric.rails[-1]


def _on_rail(machine: ModelMachine) -> Touches:
    return lambda place: place[0] == _rail_of(machine)


def _everywhere(_: Place) -> bool:
    return True


def _is_long(place: tuple[str, tuple[str, ...], str, int]) -> bool:
    return place[3] >= LONG_BYTES


# --- two sides


def _sides(effect: HistoryEffect, strength: float, machine: ModelMachine, folder: Path) -> Told:
    before, after = sides_of(effect, strength, machine)
    found = compare_nights(folder, before, after)
    touched = _touched(effect, machine)
    moved = [
        each for each in found.quantities if each.shift.change in {Change.WORSE, Change.BETTER}
    ]
    outside = [
        each
        for each in moved
        if each.shift.change is Change.BETTER
        or not touched((each.key.rails, (), "", each.key.message_size or 0))
    ]
    return Told(
        word=found.overall.value,
        is_in_place=bool(moved) and not outside,
        said="; ".join((f"{found.overall.value}: {found.reason}", *found.warnings)),
    )


def _touched(effect: HistoryEffect, machine: ModelMachine) -> Touches:
    if effect is HistoryEffect.SIDES_LONG:
        return _is_long
    if effect in {HistoryEffect.SIDES_RAIL, HistoryEffect.SIDES_FEW}:
        return _on_rail(machine)
    if effect is HistoryEffect.SIDES_ONE:
        one = _rail_of(machine), machine.nodes[:2]
        return lambda place: (place[0], place[1], place[3]) == (*one, SIZES[-1])
    return lambda _: False


def sides_of(
    effect: HistoryEffect, strength: float, machine: ModelMachine, num: int = SIDE
) -> tuple[list[MadeNight], list[MadeNight]]:
    """Draw ``num`` nights before a change and as many after it."""
    num = FEW if effect in {HistoryEffect.SIDES_FEW, HistoryEffect.SIDES_ONE} else num
    scatter = strength if effect is HistoryEffect.SIDES_NOISY else 1.0
    slow = Slow(by=strength, touches=_touched(effect, machine))
    if effect is HistoryEffect.SIDES_DISTURBED:
        slow = Slow(by=strength, touches=_everywhere)
    before = [night_of(machine, scatter=scatter) for _ in range(num)]
    after = [night_of(machine, slow, scatter=scatter) for _ in range(num)]
    if effect in {HistoryEffect.SIDES_FIRMWARE, HistoryEffect.SIDES_LONG}:
        after = [replace(each, firmware="20.41.2000") for each in after]
    if effect is HistoryEffect.SIDES_DISTURBED:
        before = [replace(each, others=OTHERS_BEFORE) for each in before]
        after = [replace(each, others=OTHERS_BEFORE + strength) for each in after]
    if effect is HistoryEffect.SIDES_SILENT:
        after = [replace(each, silent=_rail_of(machine)) for each in after]
    return before, after


def compare_nights(
    perflogs: Path,
    before: Sequence[MadeNight],
    after: Sequence[MadeNight],
    *,
    across: Sequence[str] = (),
) -> Comparison:
    """Write nights below an empty folder as their jobs would, and compare the two sides.

    Args:
        perflogs: the folder.
        before: of the first side.
        after: of the second.
        across: fields in which numbers may differ.
    """
    store = write_nights(perflogs, [*before, *after])
    history = History(runs=store.runs, machines=Machines.of_site(perflogs, SITE))
    first, second = (
        choose_side(",".join(run_id_of(each) for each in numbers), history)
        for numbers in (range(len(before)), range(len(before), len(before) + len(after)))
    )
    return compare_sides(store, history, first, second, Asked(across=tuple(across)))


# --- over time


def _trend(effect: HistoryEffect, strength: float, machine: ModelMachine, folder: Path) -> Told:
    at = machine.chance.randrange(LEAST_SIDE, HISTORY - 2 * LEAST_SIDE + 1)
    nights = history_of(effect, strength, machine, at)
    found = trend_of(folder, nights)
    first = HISTORY - NEWEST[effect] if effect in NEWEST else at
    return Told(
        word=_word(found),
        is_in_place=_names(found, _rail_of(machine), first),
        said="; ".join(
            (
                *(each.sentence for each in found.events),
                *(f"drift of {each.key.label}" for each in found.drifts),
                *found.silent,
            )
        ),
    )


def _word(found: Trend) -> str:
    if found.is_worse_now:
        return Change.WORSE.value
    if found.looks_worse_now:
        return Change.UNDECIDED.value
    return Change.BETTER.value if found.events or found.drifts else Change.SAME.value


def _names(found: Trend, rail: str, at: int) -> bool:
    """Tell whether all that is told is of one rail, and the largest event begins with night ``at``.

    A single row may be told a night off: of intervals of 95 % one in twenty does not hold.
    """
    keys = [step.key for event in found.events for step in event.steps]
    keys += [each.key for each in found.drifts]
    events = sorted(
        (each for each in found.events if each.worse), key=lambda each: -len(each.steps)
    )
    begun = {each.run.run_id for each in events[:1]}
    is_all = all(each.rails == rail for each in keys) and all(rail in each for each in found.silent)
    return bool(keys or found.silent) and is_all and begun <= {run_id_of(at)}


def history_of(
    effect: HistoryEffect, strength: float, machine: ModelMachine, at: int
) -> list[MadeNight]:
    """Draw a history of :data:`HISTORY` nights.

    Args:
        effect: what becomes of a rail.
        strength: how slow it is; of a noisy history, how many times as much numbers scatter.
        machine: of the model.
        at: first night of it, where there is one.
    """
    scatter = strength if effect is HistoryEffect.TREND_NOISY else 1.0
    parts = [_part(effect, number, at) for number in range(HISTORY)]
    touches = _everywhere if effect is HistoryEffect.TREND_DISTURBED else _on_rail(machine)
    nights = [
        night_of(machine, Slow(by=strength * part, touches=touches), scatter=scatter)
        for part in parts
    ]
    if effect is HistoryEffect.TREND_DISTURBED:
        nights = [
            replace(each, others=OTHERS_BEFORE + strength * part)
            for each, part in zip(nights, parts, strict=True)
        ]
    if effect is HistoryEffect.TREND_TOGETHER:
        nights = together(nights, strength, machine.chance)
    if effect is HistoryEffect.TREND_SHUFFLED:
        machine.chance.shuffle(nights)
    if effect is HistoryEffect.TREND_SILENT:
        rail = _rail_of(machine)
        nights[-SILENT:] = [replace(each, silent=rail) for each in nights[-SILENT:]]
    return nights


def _part(effect: HistoryEffect, number: int, at: int) -> float:
    """Return which part of the fault there is in a night."""
    match effect:
        case (
            HistoryEffect.TREND_STEP | HistoryEffect.TREND_SHUFFLED | HistoryEffect.TREND_DISTURBED
        ):
            return float(number >= at)
        case HistoryEffect.TREND_ONE_NIGHT:
            return float(number == at)
        case HistoryEffect.TREND_BACK:
            return float(at <= number < at + LEAST_SIDE)
        case HistoryEffect.TREND_LAST | HistoryEffect.TREND_TWO:
            return float(number >= HISTORY - NEWEST[effect])
        case HistoryEffect.TREND_DRIFT:
            return number / (HISTORY - 1)
        case _:
            return 0.0


def trend_of(perflogs: Path, nights: Sequence[MadeNight]) -> Trend:
    """Write nights below an empty folder as their jobs would, and ask what changed over them."""
    store = write_nights(perflogs, nights)
    return find_trend(store, Question(), Machines.of_site(perflogs, SITE))


# --- by a baseline


def _baseline(effect: HistoryEffect, strength: float, machine: ModelMachine, folder: Path) -> Told:
    """Freeze nights and have one judged: red is what is beyond its bound at both looks."""
    sick = {HistoryEffect.BASELINE_SICK: 1, HistoryEffect.BASELINE_SICK_THIRD: 3}.get(effect, 0)
    slow = Slow(by=strength, touches=_on_rail(machine))
    scatter = 1.0
    if effect in {HistoryEffect.BASELINE_NOTHING, HistoryEffect.BASELINE_NOISY}:
        scatter, slow = strength, Slow()
    nights = [
        night_of(machine, slow if number < sick else Slow(), scatter=scatter)
        for number in range(LEARNT)
    ]
    machine.chance.shuffle(nights)
    looks = [night_of(machine, slow, scatter=scatter, again=again) for again in (False, True)]
    store, learnt = freeze_nights(folder, nights, looks)
    limits = keyed(learnt)
    red, again = (_red(store, number, limits) for number in (LEARNT, LEARNT + 1))
    twice = sorted(red & again)
    return Told(
        word=(Verdict.FAIL if twice else Verdict.PASS).value,
        is_in_place=bool(twice) and {rail for _, rail, _ in twice} == {_rail_of(machine)},
        said=f"{len(red)} red at the first look, {len(twice)} at both: {twice[:2]}",
    )


def _red(store: Store, number: int, limits: Mapping[Key, BaselineRow]) -> set[tuple[str, str, str]]:
    """Return what is beyond its bound in a night: leg, rails, quantity."""
    matrix = store.matrix([run_id_of(number)])
    return {
        (key.label, key.rails, key.quantity)
        for key, (value,) in zip(matrix.keys, matrix.values.tolist(), strict=True)
        if value > 0
        and (limit := limits.get(key))
        and judge_value(
            name=key.quantity,
            value=value,
            unit=key.unit,
            message_size=key.message_size,
            reference=limit.reference("proof"),
        ).verdict
        is Verdict.FAIL
    }


def freeze_nights(
    perflogs: Path, nights: Sequence[MadeNight], later: Sequence[MadeNight] = ()
) -> tuple[Store, Baseline]:
    """Write nights below an empty folder, and freeze all but the later ones."""
    store = write_nights(perflogs, [*nights, *later])
    ask = Ask(name="proof", frozen="2026-01-11T00:00:00Z", command="baseline freeze proof")
    machines = Machines.of_site(perflogs, SITE)
    return store, freeze(store, map(run_id_of, range(len(nights))), machines, ask)


_JUDGES: Mapping[str, Callable[[HistoryEffect, float, ModelMachine, Path], Told]] = {
    "sides": _sides,
    "trend": _trend,
    "baseline": _baseline,
}
