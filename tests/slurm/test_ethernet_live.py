"""Faults below MPI made for real on a real Slurm, and the words each must end with.

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
from slurm_session import Session

ROOT = Path(__file__).parents[2]
CHECKS = ROOT / "tests" / "slurm" / "checks" / "peer_faults.py"
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]


def legs_of(session: Session, *arguments: str) -> tuple[int, dict[str, Any]]:
    status, record = session.run(*arguments)
    return status, {leg["leg"]: leg for leg in record["legs"] if leg["verdict"] != "SKIPPED"}


def fault(node: str, rail: str, *options: str) -> None:
    subprocess.run(
        [
            str(ROOT / "bin" / "fabricproof"),
            *("vcluster", "fault", "--name", CLUSTER, node, rail, *options),
        ],
        check=True,
        timeout=60,
    )


@contextmanager
def smaller_frames(node: str, rail: str) -> Iterator[None]:
    fault(node, rail, "--mtu", "1400")
    try:
        yield
    finally:
        fault(node, rail, "--clear")


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("ServerNeverComes", "the iperf3 server on "),
        ("ToolIsMissingThere", "no iperf3-of-another-node on node vc"),
        ("InterfaceHasAnotherName", "no interface enp182s0 on vc"),
    ],
)
def test_a_server_that_is_not_there_is_missing_and_says_why(
    session: Session, check: str, words: str
) -> None:
    status, legs = legs_of(session, "-c", str(CHECKS), "-n", check, "-p", "openmpi5")
    (leg,) = legs.values()
    assert (status, leg["verdict"]) == (4, "MISSING")
    assert words in leg["reason"], leg["reason"]


def test_an_mpi_that_takes_the_management_network_by_itself_fails_with_the_bytes(
    session: Session,
) -> None:
    status, legs = legs_of(session, "-n", "DefaultInterfaces", "-p", "openmpi5")
    leg = legs["untold"]
    assert (status, leg["verdict"]) == (1, "FAIL")
    assert "nobody told this MPI its path" in leg["reason"]
    assert "mgmt0" in leg["reason"]
    assert "OMPI_MCA_btl_tcp_if_include=rail0" in leg["reason"]


def test_a_node_with_smaller_frames_fails_by_name(session: Session) -> None:
    with smaller_frames("vc2", "rail0"):
        status, legs = legs_of(session, "-n", "MtuPath", "-p", "openmpi5")
    assert status == 1
    assert legs["rail0.frames"]["verdict"] == "FAIL"
    assert "rail0 has MTU 1400 on vc2; fabric.toml declares 1500" in legs["rail0.frames"]["reason"]
    assert legs["rail1.frames"]["verdict"] == "PASS"
