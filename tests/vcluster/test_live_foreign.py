"""A Slurm as somebody else set it up: no accounts, shared nodes.  As root: pytest -m vcluster.

What a site says is what ``site init`` finds; what is asserted is who judges and why, and that
bandwidth on a clean rail is green.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricproof.core.errors import ExitStatus
from fabricproof.stacks.environment import stacks_root
from vcluster.paths import Paths, project_root

pytestmark = [pytest.mark.vcluster, pytest.mark.timeout(560)]

_NAME = "foreignlive"
_STACK = "openmpi5"
_FABRICPROOF = [sys.executable, "-m", "fabricproof.cli"]


def _call(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_FABRICPROOF, *words], env=environment, capture_output=True, text=True, timeout=400,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Bring up a cluster with neither accounts nor nodes of one's own; give its environment."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if not (stacks_root() / _STACK).is_dir():
        pytest.skip(f"needs {_STACK}: fabricproof stack install {_STACK}")
    folder, paths = tmp_path_factory.mktemp("foreign"), Paths(_NAME)
    environment = {
        **os.environ,
        "FABRICPROOF_VCLUSTER": _NAME,
        "FABRICPROOF_SITES": str(folder / "sites"),
        "FABRICPROOF_PERFLOGS": str(folder / "perflogs"),
        # Not below /tmp: every node has its own.
        "FABRICPROOF_WORK": str(project_root() / "work" / "foreign-tests"),
        "PATH": f"{paths.bin}{os.pathsep}{os.environ['PATH']}",
        "SLURM_CONF": str(paths.slurm_conf),
    }
    (folder / "sites").mkdir()
    options = ["--nodes", "2", "--rate", "150mbit", "--no-accounting"]
    options += ["--slurm", "PartitionName=DEFAULT OverSubscribe=FORCE:4"]
    try:
        done = _call(environment, "vcluster", "up", *options)
        assert done.returncode == 0, done.stderr
        done = _call(environment, "site", "init", "foreign")
        assert done.returncode == 0, done.stderr
        yield environment
    finally:
        done = _call(environment, "vcluster", "down")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def site(foreign: dict[str, str]) -> Iterator[Path]:
    """Give the site's file, and put back what ``site init`` wrote."""
    path = Path(foreign["FABRICPROOF_SITES"]) / "foreign" / "site.toml"
    written = path.read_text(encoding="utf-8")
    yield path
    path.write_text(written, encoding="utf-8")


def _jobs() -> list[str]:
    listed = subprocess.run(
        [Paths(_NAME).bin / "squeue", "-h", "-t", "all", "-o", "%i"],
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.split()


def _without_license(site: Path, *, max_jobs: int) -> None:
    """Make the site one of a cluster that has no license for the fabric."""
    text = site.read_text(encoding="utf-8").replace("--licenses=fabric:1", "--exclusive")
    lines = [line for line in text.splitlines() if not line.startswith("max_jobs")]
    lines.insert(lines.index("[[partitions]]") + 1, f"max_jobs = {max_jobs}")
    site.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_neither_database_nor_its_daemon_runs(foreign: dict[str, str]) -> None:
    seen = json.loads(_call(foreign, "vcluster", "status", "--json").stdout)
    assert seen["healthy"]
    assert seen["accounting"] is None
    assert seen["head"] == {"munged": True, "slurmctld": True}


def test_site_init_writes_the_backend_that_fits(foreign: dict[str, str], site: Path) -> None:
    assert 'scheduler = "squeue"' in site.read_text(encoding="utf-8")
    done = _call(foreign, "site", "check", "foreign")
    assert done.returncode == 0, done.stderr
    assert "OverSubscribe=FORCE:4" in done.stdout


def test_what_would_measure_beside_itself_is_refused_before_any_job(
    foreign: dict[str, str], site: Path
) -> None:
    _without_license(site, max_jobs=8)
    before = _jobs()
    for words in (["site", "check", "foreign"], ["run", "--site", "foreign", "-t", "quick"]):
        done = _call(foreign, *words)
        assert done.returncode == ExitStatus.CONFIG, done.stderr
        assert "max_jobs = 1" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert _jobs() == before


def test_bandwidth_is_green_without_accounts_one_job_at_a_time(
    foreign: dict[str, str], site: Path
) -> None:
    _without_license(site, max_jobs=1)
    selection = ["-t", "quick", "-n", "OsuBandwidth", "-p", _STACK]
    done = _call(foreign, "run", "--site", "foreign", "--json", *selection)
    assert "OverSubscribe=FORCE:4" in done.stderr
    record = json.loads(done.stdout)
    legs = [leg for leg in record["legs"] if leg["verdict"] != "SKIPPED" and not leg["relation"]]
    assert {leg["leg"] for leg in legs} == {"rail0", "rail0.back", "rail1", "rail1.back"}
    assert {leg["verdict"] for leg in legs} == {"PASS"}, legs
    assert done.returncode == 0
