"""One direction of one rail at half rate, at the switch's port where no node sees it.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FABRICPROOF = ROOT / "bin" / "fabricproof"
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
BIN = Path("/run/fabricproof/vcluster") / CLUSTER / "bin"

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not BIN.is_dir(), reason=f"no virtual cluster {CLUSTER!r} is up"),
]


def _fault(*arguments: str) -> None:
    command = [str(FABRICPROOF), "vcluster", "fault", "--name", CLUSTER, "vc1", "rail0"]
    subprocess.run([*command, *arguments], check=True, timeout=60)


@pytest.fixture
def half_of_what_vc1_receives() -> Iterator[None]:
    _fault("--rate", "100mbit", "--direction", "in")
    yield
    _fault("--clear")


@pytest.mark.usefixtures("half_of_what_vc1_receives")
@pytest.mark.parametrize("check", ["OsuBandwidth", "TcpSingleFlow"])
def test_half_a_rail_one_way_is_red_with_direction_and_end(check: str) -> None:
    done = subprocess.run(
        [str(FABRICPROOF), "run", "--site", "vcluster", "--json", "-n", check, "-p", "openmpi5"],
        env={**os.environ, "FABRICPROOF_VCLUSTER": CLUSTER},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    legs = {leg["road"]: leg for leg in json.loads(done.stdout)["legs"] if leg["road"]}
    assert [road for road, leg in legs.items() if leg["verdict"] == "FAIL"] == ["rail0.back"]
    assert "vc2 -> vc1 of rail0: " in legs["rail0.back"]["reason"]
    assert "vc1 receives or vc2 sends too little" in legs["rail0.back"]["reason"]
