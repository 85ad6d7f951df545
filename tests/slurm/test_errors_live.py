"""Packets lost on one way of one rail of one node: red at full bandwidth, with both ends named.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from slurm_session import Session, bandwidth, is_green, quantity

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
LOST = "retransmitted_per_million_packets"


def fault(node: str, rail: str, *arguments: str) -> None:
    program = Path(sys.executable).parent / "fabricproof"
    command = [program, "vcluster", "fault", "--name", CLUSTER, node, rail, *arguments]
    subprocess.run(command, check=True, timeout=60, capture_output=True)


@contextlib.contextmanager
def lossy(node: str, rail: str, percent: str, direction: str) -> Iterator[None]:
    fault(node, rail, "--loss", percent, "--direction", direction)
    try:
        yield
    finally:
        fault(node, rail, "--clear")


def test_a_rail_that_loses_three_in_a_thousand_is_red_and_its_neighbour_green(
    session: Session,
) -> None:
    with lossy("vc2", "rail0", "0.3", "in"):
        legs = bandwidth(session)
    red, green = legs["rail0"], legs["rail1"]
    assert red["verdict"] == "FAIL", red["reason"]
    assert is_green(green), green["reason"]
    assert LOST in red["reason"]
    assert "rail0 from vc1 to vc2" in red["reason"]
    lost = {
        each["node"]: each["per_million_packets"]
        for each in red["errors"]
        if each["kind"] == "retransmitted"
    }
    # 3000 per million of what came in; acknowledgements of the other way lose nothing.
    assert 1000 < lost["vc1"] < 9000
    assert lost["vc2"] < 1000


def test_a_run_without_loss_is_green_and_says_how_little_was_lost(
    clean: dict[str, dict[str, Any]],
) -> None:
    for leg in clean.values():
        assert is_green(leg), leg["reason"]
        judged = quantity(leg, LOST)
        assert judged["verdict"] == "PASS"
        assert judged["value"] <= judged["upper"]
        assert {each["node"] for each in leg["errors"]} == {"vc1", "vc2"}
