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
from slurm_session import Session

from fabricproof.measure import Verdict

FABRICPROOF = Path(__file__).parents[2] / "bin" / "fabricproof"
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
    _, record = session.run("-n", "LinkPreflight")
    found = {leg["road"]: leg for leg in record["legs"] if leg["verdict"] != "SKIPPED"}
    assert set(found) == {"rail0", "rail1"}
    return found


def test_a_healthy_cluster_is_what_its_site_declares(session: Session) -> None:
    for leg in _links(session).values():
        assert Verdict(leg["verdict"]) is Verdict.PASS, leg
        assert len(leg["nodes"]) >= 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--rate", "100mbit"), "rail1 on vc2 runs at 100 of 200 Mb/s: its shaper"),
        (("--down",), "rail1 on vc2 is down"),
        (("--mtu", "1400"), "rail1 on vc2 has MTU 1400 instead of 1500"),
        (("--firmware", "9.9.9"), "9.9.9 on vc2 (1 of 4): mixed firmware"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_fault_of_one_rail_is_caught_with_its_words(
    options: tuple[str, ...], words: str, session: Session
) -> None:
    with fault("vc2", "rail1", *options):
        found = _links(session)
    assert Verdict(found["rail1"]["verdict"]) is Verdict.FAIL
    assert words in found["rail1"]["reason"]
    assert Verdict(found["rail0"]["verdict"]) is Verdict.PASS


def test_the_pretended_firmware_is_gone_with_the_fault(session: Session) -> None:
    real = _vcluster("exec", "vc2", "ethtool", "-i", "rail1")
    with fault("vc2", "rail1", "--firmware", "9.9.9"), fault("vc2", "rail0", "--firmware", "8"):
        told = _vcluster("exec", "vc2", "ethtool", "-i", "rail1")
        assert "firmware-version: 9.9.9\n" in told
        assert told.replace("9.9.9", "") == real
        assert _vcluster("exec", "vc1", "ethtool", "-i", "rail1") == real
        assert "Link detected: yes" in _vcluster("exec", "vc2", "ethtool", "rail1")
    assert _vcluster("exec", "vc2", "ethtool", "-i", "rail1") == real
    assert Verdict(_links(session)["rail1"]["verdict"]) is Verdict.PASS


def test_a_benchmark_over_a_bad_link_says_so_first(session: Session) -> None:
    # Whichever pair of a leaf Slurm gives: vc1 and vc2, or vc3 and vc4.
    with (
        fault("vc2", "rail1", "--rate", "100mbit"),
        fault("vc3", "rail1", "--rate", "100mbit"),
    ):
        _, record = session.run("-n", "OsuBandwidth", "-p", "openmpi5")
    found = {leg["road"]: leg for leg in record["legs"] if leg["verdict"] != "SKIPPED"}
    assert Verdict(found["rail1"]["verdict"]) is Verdict.FAIL
    note = found["rail1"]["findings"][0]
    assert note.startswith("preflight: rail1 on vc")
    assert note.endswith("runs at 100 of 200 Mb/s")
    assert note in found["rail1"]["reason"]
    assert not any("preflight" in each for each in found["rail0"]["findings"])
