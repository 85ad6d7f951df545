"""A baseline on a real Slurm: it sees a rail that lost a twentieth, which physics allows.

Opt in: ``pytest -m slurm`` with a virtual cluster up.  The rail is put right whatever happens.
"""

from __future__ import annotations

import re
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

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(580)]


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


def known_good(session: Session) -> list[str]:
    """Return five runs that are green; a busy machine has one now and then that is not."""
    found = []
    for _ in range(8):
        status, result = session.run(*SMALL)
        if status == 0:
            found.append(result["run_id"])
        if len(found) == 5:
            return found
    pytest.skip(f"of 8 runs on a whole cluster {len(found)} were green: too noisy to learn from")


@pytest.mark.long
def test_a_rail_at_95_percent_passes_physics_and_fails_the_baseline(apart, sites):
    call(apart, "baseline", "freeze", "known-good", *known_good(apart), "--site", "vcluster")

    with rail_at("190mbit", apart):
        _, without = apart.run(*SMALL)
        site = sites / "vcluster" / "site.toml"
        site.write_text(site.read_text().replace("[site]\n", '[site]\nbaseline = "known-good"\n'))
        looks = [apart.run(*SMALL) for _ in range(2)]
    healthy = [apart.run(*SMALL)[1] for _ in range(2)]

    assert plateau(without, RAIL)["verdict"] == "PASS"
    for status, judged in looks:
        assert (status, plateau(judged, RAIL)["verdict"]) == (1, "FAIL")
        assert "(baseline known-good, " in plateau(judged, RAIL)["reason"]
        # A run whose number strayed is set aside by name when the baseline is frozen.
        assert re.fullmatch(r"baseline known-good, [345] runs", plateau(judged, RAIL)["origin"])
    # Its bounds are 1.5 % here; what else a shared machine does may cost a healthy rail that, once.
    assert "PASS" in {plateau(judged, "rail1")["verdict"] for _, judged in looks}
    assert "PASS" in {plateau(judged, RAIL)["verdict"] for judged in healthy}
