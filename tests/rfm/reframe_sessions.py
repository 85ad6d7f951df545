"""The few ReFrame runs that all tests of this folder look at: each costs seconds, so each once."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fabricproof.cli.measure.run import accept
from fabricproof.site import load_site
from fabricproof.site.roll import write_roll

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

#: what the pretended site is due to measure; two of these never come to run
DUE = ("Well", "CannotLoad", "Namesake", "Elsewhere", "Columns")


@dataclass(frozen=True, kw_only=True)
class HouseRun:
    """How ``fabricproof run`` ended on the pretended site."""

    status: int
    record: dict[str, Any]
    project: Path
    reports: list[dict[str, Any]] = field(default_factory=list)
    built: list[str] = field(default_factory=list)
    """The stacks that a pretended Spack was asked to build, in that order."""

    def legs(self, check: str) -> list[dict[str, Any]]:
        """The legs of one check over the site's fabric, as ``--json`` tells them."""
        return [
            leg
            for leg in self.record["legs"]
            if leg["check"] == check and not leg["fabric"].startswith("no-")
        ]

    def leg(self, check: str) -> dict[str, Any]:
        """The only leg of one check."""
        (leg,) = self.legs(check)
        return leg

    def case(self, check: str) -> dict[str, Any]:
        """What ReFrame itself reported of one check."""
        (case,) = [
            case
            for report in self.reports
            for run in report["runs"]
            for case in run["testcases"]
            if case["name"] == f"{check} %fabric=eth0"
        ]
        return case


#: settings that a site's profile may name for everybody
CALLERS = """
site_configuration = {
    "systems": [{"name": "hpcville", "hostnames": [".*"], "partitions": [
        {"name": "login", "scheduler": "local", "launcher": "local", "environs": ["gnu"]}]}],
    "environments": [{"name": "gnu"}],
    "general": [{"check_search_path": ["/nowhere"], "trap_job_errors": False}],
}
"""


@contextlib.contextmanager
def _house(project: Path, column: str, site: str, checks: str) -> Iterator[None]:
    """Make ``project`` the project, with this folder's site, checks and pretended programs."""
    shutil.copytree(HERE / site, project / "site", dirs_exist_ok=True)
    shutil.copytree(HERE / checks, project / "checks", dirs_exist_ok=True)
    shutil.copy(ROOT / "reframe_settings.py", project)
    (project / "stacks").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fabricproof.cli.measure.run.project_root", lambda: project)
        patch.setenv("FABRICPROOF_TESTS_BIN", str(HERE / "bin"))
        patch.setenv("FABRICPROOF_TESTS_BUILD", str(HERE / "pretended_build.py"))
        patch.setenv("FABRICPROOF_STACKS", str(project / "stacks"))
        patch.setenv("TRAPS_MARK", str(project / "mark"))
        patch.setenv("TRAPS_COLUMN", column)
        # Guards that the caller's environment must not be able to switch off.
        patch.setenv("RFM_TRAP_JOB_ERRORS", "no")
        # Settings of the caller's own, which ours follow.
        (project / "callers.py").write_text(CALLERS, encoding="utf-8")
        patch.setenv("RFM_CONFIG_FILES", str(project / "callers.py"))
        for name in ("FABRICPROOF_WORK", "FABRICPROOF_PERFLOGS", "FABRICPROOF_SITE"):
            patch.delenv(name, raising=False)
        yield


def run_house(project: Path, arguments: Sequence[str], *, column: str) -> HouseRun:
    """Run ``fabricproof run ARGUMENTS --json`` on the pretended site, below ``project``."""
    due = [
        {"check": name, "fabric": "eth0", "partition": "node", "stack": "fake", "tags": ["trap"]}
        for name in DUE
    ]
    return _run(project, arguments, due, column=column, site="site", checks="house")


def run_queue(project: Path) -> HouseRun:
    """Run on the pretended site as one of a Slurm that keeps no accounts."""
    shutil.copytree(HERE / "site", project / "queue_site")
    path = project / "queue_site" / "site.toml"
    text = path.read_text(encoding="utf-8").replace('"local"', '"squeue"')
    folders = f'path = ["{HERE / "slurm_bin"}", '
    path.write_text(text.replace("path = [", folders), encoding="utf-8")
    return _run(
        project,
        ["-t", "trap"],
        (),
        column="",
        site=str(project / "queue_site"),
        checks="queue_house",
    )


def run_builds(
    project: Path, arguments: Sequence[str], due: Sequence[dict[str, Any]] = ()
) -> HouseRun:
    """Run likewise on the site whose stacks a pretended Spack builds."""
    return _run(project, arguments, due, column="", site="spack_site", checks="spack_house")


def _run(
    project: Path,
    arguments: Sequence[str],
    due: Sequence[dict[str, Any]],
    **house: str,
) -> HouseRun:
    out = io.StringIO()
    before = set(project.glob("perflogs/reports/*.json"))
    asked = project / "stacks" / "builds.txt"
    asked.unlink(missing_ok=True)
    with _house(project, **house), contextlib.redirect_stdout(out):
        write_roll(project / "site", due)
        site = load_site(str(project / "site"))
        status = accept(site, ["-r", *arguments], shown="json")
    reports = set(project.glob("perflogs/reports/*.json")) - before
    text = out.getvalue()
    return HouseRun(
        status=int(status),
        record=json.loads(text) if text else {},
        project=project,
        reports=[json.loads(path.read_text()) for path in reports],
        built=asked.read_text().split() if asked.exists() else [],
    )


@dataclass(frozen=True, kw_only=True)
class StockRun:
    """How ReFrame ended by itself."""

    status: int
    out: str
    cases: dict[str, dict[str, Any]]
    folder: Path


def run_stock(
    folder: Path, *arguments: str, checks: str = str(HERE / "stock"), **variables: str
) -> StockRun:
    """Run ReFrame as it comes on ``checks``, in ``folder``."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RFM_")},
        "PATH": f"{HERE / 'slurm_bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "TRAPS_MARK": str(folder / "mark"),
        "RFM_CONFIG_FILES": str(HERE / "stock_settings.py"),
        "RFM_REPORT_FILE": str(report),
        "RFM_PERFLOG_DIR": str(folder / "perflogs"),
        "RFM_PREFIX": str(folder),
        "RFM_COLORIZE": "no",
        **variables,
    }
    checked = ["-c", checks] if checks else []
    ended = subprocess.run(
        [Path(sys.executable).parent / "reframe", *checked, "-r", *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    runs = json.loads(report.read_text())["runs"] if report.exists() else []
    cases = {case["name"]: case for run in runs for case in run["testcases"]}
    return StockRun(
        status=ended.returncode, out=ended.stdout + ended.stderr, cases=cases, folder=folder
    )
