"""``fabricproof admit`` under real ReFrame and Slurm: a drained node, a bad node, bad partners.

Opt in: ``pytest -m slurm`` with a virtual cluster of four nodes on two leaves up, of eight on four
for the last test (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from slurm_session import PATIENCE_SECONDS, Session

ROOT = Path(__file__).parents[2]
FABRICPROOF = ROOT / "bin" / "fabricproof"
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
BIN = Path("/run/fabricproof/vcluster") / CLUSTER / "bin"

pytestmark = [pytest.mark.slurm, pytest.mark.long, pytest.mark.timeout(1200)]

Fault = Callable[..., None]


def admitted(session: Session, *words: str) -> tuple[int, dict[str, Any]]:
    """Run ``fabricproof admit --json``; return its status and what it printed."""
    ended = subprocess.run(
        [FABRICPROOF, "admit", "--site", "vcluster", "--json", *words],
        env=session.environment, capture_output=True, text=True,
        timeout=2 * PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def only(record: dict[str, Any], word: str) -> dict[str, Any]:
    """Return the one node, which has this verdict, or was disturbed on a busy machine."""
    (node,) = record["nodes"]
    said = " ".join(node["reasons"])
    starved = node["verdict"] == "UNJUDGED" and "disturbed" in said
    assert node["verdict"] == word or starved, record
    return dict(node)


@pytest.fixture
def fault(session: Session) -> Iterator[Fault]:
    """Give what damages a rail of a node; all is whole again afterwards."""
    del session  # it says whether a cluster is up
    command = [FABRICPROOF, "vcluster", "fault", "--name", CLUSTER]
    damaged = []

    def damage(node: str, rail: str, *how: str) -> None:
        damaged.append((node, rail))
        subprocess.run([*command, node, rail, *how], check=True, timeout=60)

    yield damage
    for place in damaged:
        subprocess.run([*command, *place, "--clear"], check=True, timeout=60)


def slurm(line: str) -> str:
    """Run a line that was printed for a person, without the mark before it."""
    words = line.removeprefix("# ").partition("  # ")[0]
    return subprocess.run(
        ["bash", "-c", words], env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}",
        "USER": "root"}, capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip


def comes_to(*, kept: bool) -> bool:
    """Tell whether Slurm, which takes seconds, keeps vc1 for maintenance, or does no longer."""
    for _ in range(30):
        state = slurm("sinfo -h -n vc1 -o %t").strip()
        if (state == "maint" or state.endswith("$")) is kept:  # $: a job of it runs there
            return True
        time.sleep(1)
    return False


@pytest.fixture
def drained() -> Iterator[None]:
    """Drain vc1; afterwards it is in no reservation, and Slurm gives it jobs."""
    of_vc1 = ["update", "NodeName=vc1"]
    subprocess.run(
        [BIN / "scontrol", *of_vc1, "State=DRAIN", "Reason=repaired"], check=True, timeout=60
    )
    yield
    for words in (["delete", "ReservationName=admit-vc1"], [*of_vc1, "State=RESUME"]):
        subprocess.run(
            [BIN / "scontrol", *words], check=False, capture_output=True, timeout=60
        )  # what is over already is refused


@pytest.mark.usefixtures("drained")
def test_a_drained_node_comes_back_by_the_lines_that_are_printed(session: Session) -> None:
    status, record = admitted(session, "vc1")
    assert (status, record["verdict"], record["runs"]) == (4, "MISSING", [])
    reserve, resume, again = record["nodes"][0]["lines"]
    assert "create reservation" in reserve
    slurm(reserve)
    slurm(resume)
    assert again == "fabricproof admit vc1 --site vcluster --reservation admit-vc1"
    status, record = admitted(session, *again.split()[2:], "--with", "vc[2-4]")
    node = only(record, "PASS")
    assert status == {"PASS": 0, "UNJUDGED": 5}[node["verdict"]]
    assert comes_to(kept=True), "users are still kept away"
    if node["verdict"] == "PASS":
        (release,) = node["lines"]
        slurm(release)
        assert comes_to(kept=False)


def test_a_node_repaired_in_appearance_only_is_refused_by_name(
    session: Session, fault: Fault
) -> None:
    fault("vc1", "rail1", "--rate", "50%", "--direction", "in")
    status, record = admitted(session, "vc1", "--with", "vc[2-4]")
    node = only(record, "FAIL")
    assert status in {1, 5}
    assert record["bad_partners"] == {}
    if node["verdict"] == "FAIL":
        assert "vc1 rail1 receives at 5" in node["reasons"][0]
        assert node["lines"][0].startswith("# scontrol update NodeName=vc1 State=DRAIN")


def test_bad_partners_are_named_and_replaced(session: Session, fault: Fault) -> None:
    nodes = slurm("sinfo -h -N -o %N").split()
    if not {"vc7", "vc8"} <= set(nodes):
        pytest.skip(f"{len(nodes)} nodes: no partners are left that could replace two bad ones")
    for partner in ("vc3", "vc5"):
        fault(partner, "rail0", "--rate", "40%")
    status, record = admitted(session, "vc1", "--with", "vc[2-8]")
    assert set(record["bad_partners"]) == {"vc3", "vc5"}, record
    assert all("rail0 on vc" in why for why in record["bad_partners"].values())
    first, second = (set(each["partners"]) for each in record["runs"])
    assert {"vc3", "vc5"} <= first
    assert not {"vc3", "vc5"} & second
    node = only(record, "PASS")
    assert status == {"PASS": 0, "UNJUDGED": 5}[node["verdict"]]
