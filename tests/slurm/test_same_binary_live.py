"""One program under two MPIs, for real: IMB of the wheels, and OSU and IMB built against the ABI.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).  Folders of
OSU and IMB that were built with ``mpicc_abi`` (docs/stacks.md) are named by FABRICPROOF_ABI_OSU and
FABRICPROOF_ABI_IMB, outside of /tmp: every node has its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from slurm_session import ROOT, Session, is_green

from fabricproof.stacks.environment import stacks_root

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

SITE = ROOT / "site-configs" / "vcluster"
PAIRS = ROOT / "checks" / "pt2pt" / "pairs.py"
STACKS = ("mpich5", "intelmpi")


def _suite_of(suite: str) -> tuple[str, str]:
    """Return the name and the folder of a suite that both stacks run."""
    if suite == "imb of the wheel":
        return "imb", str(stacks_root() / "intelmpi" / "bin")
    name = suite.partition(" ")[0]
    variable = f"FABRICPROOF_ABI_{name.upper()}"
    if variable not in os.environ:
        pytest.skip(f"{variable} names no folder of {name} that was built against the MPI ABI")
    return name, os.environ[variable]


def _site(folder: Path, suite: str, where: str) -> Path:
    """Write the cluster's site, of which two stacks name one folder of a suite."""
    shutil.copytree(SITE, folder)
    text = (folder / "site.toml").read_text()
    for stack in STACKS:
        line = f'suites = {{ {suite} = "{where}" }}\n'
        text, count = re.subn(f'(?m)^(name = "{stack}"\n)', rf"\1{line}", text)
        assert count == 1
    (folder / "site.toml").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("suite", "check"),
    [
        ("imb of the wheel", "ImbPingPong"),
        ("imb of the abi", "ImbPingPong"),
        ("osu of the abi", "OsuBandwidth"),
    ],
)
def test_one_program_runs_under_two_mpis(
    session: Session, tmp_path: Path, suite: str, check: str
) -> None:
    name, where = _suite_of(suite)
    site = _site(tmp_path / "site", name, where)
    own = replace(
        session, environment={**session.environment, "FABRICPROOF_PERFLOGS": str(tmp_path / "logs")}
    )
    stacks = [word for stack in STACKS for word in ("-p", f"^{stack}$")]
    _, run = own.run("--site", str(site), "-c", str(PAIRS), "-n", f"^{check}%", *stacks)
    legs = [leg for leg in run["legs"] if leg["verdict"] != "SKIPPED"]
    assert {leg["stack"] for leg in legs} == set(STACKS), run["legs"]
    assert all(map(is_green, legs)), legs
    (digest,) = {record["binary"] for record in _records(tmp_path / "logs")}
    assert re.fullmatch("[0-9a-f]{64}", digest)


def _records(logs: Path) -> list[dict[str, Any]]:
    lines = [line for file in logs.rglob("*T*Z-*.jsonl") for line in file.read_text().splitlines()]
    legs = [each for each in map(json.loads, lines) if each.get("kind") == "leg"]
    return [each for each in legs if not each["relation"]]
