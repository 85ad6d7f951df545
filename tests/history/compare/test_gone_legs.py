"""A leg that runs left no record of is no SAME; parts that come in turn leave nothing out."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from made import SITE, Made

from fabricproof.history.compare.model import Comparison
from fabricproof.history.compare.table import Only
from fabricproof.history.stats.shifts import Change

#: day, rail, nodes
Absent = Callable[[int, str, list[str]], bool]

PAIR = ["n1", "n3"]

RAILS = ("rail0", "rail1", "rail2")

#: all pairs of four nodes, as three rounds of which each node has one partner
ROUNDS = ((("n1", "n2"), ("n3", "n4")), (("n1", "n3"), ("n2", "n4")), (("n1", "n4"), ("n2", "n3")))


def compared(
    folder: Path, absent: Absent, *, first: int = 8, only: Only | None = None
) -> Comparison:
    """Return ``first`` runs against the eight after them, without the records of what is absent."""
    made = Made(perflogs=folder, noise=0.003)
    for day in range(1, first + 9):
        made.run(day, nodes=("n1", "n2", "n3", "n4"), rails=RAILS, metrics=("bandwidth",))
    made.lines = [
        each
        for each in made.lines
        if not absent(int(each["run_id"][6:8]), each["leg"], each["nodes"])
    ]
    sides = f"2026-11-01..2026-11-{first:02}", f"2026-11-{first + 1:02}..2026-11-{first + 8:02}"
    return made.compare(*sides, only=only or {})


def on(days: Collection[int], rail: str = "") -> Absent:
    """Return that a pair is absent on some days, on one rail or on all."""
    return lambda day, leg, nodes: day in days and nodes == PAIR and rail in {"", leg}


@pytest.mark.parametrize(
    ("days", "rail", "count"),
    [
        ((9, 11, 14, 15, 16), "rail1", 5),
        ((9, 11), "rail1", 2),
        ((16,), "rail1", 1),
        ((15, 16), "", 2),
        (range(9, 17), "rail1", 8),
        ((2, 9, 11, 13), "rail1", 3),
    ],
)
def test_a_leg_without_a_record_is_no_same(
    tmp_path: Path, days: Collection[int], rail: str, count: int
) -> None:
    """In several runs, in the last one, in all; one rail of a pair, or the pair."""
    found = compared(tmp_path, on(days, rail))
    assert found.overall is Change.UNDECIDED
    first = rail or "rail0"
    assert f"openmpi5 osu_bw {first} bandwidth" in found.reason
    assert f"n1 - n3: no number in {count} of 8 runs of the second side" in found.reason
    words = {(each.kind, each.name): each.change for each in found.groups}
    assert words["pair", "n1 - n3"] is Change.UNDECIDED
    assert words["pair", "n1 - n2"] is Change.SAME


@pytest.mark.parametrize("only", [{"pair": ("n1,n3",)}, {"rail": ("rail1",)}])
def test_who_asks_for_the_leg_alone_hears_of_it(tmp_path: Path, only: Only) -> None:
    """The others of its check are looked at before they are filtered away."""
    found = compared(tmp_path, on((15, 16), "rail1"), only=only)
    assert found.overall is Change.UNDECIDED
    assert "n1 - n3: no number in 2 of 8 runs of the second side" in found.reason


def test_of_another_pair_nothing_is_said_of_it(tmp_path: Path) -> None:
    """What was asked for has all its records."""
    found = compared(tmp_path, on((15, 16)), only={"pair": ("n1,n2",)})
    assert found.overall is Change.SAME


def _pairs_in_turn(day: int, _leg: str, nodes: list[str]) -> bool:
    return tuple(nodes) not in ROUNDS[day % 3]


def _odd_pairs(day: int, leg: str, nodes: list[str]) -> bool:
    """Tell whether a day has another pair: one of the four nodes is busy, and not always one."""
    rest = [f"n{number}" for number in range(1, 5) if number != day % 4 + 1]
    return nodes != rest[:2] and (nodes != PAIR or day % 5 > 0) and bool(leg)


@pytest.mark.parametrize(
    "absent",
    [
        lambda *_: False,
        lambda day, leg, _: leg != RAILS[day % 3],
        lambda day, leg, _: leg == RAILS[day % 3],
        _pairs_in_turn,
        _odd_pairs,
        lambda day, leg, nodes: day % 4 > 0 and (leg == "rail1" or "n4" in nodes),
        on((11,), "rail1"),
        on((2, 5, 9, 12), "rail1"),
        on((3, 4, 8), "rail1"),
    ],
)
def test_what_comes_in_turn_leaves_nothing_out(tmp_path: Path, absent: Absent) -> None:
    """Rails or pairs in turn, a longer run now and then, one mishap, as many as before, fewer."""
    found = compared(tmp_path, absent)
    assert "no number" not in found.reason


def test_second_looks_leave_out_what_was_not_red(tmp_path: Path) -> None:
    """They are on a side by their label, and repeat parts of nights."""
    made = Made(perflogs=tmp_path, noise=0.003)
    ids = [made.run(day) for day in range(1, 17)]
    made.lines = [
        each for each in made.lines if each["run_id"] not in ids[-4:] or each["leg"] == "rail1"
    ]
    made.store()
    with (tmp_path / SITE / "labels.jsonl").open("w", encoding="utf-8") as file:
        for run_id in ids[-4:]:
            record = {"format": 1, "label": "night-look", "run_id": run_id, "given": True}
            file.write(json.dumps(record) + "\n")
    found = made.compare("2026-11-01..2026-11-08", "2026-11-09..2026-11-12,night-look")
    assert "no number" not in found.reason
