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

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1200)]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A session whose perflogs hold the runs of this file only, and its runs before any change."""

    session: Session
    before: tuple[str, ...]

    def ask(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Return exit status and answer of a command of ours with ``--json``."""
        ended = subprocess.run(
            [str(PROGRAM), arguments[0], "--site", "vcluster", "--json", *arguments[1:]],
            env=self.session.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.stdout, ended.stderr
        return ended.returncode, json.loads(ended.stdout)

    def compared(self, after: tuple[str, ...]) -> tuple[int, dict[str, Any]]:
        """Compare the runs before with ``after``."""
        return self.ask("compare", ",".join(self.before), ",".join(after))


def measured(session: Session, count: int = RUNS) -> tuple[str, ...]:
    """Run one check ``count`` times; return the identities of the runs."""
    answers = [session.run("-n", "OsuBandwidth", "-p", "openmpi4")[1] for _ in range(count)]
    return tuple(answer["run_id"] for answer in answers)


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
    """Give the runs before any change, in perflogs of their own."""
    folder = tmp_path_factory.mktemp("before-after")
    own = {**session.environment, "FABRICPROOF_PERFLOGS": str(folder)}
    alone = replace(session, environment=own)
    return Bench(session=alone, before=measured(alone, SIXTH))


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


@pytest.mark.long
def test_a_firmware_that_changes_nothing_is_neither_better_nor_worse(bench: Bench) -> None:
    """The swap is named, the plateau is the same, and nothing is said to have changed."""
    with changed({"vc2": "rail1"}, "--firmware", "28.41.1000"):
        after = measured(bench.session)
        _, answer = bench.compared(after)
        if answer["overall"] not in {"SAME", "UNDECIDED"}:
            # Others may have had the cores on one side only: such a change is real, and not ours.
            _, answer = bench.compared((*after, *measured(bench.session)))
    said = {each["shift"]["change"] for each in answer["quantities"]}
    assert said <= {"SAME", "UNDECIDED"}, answer["reason"]
    # One stall of a shared machine may leave some of these open, never all of them.
    assert "SAME" in long_words(answer, "rail0") | long_words(answer, "rail1")
    assert answer["overall"] in {"SAME", "UNDECIDED"}
    assert any(change["fact"] == "firmware" for change in answer["changes"])


@pytest.mark.parametrize(
    ("places", "change", "rail", "most"),
    [
        ({"vc2": "rail1"}, ("--rate", "170mbit"), "rail1", 0.9),
        pytest.param(
            *({"vc1": "rail0", "vc2": "rail0"}, ("--mtu", "576"), "rail0", 0.95),
            marks=pytest.mark.long,
        ),
        pytest.param(
            *({"vc1": "rail1", "vc2": "rail1"}, ("--queue", "20000"), "rail1", 0.9),
            marks=pytest.mark.long,
        ),
    ],
    ids=["rate", "mtu", "queue"],
)
def test_a_change_of_one_rail_is_worse_there_and_nowhere_else(
    bench: Bench, places: dict[str, str], change: tuple[str, ...], rail: str, most: float
) -> None:
    """WORSE on that rail, by about what was taken; the other rail's plateau is the same."""
    with changed(places, *change):
        status, answer = bench.compared(measured(bench.session))
    other = {"rail0": "rail1", "rail1": "rail0"}[rail]
    assert status == 1
    assert answer["overall"] == "WORSE"
    assert plateau(answer, rail)["change"] == "WORSE"
    assert plateau(answer, rail)["ratio"] < most
    # Long messages wait for the rail; short ones for cores, of which others may take more after.
    assert not long_words(answer, other) & {"WORSE", "BETTER"}
    assert "SAME" in long_words(answer, other)


@pytest.mark.long
def test_ten_nights_with_a_change_on_the_sixth(bench: Bench) -> None:
    """``trend`` names the night and the rail, and what was changed then."""
    with changed({"vc2": "rail1"}, "--rate", "150mbit"):
        after = measured(bench.session, NIGHTS - SIXTH)
    nights = [*bench.before, *after]
    status, answer = bench.ask("trend", "--runs", ",".join(nights))
    assert status == 1
    assert [run["run_id"] for run in answer["runs"]] == nights
    (event,) = answer["events"]
    assert event["run"]["run_id"] == after[0]
    assert event["where"] == "rail1"
    assert any("shaped" in each and "vc2" in each for each in event["coincides"])


def test_reframes_own_comparison_agrees_on_the_medians(bench: Bench) -> None:
    """Both sides' medians over runs, as ReFrame takes them from its own store."""
    after = measured(bench.session)
    _, answer = bench.compared(after)
    sides = "/".join(f"?run_id in {json.dumps(ids)}" for ids in (bench.before, after))
    spec = f"{sides}/median:system,partition,environ,pvar,punit/pvar,pval"
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
