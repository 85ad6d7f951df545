"""The check ``AllPairsRound`` under real ReFrame and Slurm: a rail that receives slowly.

Opt in: ``pytest -m slurm`` with a virtual cluster of four nodes up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_session import Session, is_green, is_red

ROOT = Path(__file__).parents[2]
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(500)]


@pytest.fixture
def slow_receive_side(session: Session) -> Iterator[None]:
    """Let vc2's rail1 receive at 30 % of its rate."""
    del session  # it says whether a cluster is up
    command = [ROOT / "bin" / "fabricproof", "vcluster", "fault", "--name", CLUSTER]
    command += ["vc2", "rail1"]
    subprocess.run([*command, "--rate", "30%", "--direction", "in"], check=True, timeout=60)
    yield
    subprocess.run([*command, "--clear"], check=True, timeout=60)


@pytest.mark.usefixtures("slow_receive_side")
def test_a_check_names_the_rail_that_receives_slowly_and_leaves_the_other_alone(
    session: Session,
) -> None:
    check = str(ROOT / "checks" / "multirail" / "all_pairs.py")
    status, result = session.run("-c", check, "-n", "^AllPairsRound%", "-t", "ethernet")
    legs = {leg["leg"]: leg for leg in result["legs"] if leg["verdict"] != "SKIPPED"}
    assert status in {1, 5}, legs
    assert is_red(legs["rail1"]), legs["rail1"]
    assert is_green(legs["rail0"]), legs["rail0"]
    assert "vc2 rail1 receives at 3" in legs["rail1"]["reason"]
    texts = [each["text"] for leg in legs.values() for each in leg["findings"]]
    named = [line for line in texts if " receives at " in line]
    # What was open at first is measured again, and says what each look said.
    assert all("vc2 rail" in line for line in named), named
    # osu_bw saw it too: of a rail, or of both together, on two nodes of which one is vc2.
    looks = [leg for road, leg in legs.items() if road.endswith(".confirm")]
    assert looks
    assert all("vc2" in leg["nodes"] for leg in looks)
