"""Simulated nights judged by the product: words, and laws that they keep."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.history.compare.model import Comparison
from fabricproof.history.stats.shifts import Change
from proof.figures import of_fault
from proof.histories import (
    HISTORY,
    HistoryEffect,
    compare_nights,
    history_of,
    sides_of,
    trend_of,
)
from proof.library import FABRICS, read_library
from proof.machine.model import ModelMachine, NoiseKind
from proof.nights import MadeNight, run_id_of
from proof.tries import Try, attempt

MIRRORED = {Change.WORSE: Change.BETTER, Change.BETTER: Change.WORSE}

Nights = list[MadeNight]

HISTORIES = [each for each in read_library() if each.is_history]
BY_TITLE = {each.title: each for each in HISTORIES}


def machine_of(seed: int = 0, nodes: tuple[str, ...] = ("n1", "n2", "n3")) -> ModelMachine:
    return ModelMachine(
        fabric=FABRICS["verbs"],
        nodes=nodes,
        chance=random.Random(seed),
        noise=list(NoiseKind)[seed % len(NoiseKind)],
    )


def drawn(
    effect: HistoryEffect, seed: int = 0, nodes: tuple[str, ...] = ("n1", "n2", "n3")
) -> tuple[Nights, Nights]:
    """Return five nights before a change of 10 % and five after it."""
    return sides_of(effect, 0.1, machine_of(seed, nodes), 5)


def words(found: Comparison) -> dict[str, Change]:
    """Return the word of every quantity, and of every group that has a row of its own."""
    told = {each.key.label: each.shift.change for each in found.quantities}
    rows = {f"{each.where} {each.what}": each.shift for each in found.groups}
    return told | {name: shift.change for name, shift in rows.items() if shift}


@pytest.mark.parametrize(
    "entry", [each for each in HISTORIES if each.must is not None], ids=lambda each: each.title
)
def test_a_history_has_its_word(entry):
    came = attempt(entry, entry.must, 3)
    assert (came.caught, came.blamed, came.worded, came.said) == (True, True, True, "")


def test_a_third_of_sick_nights_that_passed_is_a_state_of_the_machine():
    """No more than a quarter is set aside: such a baseline is blind, which is known."""
    entry = BY_TITLE["baseline frozen on a sick night, on three of ten, which passed"]
    assert attempt(entry, 0.08, 0).verdict == "PASS"


@pytest.mark.parametrize("effect", [HistoryEffect.SIDES_RAIL, HistoryEffect.SIDES_LONG])
def test_sides_swapped_mirror_the_words(tmp_path: Path, effect: HistoryEffect) -> None:
    before, after = drawn(effect)
    there = words(compare_nights(tmp_path / "there", before, after))
    back = words(compare_nights(tmp_path / "back", after, before))
    assert back == {name: MIRRORED.get(word, word) for name, word in there.items()}
    assert Change.WORSE in there.values()


@pytest.mark.parametrize("seed", range(2))
def test_runs_shuffled_within_a_side_change_nothing(tmp_path: Path, seed: int) -> None:
    before, after = drawn(HistoryEffect.SIDES_LONG, seed)
    there = compare_nights(tmp_path / "there", before, after)
    random.Random(seed).shuffle(before)
    random.Random(seed + 1).shuffle(after)
    again = compare_nights(tmp_path / "again", before, after)
    assert words(again) == words(there)
    assert (again.overall, again.reason) == (there.overall, there.reason)


def test_nodes_renamed_change_nothing_but_names(tmp_path: Path) -> None:
    """The new names stand in another order than the old ones."""
    new = {"n1": "z9", "n2": "a1", "n3": "m5"}
    effect = HistoryEffect.SIDES_RAIL
    there = compare_nights(tmp_path / "there", *drawn(effect))
    again = compare_nights(tmp_path / "again", *drawn(effect, nodes=tuple(new.values())))
    assert again.overall is there.overall

    def by_place(found: Comparison, names: dict[str, str]) -> dict[object, Change]:
        return {
            (
                each.key.rails,
                tuple(sorted(names.get(one, one) for one in each.key.nodes.split(","))),
                each.key.quantity,
            ): each.shift.change
            for each in found.quantities
        }

    assert by_place(there, new) == by_place(again, {})


def test_a_step_has_its_night_and_a_history_backwards_the_mirrored_one(tmp_path: Path) -> None:
    nights = history_of(HistoryEffect.TREND_STEP, 0.1, machine_of(), 8)
    there = trend_of(tmp_path / "there", nights)
    back = trend_of(tmp_path / "back", nights[::-1])
    (event,), (mirrored,) = there.events, back.events
    assert (event.run.run_id, event.worse) == (run_id_of(8), True)
    assert (mirrored.run.run_id, mirrored.worse) == (run_id_of(HISTORY - 8), False)


def test_a_history_shuffled_in_time_has_no_steps(tmp_path: Path) -> None:
    nights = history_of(HistoryEffect.TREND_STEP, 0.1, machine_of(), 10)
    random.Random(1).shuffle(nights)
    found = trend_of(tmp_path, nights)
    assert (found.events, found.drifts) == ((), ())


def tries_of(entry, wrong: int, of: int) -> list[Try]:
    return [
        Try(
            fault=entry.title,
            strength=entry.must,
            seed=number,
            fabric="verbs",
            noise="stalls" if number % 2 else "heavy tails",
            verdict="WORSE" if number < wrong else "SAME",
            caught=number >= wrong,
            blamed=number >= wrong,
            worded=number >= wrong,
            said="WORSE: x" if number < wrong else "",
        )
        for number in range(of)
    ]


@pytest.mark.parametrize(("wrong", "kept"), [(0, True), (2, True), (40, False)])
def test_more_false_words_than_promised_are_noticed(wrong: int, kept: bool) -> None:
    entry = BY_TITLE["nothing changed, two sides compared"]
    found = of_fault(entry, tries_of(entry, wrong, 100))
    assert found.is_as_promised is kept
    assert found.first_bad == ("seed 0 (verbs): WORSE: x" if wrong else "")


def test_where_nothing_may_be_wrong_one_miss_is_noticed() -> None:
    entry = replace(BY_TITLE["rail slower than it was, as a step"], wrong_at_most=0.0)
    assert not of_fault(entry, tries_of(entry, 1, 300)).is_as_promised
