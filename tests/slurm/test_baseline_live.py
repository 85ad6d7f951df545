"""A baseline on a real Slurm: it sees a rail that lost a twentieth, which physics allows.

Opt in: ``pytest -m slurm`` with a virtual cluster up.  The rail is put right whatever happens.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from slurm_session import Session

ROOT = Path(__file__).parents[2]
FABRICPROOF = Path(sys.executable).parent / "fabricproof"
SMALL = ("-n", "OsuBandwidth", "-t", "ethernet", "-p", "openmpi4")
NODE, RAIL = "vc1", "rail0"

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(560)]


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    """Give a copy of the site's folder, in which baselines may be written."""
    shutil.copytree(ROOT / "site-configs" / "vcluster", tmp_path / "sites" / "vcluster")
    return tmp_path / "sites"


@pytest.fixture
def apart(session: Session, sites: Path, tmp_path: Path) -> Session:
    """Give a session with perflogs and sites of its own, on the two nodes that are meant."""
    return Session(
        environment={
            **session.environment,
            "FABRICPROOF_SITES": str(sites),
            "FABRICPROOF_PERFLOGS": str(tmp_path / "perflogs"),
            "FABRICPROOF_NODES": "vc1,vc2",
        }
    )


def call(session: Session, *arguments: str) -> str:
    done = subprocess.run(
        [FABRICPROOF, *arguments],
        env=session.environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


@contextmanager
def rail_at(rate: str, session: Session) -> Iterator[None]:
    cluster = ("--name", session.environment["FABRICPROOF_VCLUSTER"], NODE, RAIL)
    call(session, "vcluster", "fault", *cluster, "--rate", rate)
    try:
        yield
    finally:
        call(session, "vcluster", "fault", *cluster, "--clear")


def plateau(result: dict[str, Any], leg: str) -> dict[str, Any]:
    (found,) = [each for each in result["legs"] if each["leg"] == leg]
    return next(each for each in found["quantities"] if each["name"] == "bandwidth_1MiB")


def test_a_rail_at_95_percent_passes_physics_and_fails_the_baseline(apart, sites):
    for _ in range(5):
        status, result = apart.run(*SMALL)
        assert status == 0, result
    call(apart, "baseline", "freeze", "known-good", "last:5", "--site", "vcluster")

    with rail_at("190mbit", apart):
        without_status, without = apart.run(*SMALL)
        site = sites / "vcluster" / "site.toml"
        site.write_text(site.read_text().replace("[site]\n", '[site]\nbaseline = "known-good"\n'))
        with_status, judged = apart.run(*SMALL)
    healthy_status, healthy = apart.run(*SMALL)

    assert (without_status, plateau(without, RAIL)["verdict"]) == (0, "PASS")
    assert (with_status, plateau(judged, RAIL)["verdict"]) == (1, "FAIL")
    assert "of the baseline's median" in plateau(judged, RAIL)["reason"]
    assert plateau(judged, RAIL)["origin"] == "baseline known-good, 5 runs"
    assert plateau(judged, "rail1")["verdict"] == "PASS"
    assert (healthy_status, plateau(healthy, RAIL)["verdict"]) == (0, "PASS")
