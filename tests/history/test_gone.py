"""What had numbers and has none now is named; what comes in turn, or came once, is not."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pytest

from fabricproof.history.gone import gone_now
from fabricproof.history.store import Key, Matrix, Run

KEY = Key(
    site="s", partition="p", fabric="ib0", stack="openmpi5", build="*", suite="osu",
    program="osu_bw", tool_version="*", check="OsuBandwidth", leg="rail0", rails="rail0",
    nodes="n1,n2", settings="w=64", quantity="bandwidth_4MiB", unit="MB/s", message_size=4 << 20,
    better=1,
)  # fmt: skip

RAIL1, MPICH = replace(KEY, leg="rail1"), replace(KEY, stack="mpich5")

#: of a leg whose program printed nothing, and of which nobody saw a rank
NAMELESS = replace(KEY, unit="", message_size=None, better=0, settings="", nodes="")

FIRST = datetime.datetime(2026, 11, 1, 22, tzinfo=datetime.UTC)


def told(
    there: Mapping[Key, Collection[int]],
    count: int,
    begin: int = 0,
    words: Mapping[Key, Mapping[int, str]] | None = None,
) -> list[str]:
    """Return what is said of runs ``begin`` to ``count``; of each key the runs with a number."""
    runs = tuple(
        Run(run_id=f"r{at:02}", start=FIRST + at * datetime.timedelta(days=1))
        for at in range(count)
    )
    keys = tuple(dict.fromkeys((*there, *(words or {}))))
    rows = [[1.0 if at in there.get(key, ()) else np.nan for at in range(count)] for key in keys]
    said = tuple(
        tuple((words or {}).get(key, {}).get(at, "") for at in range(count)) for key in keys
    )
    matrix = Matrix(keys=keys, runs=runs, values=np.array(rows), verdicts=said)
    directed = [row for row, key in enumerate(keys) if key.better]
    return gone_now(matrix, directed, range(begin, count))


@pytest.mark.parametrize("count", [12, 13, 18, 30, 59])
def test_a_leg_that_is_gone_stays_named(count: int) -> None:
    """From the second run without it on, and not for six runs only."""
    (said,) = told({KEY: range(count), RAIL1: range(10)}, count)
    assert "rail1 bandwidth_4MiB n1 - n2 (p, ib0): none since 2026-11-10 22:00 UTC" in said
    assert f", {count - 10} runs of the check ago" in said


@pytest.mark.parametrize("word", ["FAIL", "INVALID", "MISSING", "UNJUDGED"])
@pytest.mark.parametrize("key", [KEY, NAMELESS, replace(KEY, better=0, settings="")])
def test_what_is_tried_in_vain_is_named(key: Key, word: str) -> None:
    """Of a check that prints nothing any more no leg has a number to be seen by."""
    (said,) = told({KEY: range(10)}, 12, words={key: {10: word, 11: word}})
    assert "none since 2026-11-10 22:00 UTC, 2 runs" in said
    assert told({KEY: range(10)}, 12, words={key: {11: word}}) == []
    assert told({KEY: range(10)}, 12, words={key: {10: "SKIPPED", 11: "SKIPPED"}}) == []


@pytest.mark.parametrize("begin", [4, 10])
def test_it_ends_where_the_runs_looked_at_have_none_of_it(begin: int) -> None:
    assert bool(told({KEY: range(40), RAIL1: range(10)}, 40, begin)) == (begin < 10)


@pytest.mark.parametrize(("count", "is_told"), [(15, False), (16, True), (40, True)])
def test_a_whole_stack_that_is_gone_is_named(count: int, is_told: bool) -> None:
    """Others of its check go on, for more runs than anybody makes of one stack by hand."""
    said = told({KEY: range(count), MPICH: range(10)}, count)
    assert bool(said) == is_told
    assert all("mpich5" in each for each in said)


@pytest.mark.parametrize("count", [30, 31, 32, 33])
def test_what_comes_in_turn_is_not_gone(count: int) -> None:
    """Rails, nodes, stacks in turn; another check; one run without it."""
    legs = {replace(KEY, leg=f"rail{part}"): range(part, count, 3) for part in range(3)}
    nodes = {replace(KEY, nodes=f"n{part}"): range(part, count, 2) for part in range(2)}
    stacks = {replace(KEY, stack=f"mpi{part}"): range(part, count, 2) for part in range(2)}
    other = {KEY: range(count), replace(KEY, check="OsuLatency"): range(10)}
    for there in (legs, nodes, stacks, other, {KEY: range(count), RAIL1: range(count - 1)}):
        assert told(there, count) == []


def test_what_ended_last_is_told_first_and_the_rest_counted() -> None:
    """An old end hides no new one."""
    ends = {replace(KEY, leg=f"rail{at}"): range(10 + at) for at in range(1, 6)}
    said = told({KEY: range(40), **ends}, 40)
    assert [each.split("rail")[-1][0] for each in said[:3]] == ["5", "4", "3"]
    assert said[3] == "2 more stopped coming before that"
