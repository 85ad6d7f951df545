"""Links that are not what the site declares, made for real, and what preflight says of each.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from slurm_session import Session, bandwidth, is_red

from fabricproof.core.measure import Verdict

ROOT = Path(__file__).parents[2]
FABRICPROOF = ROOT / "bin" / "fabricproof"
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]


def _vcluster(*arguments: str) -> str:
    done = subprocess.run(
        [str(FABRICPROOF), "vcluster", arguments[0], "--name", CLUSTER, *arguments[1:]],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def fault(node: str, rail: str, *options: str) -> Iterator[None]:
    """Put a fault into a rail, and take it out whatever happens."""
    _vcluster("fault", node, rail, *options)
    try:
        yield
    finally:
        _vcluster("fault", node, rail, "--clear")


def _links(session: Session) -> dict[str, Any]:
    _, record = session.run(
        *("-c", str(ROOT / "checks" / "pt2pt" / "link_preflight.py"), "-n", "LinkPreflight"),
        *("-p", "openmpi5"),
    )
    found = {leg["leg"]: leg for leg in record["legs"] if leg["verdict"] != "SKIPPED"}
    assert set(found) == {"rail0", "rail1"}
    return found


def test_four_faults_of_one_rail_are_each_named_on_their_node(session: Session) -> None:
    """One look at all: a rate, a cable, an MTU and a firmware, each at a node of its own."""
    with (
        fault("vc1", "rail1", "--rate", "100mbit"),
        fault("vc2", "rail1", "--down"),
        fault("vc3", "rail1", "--mtu", "1400"),
        fault("vc4", "rail1", "--firmware", "9.9.9"),
    ):
        found = _links(session)
    assert Verdict(found["rail1"]["verdict"]) is Verdict.FAIL
    said = " | ".join(each["reason"] for each in found["rail1"]["quantities"])
    for words in (
        "rail1 on vc1 runs at 100 of 200 Mb/s: its shaper",
        "rail1 on vc2 is down",
        "rail1 on vc3 has MTU 1400 instead of 1500",
        "9.9.9 on vc4 (1 of 4): mixed firmware",
    ):
        assert words in said
    assert Verdict(found["rail0"]["verdict"]) is Verdict.PASS


def test_the_pretended_firmware_is_gone_with_the_fault_and_the_cluster_is_as_declared(
    session: Session,
) -> None:
    real = _vcluster("exec", "vc2", "ethtool", "-i", "rail1")
    with fault("vc2", "rail1", "--firmware", "9.9.9"), fault("vc2", "rail0", "--firmware", "8"):
        told = _vcluster("exec", "vc2", "ethtool", "-i", "rail1")
        assert "firmware-version: 9.9.9\n" in told
        assert told.replace("9.9.9", "") == real
        assert _vcluster("exec", "vc1", "ethtool", "-i", "rail1") == real
        assert "Link detected: yes" in _vcluster("exec", "vc2", "ethtool", "rail1")
    assert _vcluster("exec", "vc2", "ethtool", "-i", "rail1") == real
    for leg in _links(session).values():
        assert Verdict(leg["verdict"]) is Verdict.PASS, leg
        assert len(leg["nodes"]) == 4


def test_a_benchmark_over_a_bad_link_says_so_first(session: Session) -> None:
    # Whichever pair of a leaf Slurm gives: vc1 and vc2, or vc3 and vc4.
    with (
        fault("vc2", "rail1", "--rate", "100mbit"),
        fault("vc3", "rail1", "--rate", "100mbit"),
    ):
        found = bandwidth(session)
    assert is_red(found["rail1"]), found["rail1"]["reason"]
    note = found["rail1"]["findings"][0]["text"]
    assert note.startswith("rail1 on vc")
    assert note.endswith("runs at 100 of 200 Mb/s")
    if found["rail1"]["verdict"] == "FAIL":
        assert note in found["rail1"]["reason"]
    assert not any(each["kind"] == "preflight" for each in found["rail0"]["findings"])
