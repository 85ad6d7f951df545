"""One direction of one rail at half rate, at the switch's port where no node sees it.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_session import Session, is_green, is_red

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


FILES = {
    "OsuBandwidth": ROOT / "checks" / "pt2pt" / "pairs.py",
    "TcpSingleFlow": ROOT / "checks" / "ethernet" / "sockets.py",
}


@pytest.mark.usefixtures("half_of_what_vc1_receives")
@pytest.mark.parametrize(
    "check", ["OsuBandwidth", pytest.param("TcpSingleFlow", marks=pytest.mark.long)]
)
def test_half_a_rail_one_way_is_red_with_direction_and_end(session: Session, check: str) -> None:
    _half_is_red(session, check, "-p", "openmpi5")


@pytest.mark.long
@pytest.mark.usefixtures("half_of_what_vc1_receives")
@pytest.mark.parametrize("stack", ["openmpi4", "openmpi5", "mpich5", "intelmpi"])
def test_so_it_is_where_the_mpis_own_launcher_starts_the_ranks(
    session: Session, stack: str, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    shutil.copytree(ROOT / "site-configs" / "vcluster", site)
    text = (site / "site.toml").read_text()
    assert 'launcher = "srun"' in text
    (site / "site.toml").write_text(text.replace('launcher = "srun"', 'launcher = "mpirun"'))
    _half_is_red(session, "OsuBandwidth", "-p", stack, "--site", str(site))


def _half_is_red(session: Session, check: str, *options: str) -> None:
    _, result = session.run("-c", str(FILES[check]), "-n", f"^{check}%", *options)
    legs = {leg["leg"]: leg for leg in result["legs"] if leg["verdict"] != "SKIPPED"}
    half = legs.pop("rail0.back")
    assert is_red(half), half["reason"]
    assert "below the lower bound" in half["reason"]
    if half["verdict"] == "FAIL":  # where others took the cores, that is all that can be said
        assert "vc2 -> vc1 of rail0: " in half["reason"]
        assert "vc1 receives or vc2 sends too little" in half["reason"]
    assert legs
    for leg in legs.values():
        assert is_green(leg), leg["reason"]
