"""Before and after, for real: a swap that changes nothing, and changes of rate, MTU and queue.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from slurm_session import PATIENCE_SECONDS, Session

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "fabricproof"
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")

#: runs on each side: four against four can be told apart (2 of 70 labellings, p = 0.029)
RUNS = 4
NIGHTS = 10
SIXTH = 5

#: each rail by itself, in seconds
SMALL = (
    *("-c", str(ROOT / "tests" / "slurm" / "checks" / "small.py")),
    *("-n", "SmallBandwidth", "-p", "openmpi4"),
)

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1200)]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A session whose perflogs hold the runs of this file only."""

    session: Session

    def ask(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Return exit status and answer of a command of ours with ``--json``."""
        return self.session.ask(*arguments)

    def run(self) -> str:
        """Run the small check once; return the identity of the run."""
        return str(self.session.run(*SMALL)[1]["run_id"])

    def in_turn(self, places: dict[str, str], *change: str, count: int = RUNS) -> Sides:
        """Run without a change and with it, ``count`` times each, in turn.

        What else the machine does then falls on both sides: a whole side before the other one would
        differ from it by the load too, and compare would rightly say so.
        """
        before, after = [], []
        for _ in range(count):
            before.append(self.run())
            with changed(places, *change):
                after.append(self.run())
        return Sides(before=tuple(before), after=tuple(after))

    def compared(self, sides: Sides) -> tuple[int, dict[str, Any]]:
        """Compare the two sides."""
        return self.ask("compare", ",".join(sides.before), ",".join(sides.after))


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The runs without a change, and those with it."""

    before: tuple[str, ...]
    after: tuple[str, ...]


@contextmanager
def changed(places: dict[str, str], *change: str) -> Iterator[None]:
    """Change rails (node -> rail) of the cluster, and put them back."""

    def fault(node: str, rail: str, *what: str) -> None:
        command = [str(PROGRAM), "vcluster", "fault", "--name", CLUSTER, node, rail, *what]
        subprocess.run(command, check=True, timeout=60, capture_output=True)

    try:
        for node, rail in places.items():
            fault(node, rail, *change)
        yield
    finally:
        for node, rail in places.items():
            fault(node, rail, "--clear")


@pytest.fixture(scope="module")
def bench(session: Session, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Give perflogs of this file's own, and the two nodes that are changed."""
    own = {
        **session.environment,
        "FABRICPROOF_PERFLOGS": str(tmp_path_factory.mktemp("before-after")),
        "FABRICPROOF_NODES": "vc1,vc2",
    }
    return Bench(session=replace(session, environment=own))


@pytest.fixture(scope="module")
def slower(bench: Bench) -> Sides:
    """Give runs without and with a slower second rail of vc2."""
    return bench.in_turn({"vc2": "rail1"}, "--rate", "170mbit")


def long_words(answer: dict[str, Any], rail: str) -> set[str]:
    """Return what is said of the bandwidth of messages above 64 KiB over one rail."""
    return {
        each["shift"]["change"]
        for each in answer["quantities"]
        if each["key"]["rails"] == rail and each["key"]["message_size"] > 1 << 16
    }


def plateau(answer: dict[str, Any], rail: str) -> dict[str, Any]:
    """Return what became of the bandwidth of the largest messages over one rail."""
    (found,) = (
        each["shift"]
        for each in answer["quantities"]
        if each["key"]["leg"] == rail and each["key"]["quantity"] == "bandwidth_1MiB"
    )
    return found


def is_worse_on_one_rail_only(bench: Bench, sides: Sides, rail: str, most: float) -> None:
    """WORSE on that rail, by about what was taken; the other rail's plateau is the same.

    Of the other rail's plateau alone: of all quantities one may be called changed by chance, in up
    to 5 of 100 comparisons (docs/statistics.md), and a busy machine tries its luck.
    """
    status, answer = bench.compared(sides)
    other = {"rail0": "rail1", "rail1": "rail0"}[rail]
    assert (status, answer["overall"]) == (1, "WORSE")
    assert plateau(answer, rail)["change"] == "WORSE"
    assert plateau(answer, rail)["ratio"] < most
    assert plateau(answer, other)["change"] in {"SAME", "UNDECIDED"}
    assert plateau(answer, other)["ratio"] == pytest.approx(1, abs=(1 - most) / 2)


@pytest.mark.long
def test_a_firmware_that_changes_nothing_is_neither_better_nor_worse(bench: Bench) -> None:
    """The swap is named, the plateau is the same, and nothing is said to have changed."""
    _, answer = bench.compared(bench.in_turn({"vc2": "rail1"}, "--firmware", "28.41.1000"))
    said = {each["shift"]["change"] for each in answer["quantities"]}
    assert said <= {"SAME", "UNDECIDED"}, answer["reason"]
    # One stall of a shared machine may leave some of these open, never all of them.
    assert "SAME" in long_words(answer, "rail0") | long_words(answer, "rail1")
    assert answer["overall"] in {"SAME", "UNDECIDED"}
    assert any(change["fact"] == "firmware" for change in answer["changes"])


def test_a_slower_rail_is_worse_there_and_nowhere_else(bench: Bench, slower: Sides) -> None:
    is_worse_on_one_rail_only(bench, slower, "rail1", 0.9)


@pytest.mark.long
@pytest.mark.parametrize(
    ("places", "change", "rail", "most"),
    [
        ({"vc1": "rail0", "vc2": "rail0"}, ("--mtu", "576"), "rail0", 0.95),
        ({"vc1": "rail1", "vc2": "rail1"}, ("--queue", "20000"), "rail1", 0.9),
    ],
    ids=["mtu", "queue"],
)
def test_a_change_of_one_rail_is_worse_there_and_nowhere_else(
    bench: Bench, places: dict[str, str], change: tuple[str, ...], rail: str, most: float
) -> None:
    is_worse_on_one_rail_only(bench, bench.in_turn(places, *change), rail, most)


@pytest.mark.long
def test_ten_nights_with_a_change_on_the_sixth(bench: Bench) -> None:
    """``trend`` names the night and the rail, and what was changed then."""
    before = [bench.run() for _ in range(SIXTH)]
    with changed({"vc2": "rail1"}, "--rate", "150mbit"):
        after = [bench.run() for _ in range(NIGHTS - SIXTH)]
    nights = [*before, *after]
    status, answer = bench.ask("trend", ",".join(nights))
    assert status == 1
    assert [run["run_id"] for run in answer["runs"]] == nights
    (event,) = answer["events"]
    assert event["run"]["run_id"] == after[0]
    assert event["where"] == "rail1"
    assert any("shaped" in each and "vc2" in each for each in event["coincides"])


def test_reframes_own_comparison_agrees_on_the_medians(bench: Bench, slower: Sides) -> None:
    """Both sides' medians over runs, as ReFrame takes them from its own store."""
    _, answer = bench.compared(slower)
    runs = "/".join(f"?run_id in {json.dumps(ids)}" for ids in (slower.before, slower.after))
    spec = f"{runs}/median:system,partition,environ,pvar,punit/pvar,pval"
    ended = subprocess.run(
        [str(PROGRAM), "reframe", "--table-format=csv", f"--performance-compare={spec}"],
        env={**bench.session.environment, "FABRICPROOF_SITE": "vcluster"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    header = ended.stdout.index("pvar")
    rows = list(csv.DictReader(io.StringIO(ended.stdout[header:])))
    theirs = {row["pvar"]: row for row in rows}
    ours = {
        f"{each['key']['leg']}.{each['key']['quantity']}": each for each in answer["quantities"]
    }
    assert ours
    for name, each in ours.items():
        lhs, rhs = (float(value) for key, value in theirs[name].items() if "median" in key)
        assert lhs == pytest.approx(median(each["first"].values()), rel=1e-4)
        assert rhs == pytest.approx(median(each["second"].values()), rel=1e-4)
