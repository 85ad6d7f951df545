"""``site init`` on a live virtual cluster: the head sees its nodes by a real job (opt in)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER") or "vcluster"


@pytest.mark.slurm
@pytest.mark.timeout(120)
def test_the_head_writes_the_site_of_its_nodes(request: pytest.FixtureRequest) -> None:
    if "slurm" not in request.config.getoption("markexpr"):
        pytest.skip("opt in: pytest -m slurm")
    if not (Path("/run/fabricproof/vcluster") / CLUSTER / "bin").is_dir():
        pytest.skip(f"no virtual cluster {CLUSTER!r} is up")
    fabricproof = str(ROOT / "bin" / "fabricproof")
    on_the_head = ["vcluster", "exec", "--name", CLUSTER, "head", "--"]
    init = [fabricproof, "site", "init", "found", "--stdout", "--json"]
    done = subprocess.run(
        [fabricproof, *on_the_head, *init], capture_output=True, text=True, timeout=110, check=True
    )
    record = json.loads(done.stdout)
    assert record["hosts"]["head"] == "head"
    assert record["hosts"]["compute"].startswith("vc")
    assert record["troubles"] == []
    assert record["fabrics"]["eth0"]["rails"][0] == "rail0"
    assert "mgmt0: virtual and not shaped" in record["files"]["fabric.toml"]
