"""Two sides of simulated nights, compared by the product: words, and laws that they keep."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fabricproof.history.compare.model import Comparison
from fabricproof.history.stats.shifts import Change
from fabricproof.proof.compared import (
    RIGHT,
    SidesChange,
    SidesNight,
    SidesTry,
    compare_nights,
    compare_try,
    nights_of,
)
from fabricproof.proof.figures import of_sides
from fabricproof.proof.library import FABRICS
from fabricproof.proof.machine.model import ModelMachine, NoiseKind

MIRRORED = {Change.WORSE: Change.BETTER, Change.BETTER: Change.WORSE}

Nights = list[SidesNight]


def drawn(
    change: SidesChange, seed: int = 0, nodes: tuple[str, ...] = ("n1", "n2", "n3")
) -> tuple[Nights, Nights]:
    """Return five nights before a change and five after it."""
    machine = ModelMachine(
        fabric=FABRICS["verbs"],
        nodes=nodes,
        chance=random.Random(seed),
        noise=list(NoiseKind)[seed % len(NoiseKind)],
    )
    return nights_of(machine, change, 5)


def words(found: Comparison) -> dict[str, Change]:
    """Return the word of every quantity, and of every group that has a row of its own."""
    told = {each.key.label: each.shift.change for each in found.quantities}
    rows = {f"{each.where} {each.what}": each.shift for each in found.groups}
    return told | {name: shift.change for name, shift in rows.items() if shift}


@pytest.mark.parametrize("change", SidesChange)
def test_a_change_has_its_word_and_none_has_none(change: SidesChange) -> None:
    assert compare_try(change, 3).word in RIGHT[change]


@pytest.mark.parametrize("change", [SidesChange.RAIL, SidesChange.LONG])
def test_sides_swapped_mirror_the_words(tmp_path: Path, change: SidesChange) -> None:
    before, after = drawn(change)
    there = words(compare_nights(tmp_path / "there", before, after))
    back = words(compare_nights(tmp_path / "back", after, before))
    assert back == {name: MIRRORED.get(word, word) for name, word in there.items()}
    assert Change.WORSE in there.values()


@pytest.mark.parametrize("seed", range(2))
def test_runs_shuffled_within_a_side_change_nothing(tmp_path: Path, seed: int) -> None:
    before, after = drawn(SidesChange.LONG, seed)
    there = compare_nights(tmp_path / "there", before, after)
    random.Random(seed).shuffle(before)
    random.Random(seed + 1).shuffle(after)
    again = compare_nights(tmp_path / "again", before, after)
    assert words(again) == words(there)
    assert (again.overall, again.reason) == (there.overall, there.reason)


def test_nodes_renamed_change_nothing_but_names(tmp_path: Path) -> None:
    """The new names stand in another order than the old ones."""
    new = {"n1": "z9", "n2": "a1", "n3": "m5"}
    there = compare_nights(tmp_path / "there", *drawn(SidesChange.RAIL))
    again = compare_nights(tmp_path / "again", *drawn(SidesChange.RAIL, nodes=tuple(new.values())))
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


def test_figures_say_the_first_word_that_is_not_right() -> None:
    tries = [
        SidesTry(change="nothing", seed=0, fabric="verbs", noise="stalls", word="SAME"),
        SidesTry(
            change="nothing", seed=1, fabric="verbs", noise="stalls", word="WORSE", said="WORSE: x"
        ),
    ]
    found = of_sides(SidesChange.NOTHING, tries)
    assert (found.right.hits, found.right.of, found.words[Change.WORSE].hits) == (1, 2, 1)
    assert found.first_bad == "seed 1 (verbs, stalls): WORSE: x"


@pytest.mark.parametrize(("wrong", "kept"), [(2, True), (40, False)])
def test_more_false_words_than_promised_are_noticed(wrong: int, kept: bool) -> None:
    tries = [
        SidesTry(
            change="nothing", seed=n, fabric="verbs", noise="stalls",
            word="WORSE" if n < wrong else "SAME", said="x" if n < wrong else "",
        )
        for n in range(100)
    ]  # fmt: skip
    assert of_sides(SidesChange.NOTHING, tries).is_as_promised is kept


def test_a_real_change_that_was_missed_once_is_noticed() -> None:
    one = SidesTry(
        change=SidesChange.RAIL.value, seed=0, fabric="verbs", noise="stalls", word="SAME",
        said="SAME: x",
    )  # fmt: skip
    assert not of_sides(SidesChange.RAIL, [one]).is_as_promised
