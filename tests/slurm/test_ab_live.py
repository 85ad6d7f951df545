"""An interleaved comparison on the virtual cluster: a rail that is halved, in turn."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FABRICPROOF = Path(sys.executable).parent / "fabricproof"
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")

BIN = Path("/run/fabricproof/vcluster") / CLUSTER / "bin"

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not BIN.is_dir(), reason=f"no virtual cluster {CLUSTER!r} is up"),
]


def fault(*what: str) -> str:
    """Return the command that puts a fault into rail 1 of vc2."""
    return " ".join(map(str, (FABRICPROOF, "vcluster", "fault", "--name", CLUSTER, "vc2", *what)))


@pytest.fixture
def call(tmp_path: Path) -> Any:
    """Return how to call ``fabricproof`` on a copy of the site that can halve a rail."""
    site = tmp_path / "site"
    shutil.copytree(ROOT / "site-configs" / "vcluster", site)
    with (site / "site.toml").open("a") as file:
        file.write(
            f"\n[switches.halved]\na = '{fault('rail1', '--clear')}'\n"
            f"b = '{fault('rail1', '--rate', '100mbit')}'\nsettle_seconds = 1\n"
        )
    environment = {
        **os.environ,
        "FABRICPROOF_VCLUSTER": CLUSTER,
        # Not below /tmp: every node has its own.
        "FABRICPROOF_WORK": str(ROOT / "work" / "slurm-tests"),
        "FABRICPROOF_PERFLOGS": str(tmp_path / "perflogs"),
    }

    def call(*arguments: str) -> tuple[int, dict[str, Any]]:
        ended = subprocess.run(
            [FABRICPROOF, *arguments, "--site", site, "--json"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=540,
            check=False,
        )
        assert ended.stdout, ended.stderr
        return ended.returncode, json.loads(ended.stdout)

    yield call
    subprocess.run(fault("rail1", "--clear"), shell=True, check=False, timeout=60)


@pytest.mark.long
def test_a_halved_rail_is_worse_and_the_other_is_not(call: Any) -> None:
    """Six rounds: WORSE, by about half, on rail 1; the shaping is the one thing that differs."""
    call("ab", "plan", "halved", "--rounds", "6", "--seed", "1")
    status, found = call("ab", "run", "halved", "-n", "OsuBandwidth", "-p", "openmpi4")
    assert (status, found["overall"]) == (1, "WORSE"), found["reason"]
    named = {
        each["key"]["leg"]: each["shift"]
        for each in found["quantities"]
        if each["key"]["quantity"] == "bandwidth_1MiB"
    }
    assert named["rail1"]["change"] == "WORSE"
    assert named["rail1"]["ratio"] == pytest.approx(0.5, abs=0.1)
    assert named["rail0"]["change"] != "WORSE"
    changed = {(each["part"], each["fact"]) for each in found["changes"]}
    assert ("interface rail1", "shaped_to_mbit_s") in changed
    _, plan = call("ab", "show", "halved")
    assert plan["switched"] == ""
