"""Which quantities are named as gone: those that came mostly, for as long as the runs show it."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pytest

from fabricproof.history.store import Key, Matrix, Run
from fabricproof.history.trend.vanished import vanished

KEY = Key(
    site="s", partition="p", fabric="ib0", stack="openmpi5", build="*", suite="osu",
    program="osu_bw", tool_version="*", check="OsuBandwidth", leg="rail0", rails="rail0",
    nodes="n1,n2", settings="w=64", quantity="bandwidth_4MiB", unit="MB/s", message_size=4 << 20,
    better=1,
)  # fmt: skip

RAIL1, MPICH = replace(KEY, leg="rail1"), replace(KEY, stack="mpich5")

FIRST = datetime.datetime(2026, 11, 1, 22, tzinfo=datetime.UTC)


def told(there: Mapping[Key, Collection[int]], count: int, begin: int = 0) -> list[str]:
    """Return what is said of runs ``begin`` to ``count``; of each key the runs that have it."""
    runs = tuple(
        Run(run_id=f"r{at:02}", start=FIRST + at * datetime.timedelta(days=1))
        for at in range(count)
    )
    rows = [[1.0 if at in several else np.nan for at in range(count)] for several in there.values()]
    matrix = Matrix(keys=tuple(there), runs=runs, values=np.array(rows))
    return list(vanished(matrix, range(len(there)), range(begin, count)))


@pytest.mark.parametrize("count", [12, 13, 18, 30, 59])
def test_a_leg_that_is_gone_stays_named(count: int) -> None:
    """From the second run without it on, and not for six runs only."""
    (said,) = told({KEY: range(count), RAIL1: range(10)}, count)
    assert said.startswith("1 quantities have no number any more while their check goes on")
    assert f"rail1 bandwidth_4MiB n1 - n2: none since 2026-11-10 22:00 (r09), {count - 10}" in said


@pytest.mark.parametrize(("begin", "is_told"), [(4, True), (5, False), (10, False)])
def test_it_ends_where_the_runs_looked_at_hold_too_few_with_it(begin: int, is_told: bool) -> None:
    """Six runs of before its end are in the window, or five."""
    assert bool(told({KEY: range(40), RAIL1: range(10)}, 40, begin)) == is_told


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
    assert said[3] == "2 more quantities stopped coming before that while their check goes on"
