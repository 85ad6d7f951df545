"""A real Spack builds one stack, and finds it as it was (opt in).

FABRICPROOF_TEST_SPACK=/path/of/spack pytest -m spack.  Open MPI is the one of
``fabricproof stack install openmpi5``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabricproof.stacks.environment import stacks_root

pytestmark = [pytest.mark.spack, pytest.mark.timeout(3000)]

TESTED = os.environ.get("FABRICPROOF_TEST_SPACK", "")
SITE = Path(__file__).parents[3] / "site-configs" / "vcluster-spack"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A root of stacks with a site folder of its own."""

    root: Path
    site: Path

    def run(self, *arguments: object) -> str:
        """Call ``fabricproof stack``; return what it prints on its standard output."""
        words = [*map(str, arguments), "--site", str(self.site)]
        command = [sys.executable, "-m", "fabricproof.cli", "stack", *words]
        done = subprocess.run(
            command,
            check=False,
            env={**os.environ, "FABRICPROOF_STACKS": str(self.root)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1800,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def build(self, *options: object) -> dict:
        return json.loads(self.run("build", "openmpi", "--json", *options))[0]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    if not TESTED:
        pytest.skip("set FABRICPROOF_TEST_SPACK to a Spack's folder")
    if not (Path(TESTED) / "bin" / "spack").is_file():
        pytest.skip(f"there is no Spack in {TESTED}")
    if not (stacks_root() / "openmpi5" / "bin" / "mpicc").exists():
        pytest.skip("needs an Open MPI: fabricproof stack install openmpi5")
    folder = tmp_path_factory.mktemp("online")
    site = folder / "vcluster-spack"
    shutil.copytree(SITE, site, ignore=shutil.ignore_patterns("locks"))
    packages = site / "spack" / "packages.yaml"
    text = packages.read_text().replace("${FABRICPROOF_STACKS}", str(stacks_root()))
    packages.write_text(text)
    return Place(root=folder / "stacks", site=site)


@pytest.fixture(scope="module")
def built(place: Place) -> dict:
    return place.build("--spack", TESTED)


def test_a_stack_is_built_and_proven(built: dict):
    assert not built["stood"]
    assert built["library"].endswith("openmpi5/lib/libmpi.so.40")
    assert built["programs"]["osu"]["version"] == "7.2"
    assert len(built["lock_digest"]) == 64


def test_the_second_time_takes_no_time(place: Place, built: dict):
    begin = time.monotonic()
    again = place.build("--spack", TESTED)
    assert again["stood"]
    assert again["lock_digest"] == built["lock_digest"]
    assert time.monotonic() - begin < 10.0


def test_the_site_has_the_lock_and_spack_was_not_written_to(place: Place, built: dict):
    sites = place.site / "spack" / "locks" / "openmpi.lock"
    assert built["lock"] == str(sites)
    assert sites.is_file()
    begin = (place.site / "site.toml").stat().st_ctime
    settings = (Path(TESTED) / "etc" / "spack").rglob("*.yaml")
    assert [path for path in settings if path.stat().st_mtime > begin] == []


def test_the_module_leads_to_the_programs(place: Place, built: dict):
    text = (Path(built["module_path"]) / f"{built['module']}.lua").read_text()
    assert built["programs"]["osu"]["prefix"] in text
    assert built["environment"]["prepend"]["PATH"] in text


def test_a_removed_program_is_noticed(place: Place, built: dict):
    program = Path(built["programs"]["imb"]["prefix"]) / "bin" / "IMB-MPI1"
    away = program.rename(program.with_name("away"))
    try:
        records = json.loads(place.run("list", "--json"))
    finally:
        away.rename(program)
    state = next(each for each in records if each["name"] == "openmpi")
    assert state["state"] == "stale"
    assert str(program) in state["label"]
