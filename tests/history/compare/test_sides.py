"""Every way in which a side can be called, and what is said where a name means nothing."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import Made, node_facts

from fabricproof.history.compare.model import NothingComparedError, SideError
from fabricproof.history.compare.sides import History, choose_side, is_value
from fabricproof.history.machines import Machines
from fabricproof.history.store import Run


def history(folder: Path, days: tuple[int, ...] = (1, 2, 3, 10, 11), **more: Any) -> History:
    """Return a history without numbers: sides are chosen from runs alone."""
    runs = tuple(
        Run(
            run_id=f"202611{day:02}T213000Z-{day:06x}",
            start=datetime.datetime(2026, 11, day, 21, 30, tzinfo=datetime.UTC),
            builds={"openmpi5": "51af25" if day < 10 else "8ed94e"},
        )
        for day in days
    )
    return History(runs=runs, machines=Machines(folder=folder), **more)


def days_of(words: str, among: History) -> list[int]:
    """Return the days of the runs that ``words`` mean."""
    return [each.start.day for each in choose_side(words, among).side.runs]


@pytest.mark.parametrize(
    ("words", "days"),
    [
        ("latest", [11]),
        ("latest~0", [11]),
        ("latest~3", [2]),
        ("last:2", [10, 11]),
        ("last:2@2026-11-03", [2, 3]),
        ("2026-11-02", [2]),
        ("2026-11-02T21:30", [2]),
        ("2026-11-02..2026-11-10", [2, 3, 10]),
        ("2026-11-03..", [3, 10, 11]),
        ("..2026-11-02", [1, 2]),
        ("20261103", [3]),
        ("20261103T213000Z-000003", [3]),
        ("before", [1, 3]),
        ("label:before", [1, 3]),
        ("before,latest", [1, 3, 11]),
        ("2026-11-01,2026-11-01..2026-11-02", [1, 2]),
    ],
)
def test_every_form_of_a_side(tmp_path: Path, words: str, days: list[int]) -> None:
    """Each form means exactly these runs, oldest first and once."""
    labelled = {"before": ("20261103T213000Z-000003", "20261101T213000Z-000001")}
    assert days_of(words, history(tmp_path, labels=labelled)) == days


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        ("befored", SideError, "before"),
        ("nonsense", SideError, "latest~3"),
        ("", SideError, "empty name"),
        ("latest,,latest", SideError, "empty name"),
        ("2026110", SideError, "3 runs begin so"),
        ("2027", SideError, "nothing is called so"),
        ("latest~9", NothingComparedError, "5 runs"),
        ("last:0", NothingComparedError, "an empty side"),
        ("last:3@2026-10-01", NothingComparedError, "before the end of 2026-10-01"),
        ("2026-12-01..", NothingComparedError, "runs from 2026-11-01"),
        ("2026-11-05..2026-11-02", SideError, "ends before it begins"),
        ("9999-12-31", SideError, "no date"),
        ("..9999-12-31", SideError, "no date"),
        ("last:5@9999-12-31", SideError, "no date"),
        (f"latest~{'9' * 5000}", SideError, "nothing is called so"),
        ("2026-13-05..", SideError, "no date"),
        ("baseline:x", NothingComparedError, "an empty side"),
        ("=5", SideError, "nothing is called so"),
    ],
)
def test_what_means_nothing_is_refused_in_one_sentence(
    tmp_path: Path, words: str, error: type[Exception], says: str
) -> None:
    """An unknown, ambiguous or empty side names what there is instead."""
    with pytest.raises(error, match=says):
        choose_side(words, history(tmp_path, labels={"before": ("20261103T213000Z-000003",)}))


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("nothing", "fabricproof runs --site here"),
        ("last:0", "fabricproof runs --site here"),
        ("2026111", "fabricproof runs --site here   # say more of it"),
    ],
)
def test_a_command_that_is_proposed_finds_the_site_again(
    tmp_path: Path, words: str, command: str
) -> None:
    with pytest.raises((SideError, NothingComparedError)) as found:
        choose_side(words, history(tmp_path, site="here"))
    assert found.value.next_step == command


def facts_history(folder: Path, **states: Mapping[str, Any]) -> History:
    """Return three runs with inventories: before, after, and one with both."""
    made = Made(folder)
    made.run(1, facts=node_facts())
    made.run(2, facts=node_facts(firmware="28.41.1000"))
    made.run(3, facts={"n1": node_facts(firmware="28.41.1000"), "n2": node_facts()})
    made.run(4, facts={"n1": None, "n2": node_facts(), "n3": node_facts()})
    made.run(5, facts=node_facts(rail1_mtu=1400))
    return made.history(made.store())


@pytest.mark.parametrize(
    ("words", "days"),
    [
        ("firmware=28.41", [2]),
        ("firmware=28.41.1000", [2]),
        ("rail0.firmware=28.41", [2]),
        ("n1:firmware=28.41", [2, 3]),
        ("n2:rail1.firmware=28.39", [1, 3, 4, 5]),
        ("rail1.mtu=1400", [5]),
        ("rail1.MTU=1400", [5]),
        ("speed=100000", [1, 2, 3, 5]),
        ("kernel=6.1.0", [1, 2, 3, 5]),
    ],
)
def test_a_value_of_the_inventory_chooses_runs(tmp_path: Path, words: str, days: list[int]) -> None:
    """Every node that took part, or the one that is named, has the value."""
    assert days_of(words, facts_history(tmp_path)) == days


def test_mixed_and_unseen_runs_are_on_no_side_and_said(tmp_path: Path) -> None:
    """A run in which one node has the old firmware is neither old nor new."""
    chosen = choose_side("firmware=28.39", facts_history(tmp_path))
    assert [each.start.day for each in chosen.side.runs] == [1, 5]
    assert any("passed over, its nodes were unlike" in each for each in chosen.notes)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("firmwar=28.39", "firmware"),
        ("rail9.firmware=28.39", "rail0"),
        ("n9:firmware=28.39", "n1"),
        ("firmware=99", "28.39.1002"),
    ],
)
def test_an_unknown_value_names_the_nearest(tmp_path: Path, words: str, says: str) -> None:
    """A typing error in node, part, fact or value is answered with those there are."""
    with pytest.raises((SideError, NothingComparedError), match=says):
        choose_side(words, facts_history(tmp_path))


def test_a_value_that_only_one_node_has_asks_for_the_node(tmp_path: Path) -> None:
    """Where no run has it on all nodes, the message says how to ask for one node."""
    made = Made(tmp_path)
    made.run(1, facts={"n1": node_facts(firmware="28.41"), "n2": node_facts(), "n3": node_facts()})
    with pytest.raises(NothingComparedError, match=r"NODE:firmware=28\.41"):
        choose_side("firmware=28.41", made.history(made.store()))


@pytest.mark.parametrize(
    ("asked", "value", "same"),
    [
        ("28.39", "28.39.1002", True),
        ("28.3", "28.39.1002", False),
        ("28.39", "28.390", False),
        ("100", "100", True),
        ("1e5", "100000", True),
        ("up", "UP", True),
        ("1", "x", False),
    ],
)
def test_a_version_is_met_at_its_points_only(asked: str, value: str, same: bool) -> None:
    """28.3 is not the beginning of version 28.39."""
    assert is_value(asked, value) is same


@given(st.text(max_size=30))
def test_any_text_is_a_side_or_an_error_of_ours(text: str) -> None:
    """No word that somebody types ends in anything but runs or a sentence."""
    among = history(Path("nowhere"))
    try:
        found = choose_side(text, among)
    except (SideError, NothingComparedError):
        return
    assert found.side.runs


@pytest.mark.parametrize("label", ["night-look", "admit"])
def test_what_is_no_sample_is_on_a_side_only_where_it_is_named(tmp_path: Path, label: str) -> None:
    """What was measured because it was red, or because a node was repaired, is of no night."""
    among = history(tmp_path, labels={label: ("20261110T213000Z-00000a",)})
    assert days_of("last:2", among) == [3, 11]
    assert days_of("2026-11-03..", among) == [3, 11]
    assert days_of("latest~1", among) == [3]
    assert days_of(label, among) == [10]
    assert days_of("20261110T213000Z-00000a", among) == [10]
