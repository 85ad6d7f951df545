"""What a real site meets on its first day, on a real Slurm: access, names, own settings and checks.

pytest -m slurm tests/slurm/test_any_site_live.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from slurm_session import ROOT, Session, is_green

pytestmark = pytest.mark.slurm

#: the settings of a site that names its partitions and environments as its site file does
SETTINGS = """
site_configuration = {
    "systems": [{"name": "vcluster", "hostnames": [".*"], "modules_system": "nomod",
        "partitions": [{"name": "compute", "scheduler": "slurm", "launcher": "srun",
            "access": ["-p compute"], "environs": ["openmpi5"],
            "prepare_cmds": [". /usr/share/lmod/lmod/init/bash", "module use MODULES",
                "module load openmpi5"]}]}],
    "environments": [{"name": "openmpi5", "features": ["mpi"]}],
}
"""

#: the lines that docs/how-to-add-a-site.md adds
EXTENDED = """
from fabricproof.rfm import extend

site_configuration = extend(site_configuration, site="vcluster")
"""


def _site(session: Session, partition: str, access: str) -> str:
    """Copy the virtual cluster's site with another partition of it, where its nodes see it."""
    site = Path(session.environment["FABRICPROOF_WORK"]) / "sites" / partition
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(ROOT / "site-configs" / "vcluster", site)
    (site / "roll.json").unlink()
    path = site / "site.toml"
    text = path.read_text().replace('name = "vcluster"', f'name = "of_{partition}"')
    text = text.replace('name = "compute"', f'name = "{partition}"')
    path.write_text(text.replace('"--partition=compute", ', access))
    return str(site)


@pytest.mark.parametrize(
    ("partition", "access"), [("mine", '"-A root -p compute", '), ("night", "")]
)
def test_nodes_are_chosen_where_sbatch_puts_the_job(
    session: Session, partition: str, access: str
) -> None:
    """Before: 0 nodes of "mine" can be had, all SKIPPED; and records of "night" passed over."""
    site = _site(session, partition, access)
    choice = ("-c", str(ROOT / "checks" / "multirail" / "all_pairs.py"), "-n", "^AllPairsRound")
    _, result = session.run("--site", site, *choice, "-p", "openmpi5")
    legs = [leg for leg in result["legs"] if not leg["fabric"].startswith("no-")]
    assert legs
    assert all(is_green(leg) for leg in legs), legs
    assert {node for leg in legs for node in leg["nodes"]} == {"vc1", "vc2", "vc3", "vc4"}
    _, runs = session.ask("runs", "--site", site)
    assert [each["run_id"] for each in runs["runs"]] == [result["run_id"]]


def test_a_site_s_own_check_runs_with_srun_and_is_judged_by_its_reference(session: Session) -> None:
    own = str(ROOT / "tests" / "rfm" / "house" / "own.py")
    choice = ("-c", own, "-n", "OwnTooSlow|OwnUnjudged|OwnSanity", "-p", "openmpi5")
    status, result = session.run(*choice)
    legs = {leg["check"]: leg for leg in result["legs"]}
    verdicts = {name: leg["verdict"] for name, leg in legs.items()}
    assert verdicts == {"OwnTooSlow": "FAIL", "OwnUnjudged": "UNJUDGED", "OwnSanity": "SKIPPED"}
    assert status == 1
    script = Path(legs["OwnTooSlow"]["stage_folder"]) / "rfm_job.sh"
    assert "srun echo" in script.read_text()


@pytest.mark.parametrize("extended", [True, False])
def test_our_checks_under_a_site_s_own_settings_measure_or_fail(
    session: Session, tmp_path: Path, extended: bool
) -> None:
    """As docs/how-to-add-a-site.md types it, and without the two lines that it adds."""
    settings = tmp_path / "settings.py"
    text = SETTINGS.replace("MODULES", str(ROOT / ".stacks" / "modulefiles"))
    settings.write_text(text + (EXTENDED if extended else ""))
    report = tmp_path / "report.json"
    cluster = Path("/run/fabricproof/vcluster") / session.environment["FABRICPROOF_VCLUSTER"]
    place = Path(session.environment["FABRICPROOF_WORK"]) / "stock"
    ended = subprocess.run(
        [
            *(Path(sys.executable).parent / "reframe", "-C", settings, "--prefix", place, "-r"),
            *(
                "-c",
                ROOT / "checks" / "pt2pt" / "pairs.py",
                "-n",
                "^OsuBandwidth",
                "-p",
                "openmpi5",
            ),
            *("--report-file", report),
        ],
        env={
            **session.environment,
            "PATH": f"{cluster / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "SLURM_CONF": str(cluster / "etc" / "slurm.conf"),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    cases = [case for run in json.loads(report.read_text())["runs"] for case in run["testcases"]]
    there = [case for case in cases if case["result"] != "skip"]
    assert there, ended.stdout
    if extended:
        assert all("MB/s" in str(case["perfvalues"]) for case in there), ended.stdout
        assert "\nPASS  vcluster, run " in ended.stdout, ended.stdout
    else:
        assert ended.returncode == 1
        assert "these checks need a site of fabricproof" in ended.stdout
