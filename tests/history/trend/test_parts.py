"""The parts of a trend: what is common, what coincides, how a history is drawn."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.history.compare.model import SideError, parse_margins
from fabricproof.history.machines import Machines
from fabricproof.history.store import Key, Matrix, Run
from fabricproof.history.store.model import class_of, metric_of, numbered
from fabricproof.history.trend.events import KINDS, coincidences, common, names_of
from fabricproof.history.trend.text import sparkline
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.store import write_machine

KEY = Key(
    site="s", partition="p", fabric="ib0", stack="openmpi5", build="*", suite="osu",
    program="osu_bw", tool_version="*", check="OsuBandwidth", leg="rail0", rails="rail0",
    nodes="n1,n2", settings="", quantity="bandwidth_4MiB", unit="MB/s", message_size=4 << 20,
    better=1,
)  # fmt: skip

PAIRS = ("n1,n2", "n1,n3", "n2,n3", "n3,n4", "n1,n4", "n2,n4")

KEYS = [
    replace(KEY, rails=rail, leg=rail, nodes=nodes, stack=stack)
    for rail in ("rail0", "rail1")
    for nodes in PAIRS
    for stack in ("openmpi5", "mpich5")
]


NAMES = {kind: names_of(KEYS, kind) for kind in KINDS}


def _where(which: dict[str, str]) -> list[int]:
    return [
        index
        for index, key in enumerate(KEYS)
        if all(value in getattr(key, name).split(",") for name, value in which.items())
    ]


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ({"rails": "rail1"}, "rail1"),
        ({"nodes": "n2"}, "n2"),
        ({"stack": "mpich5"}, "mpich5"),
        ({"rails": "rail1", "nodes": "n3"}, "rail1 of n3"),
        ({"rails": "rail0", "stack": "mpich5"}, "rail0 of mpich5"),
        ({}, ""),
    ],
)
def test_what_changed_together_is_named(which: dict[str, str], words: str) -> None:
    """One name where one is enough, two where both are needed, none where all changed."""
    assert common(NAMES, _where(which))[0] == words


def test_scattered_changes_have_nothing_in_common() -> None:
    """Three quantities of unlike rails, nodes and stacks."""
    assert common(NAMES, [0, 7, 21])[0] == ""


def _run(day: int, **inventory: str | None) -> Run:
    start = datetime.datetime(2026, 11, day, tzinfo=datetime.UTC)
    return Run(run_id=f"r{day}", start=start, inventory=inventory, builds={"openmpi5": "a"})


def _made(mtu: int) -> Machine:
    return Machine(node="n1", facts={"interface ib0": {"mtu": mtu}})


SMALL, LARGE = _made(2044).digest, _made(4092).digest
LOST = "0" * 16


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    """Return the inventories of three nodes, each of which had a small and a large MTU."""
    for node in ("n1", "n2", "n3"):
        for mtu in (2044, 4092):
            write_machine(tmp_path, replace(_made(mtu), node=node))
    return Machines(folder=tmp_path)


def test_what_changed_is_said_once_for_nodes_alike(machines: Machines) -> None:
    """Two nodes changed in the same way, a third did not."""
    runs = [_run(1, n1=LARGE, n2=LARGE, n3=LARGE), _run(2, n1=SMALL, n2=SMALL, n3=LARGE)]
    told, unknown = coincidences(runs[:1], runs[1:], ["n1"], machines)
    assert told == ("interface ib0 of n1, n2: MTU 4092 bytes -> 2044 bytes",)
    assert unknown == ()


def test_a_run_without_a_look_is_passed_over(machines: Machines) -> None:
    """The last look before and the first after count, not that of the neighbouring run."""
    runs = [_run(1, n1=LARGE), _run(2, n1=None), _run(3), _run(4, n1=SMALL)]
    told, _ = coincidences(runs[:2], runs[2:], ["n1"], machines)
    assert told == ("interface ib0 of n1: MTU 4092 bytes -> 2044 bytes",)


def test_what_nobody_saw_or_what_is_lost_is_unknown(machines: Machines) -> None:
    """No look before; a file of the inventory that is gone: sentences, no trouble."""
    runs = [_run(1, n2=LOST), _run(2, n1=LARGE, n2=LARGE)]
    told, unknown = coincidences(runs[:1], runs[1:], ["n1", "n2"], machines)
    assert told == ()
    assert unknown[0] == "what n1 was made of before or after is not known"
    assert f"{LOST}.json" in unknown[1]


def test_a_build_that_changed_is_said(machines: Machines) -> None:
    """The builds of the last run before and of the first after count, not of the newest."""
    runs = [replace(_run(day), builds={"openmpi5": "abcd"[day]}) for day in (1, 2, 3)]
    told, _ = coincidences(runs[:1], runs[1:], [], machines)
    assert told == ("stack openmpi5: build b -> c",)


@given(st.lists(st.one_of(st.none(), st.floats(1e-6, 1e9)), max_size=80))
def test_a_sparkline_is_as_long_as_its_history(history: list[float | None]) -> None:
    """One character a run, a dot for each without a number, the newest sixty."""
    drawn = sparkline(history)
    assert len(drawn) == min(len(history), 60)
    assert [each == "·" for each in drawn] == [each is None for each in history[-60:]]


def test_a_sparkline_shows_a_half_as_a_half() -> None:
    """From 0: half the rate is half the bar; small changes are drawn larger."""
    assert sparkline([100.0, 100.0, 50.0, None]) == "██▅·"
    assert sparkline([100.0, 97.0]) == "█▁"


def test_margins_are_fractions_of_known_metrics() -> None:
    """Percent and fractions are read; anything else is refused with what is known."""
    assert parse_margins(["latency=2%", "bandwidth=0.1"])["latency"] == pytest.approx(0.02)
    for text in ("latency", "latency=0", "latency=120%", "rate=3%", "latency=x"):
        with pytest.raises(SideError, match=r"above 0% and below 100%, .* bandwidth, message rate"):
            parse_margins([text])


def test_kinds_tell_unlike_scatter_apart() -> None:
    """Units, programs and lengths are classes; rails and nodes are not."""
    small = replace(KEY, unit="us", message_size=8, better=-1)
    keys = [KEY, replace(KEY, rails="rail1"), small, replace(KEY, message_size=8)]
    assert numbered([class_of(each) for each in keys]) == [0, 0, 1, 2]
    ratio, days = replace(KEY, unit="x"), replace(KEY, unit="ns/day")
    assert [metric_of(each) for each in (KEY, small, ratio, replace(ratio, better=-1), days)] == [
        "bandwidth", "latency", "ratio", "cost ratio", "own number",
    ]  # fmt: skip


def test_of_a_matrix_rows_and_columns_are_taken() -> None:
    """Numbers, words and what is set aside stay with their quantity and run."""
    runs = tuple(_run(day) for day in (1, 2, 3))
    whole = Matrix(
        keys=tuple(KEYS[:3]),
        runs=runs,
        values=np.arange(9.0).reshape(3, 3),
        verdicts=(("a", "b", "c"), ("a", "b", "c"), ("d", "e", "f")),
        set_aside=((0, 1, "of another column"), (1, 0, "of another row"), (2, 0, "why")),
    )
    part = whole.take([2, 0], [2, 0])
    assert (part.keys, part.runs) == ((KEYS[2], KEYS[0]), (runs[2], runs[0]))
    assert part.values.tolist() == [[8.0, 6.0], [2.0, 0.0]]
    assert part.verdicts == (("f", "d"), ("c", "a"))
    assert part.set_aside == ((0, 1, "why"),)
    assert whole.take([2]).values.tolist() == [[6.0, 7.0, 8.0]]
    assert whole.take([]).values.shape == (0, 3)
