"""Which legs are called silent: those that failed and are still planned, and no others."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from fabricproof.history.store import Key, Matrix, Run
from fabricproof.history.trend.silent import without_numbers

KEY = Key(
    site="s", partition="p", fabric="ib0", stack="openmpi5", build="*", suite="osu",
    program="osu_bw", tool_version="*", check="OsuBandwidth", leg="rail0", rails="rail0",
    nodes="n1,n2", settings="w=64", quantity="bandwidth_4MiB", unit="MB/s", message_size=4 << 20,
    better=1,
)  # fmt: skip

#: of a leg whose program printed nothing, and of which nobody saw a rank
NAMELESS = replace(KEY, unit="", message_size=None, better=0, settings="", nodes="")

RATIO = replace(KEY, leg="rail0.near_over_far", quantity="near_over_far", unit="x")

FIRST = datetime.datetime(2026, 11, 1, 22, tzinfo=datetime.UTC)


def made(rows: Sequence[tuple[Key, Mapping[int, str]]], count: int) -> Matrix:
    """Return a history: of each key the word in some runs, where PASS has a number."""
    runs = tuple(
        Run(run_id=f"r{at:02}", start=FIRST + at * datetime.timedelta(days=1))
        for at in range(count)
    )
    words = tuple(tuple(told.get(at, "") for at in range(count)) for _, told in rows)
    values = np.array([[100.0 if word == "PASS" else np.nan for word in row] for row in words])
    return Matrix(keys=tuple(key for key, _ in rows), runs=runs, values=values, verdicts=words)


def told(matrix: Matrix, *rows: int) -> list[tuple[bool, str]]:
    """Return what is silent of some rows, all by default: whether it is an alarm, and the words."""
    asked = rows or range(len(matrix.keys))
    return [(each.is_alarm, each.sentence) for each in without_numbers(matrix, asked)]


def good(first: int, last: int) -> dict[int, str]:
    """Return the words of a row that is good from a run to the one before another."""
    return dict.fromkeys(range(first, last), "PASS")


def test_who_asks_for_a_node_hears_of_no_silence_that_ended_on_others() -> None:
    """Nobody saw a rank in two runs; since then the leg runs well, on other nodes."""
    nameless = {10: "MISSING", 11: "MISSING"}
    rows = [(KEY, good(0, 10)), (replace(KEY, nodes="n3,n4"), good(12, 16)), (NAMELESS, nameless)]
    assert told(made(rows, 16), 0, 2) == []
    newest = {**nameless, 16: "MISSING", 17: "MISSING"}
    ((is_alarm, said),) = told(made([*rows[:2], (NAMELESS, newest)], 18), 0, 2)
    assert is_alarm
    assert "in the newest 2 runs that tried, since 2026-11-17 22:00" in said


@pytest.mark.parametrize(
    ("words", "failed"),
    [
        (("UNJUDGED", "UNJUDGED"), 0),
        (("MISSING", "UNJUDGED"), 1),
        (("MISSING", "UNJUDGED", "INVALID"), 2),
        (("FAIL", "FAIL"), 2),
    ],
)
@pytest.mark.parametrize("key", [RATIO, KEY])
def test_what_others_disturbed_is_a_note_and_no_alarm(
    key: Key, words: tuple[str, ...], failed: int
) -> None:
    """A relation without rounds that count has no number; nothing says that it grew worse."""
    without = replace(key, better=0, settings="")
    rows = [(key, good(0, 10)), (without, dict(enumerate(words, start=10)))]
    ((is_alarm, said),) = told(made(rows, 10 + len(words)))
    assert is_alarm == said.startswith("WORSE: ") == (failed > 1)
    assert (f"it was FAIL, INVALID or MISSING in {failed} of them" in said) == (failed < 2)


@pytest.mark.parametrize(("runs", "is_alarm"), [(6, True), (30, False)])
def test_runs_of_one_check_are_no_nights_that_left_a_leg_out(runs: int, is_alarm: bool) -> None:
    """Six of them in an afternoon take no alarm away; a night of few legs, for weeks, does."""
    count = 12 + runs
    others = [
        (replace(KEY, check="OsuLatency", leg=f"rail{rail}"), good(0, count if rail == 1 else 12))
        for rail in range(1, 4)
    ]
    silent = {**good(0, 10), 10: "MISSING", 11: "MISSING"}
    assert [each for each, _ in told(made([(KEY, silent), *others], count))] == [is_alarm]


def test_nights_that_measure_parts_in_turn_leave_nothing_out() -> None:
    """Each leg comes every third night; a silent one is an alarm until it has not come for long."""
    rows = [
        (replace(KEY, leg=f"rail{part}"), dict.fromkeys(range(part, 30, 3), "PASS"))
        for part in range(3)
    ]
    rows[0][1].update({24: "MISSING", 27: "MISSING"})
    assert [each for each, _ in told(made(rows, 30))] == [True]
    for part in (1, 2):
        rows[part][1].update(dict.fromkeys(range(30 + part, 42, 3), "PASS"))
    assert [each for each, _ in told(made(rows, 42))] == [False]
