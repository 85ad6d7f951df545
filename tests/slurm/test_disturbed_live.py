"""Traffic of others on a rail, others on the cores: never FAIL, never PASS below the bound.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from slurm_session import Session, bandwidth

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
FABRICPROOF = Path(sys.executable).parent / "fabricproof"


@contextlib.contextmanager
def running(*commands: list[str]) -> Iterator[None]:
    """Keep programs running meanwhile; nsenter, which is between, ends without its child."""
    children = [
        subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for command in commands
    ]
    try:
        yield
    finally:
        for child in children:
            os.killpg(child.pid, signal.SIGTERM)
        for child in children:
            child.wait(timeout=30)


def on(node: str, *command: str) -> list[str]:
    return [str(FABRICPROOF), "vcluster", "exec", "--name", CLUSTER, node, "--", *command]


def address_of(node: str, rail: str) -> str:
    said = subprocess.run(
        on(node, "ip", "-4", "-o", "address", "show", rail),
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout.split()
    return said[said.index("inet") + 1].partition("/")[0]


def out_of_bounds(leg: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        each
        for each in leg["quantities"]
        if each["lower"] is not None and each["value"] is not None and each["value"] < each["lower"]
    ]


def test_what_others_send_to_a_node_meanwhile_is_not_its_fault(session: Session) -> None:
    """120 of 200 Mb/s into vc2 leave no room for 90 % of the rail."""
    server = on("vc2", "iperf3", "-s", "-p", "5999")
    client = on("vc3", *f"iperf3 -c {address_of('vc2', 'rail0')} -p 5999 -b 120M -t 300".split())
    with running(server), running(["sh", "-c", 'sleep 1; exec "$@"', "sh", *client]):
        legs = bandwidth(session)
    slow = legs["rail0"]
    assert out_of_bounds(slow), "iperf3 took nothing"
    assert slow["verdict"] == "UNJUDGED", slow["reason"]
    assert "disturbed: rail0 of vc2 received" in str(slow["findings"])
    assert {each["disturbance"] for each in out_of_bounds(slow)} <= {
        "foreign_traffic",
        "starved_cores",
    }


def test_others_on_the_cores_make_nothing_red(session: Session) -> None:
    loop = [sys.executable, "-c", "while True: pass"]
    with running(*[loop] * 2):
        legs = bandwidth(session)
    for leg in legs.values():
        assert leg["verdict"] in {"PASS", "UNJUDGED"}, leg["reason"]
        assert leg["verdict"] == "UNJUDGED" or not out_of_bounds(leg)
