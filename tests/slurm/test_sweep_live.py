"""A planted bad algorithm on a real Slurm: the sweep finds it, and names what mends it.

Opt in: ``pytest -m slurm`` with a virtual cluster up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FABRICPROOF = ROOT / "bin" / "fabricproof"
CLUSTER = os.environ.get("FABRICPROOF_VCLUSTER", "vcluster")
BIN = Path("/run/fabricproof/vcluster") / CLUSTER / "bin"

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not BIN.is_dir(), reason=f"no virtual cluster {CLUSTER!r} is up"),
]

#: Bruck's alltoall, made for short messages: 2.3 times as long as others at 32 KiB (measured).  In
#: the MPI's own file of parameters, as a system may have one: the sweep cannot see who set it.
PLANT = "coll_tuned_use_dynamic_rules = 1\ncoll_tuned_alltoall_algorithm = 3\n"


@pytest.fixture
def planted() -> Iterator[Path]:
    """Return a site like the virtual cluster's, whose Open MPI is forced to a bad algorithm."""
    # Not below /tmp: every node has its own.
    folder = ROOT / "work" / "slurm-tests" / "planted"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "site-configs" / "vcluster", folder / "site")
    path = folder / "site" / "site.toml"
    text = path.read_text(encoding="utf-8").replace('name = "vcluster"', 'name = "planted"', 1)
    (folder / "plant.conf").write_text(PLANT, encoding="utf-8")
    settings = f'OMPI_MCA_mca_base_param_files = "{folder}/plant.conf"'
    old = 'environment = { OMPI_MCA_btl_tcp_links = "2"'
    assert old in text
    path.write_text(text.replace(old, f"{old}, {settings}"), encoding="utf-8")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def call(folder: Path, *arguments: str) -> dict[str, Any]:
    ended = subprocess.run(
        [str(FABRICPROOF), *arguments, "--site", str(folder / "site"), "--json"],
        env={
            **os.environ,
            "FABRICPROOF_VCLUSTER": CLUSTER,
            "FABRICPROOF_PERFLOGS": str(folder / "perflogs"),
            "FABRICPROOF_WORK": str(folder / "work"),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.stdout, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def sweep(folder: Path, stack: str) -> dict[str, Any]:
    check = "AlgorithmSweep.*fabric=eth0.*collective=alltoall"
    (leg,) = call(folder, "run", "-n", check, "-p", stack)["legs"]
    return leg  # type: ignore[no-any-return]


@pytest.mark.long
@pytest.mark.parametrize("stack", ["openmpi4", "openmpi5"])
def test_a_planted_algorithm_is_found_and_what_mends_it(planted: Path, stack: str) -> None:
    # Noise may leave a sweep open; it is never green, and one of three says what is wrong.
    for _ in range(3):
        found = sweep(planted, stack)
        if found["verdict"] != "UNJUDGED":
            break
    assert found["verdict"] == "FAIL", found
    assert "OMPI_MCA_coll_tuned_alltoall_algorithm=" in found["reason"]


def test_a_file_of_rules_that_the_nodes_cannot_read_is_no_measurement(
    planted: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "coll_tuned.conf"
    rules.write_text("0\n")
    path = planted / "site" / "site.toml"
    name = "OMPI_MCA_mca_base_param_files"
    setting = f'OMPI_MCA_coll_tuned_dynamic_rules_filename = "{rules}", {name}'
    path.write_text(path.read_text(encoding="utf-8").replace(name, setting), encoding="utf-8")
    lost = sweep(planted, "openmpi4")
    assert lost["verdict"] == "MISSING"
    assert "cannot read" in lost["reason"]
