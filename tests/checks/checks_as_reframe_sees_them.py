"""ReFrame's own view of the shipped checks, asked once for each site; no scheduler, no stacks."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fabricproof.job.run.start import (
    Workplace,
    describe_checks,
    reframe_command,
    session_environment,
)
from fabricproof.site import Site, load_site

ROOT = Path(__file__).parents[2]
CHECKS = ROOT / "checks"
SITES = ROOT / "site-configs"


def session(site: Site, folder: Path) -> dict[str, str]:
    """Return the environment of a session below ``folder``."""
    place = Workplace(project=ROOT, root=folder / "work", perflogs=folder / "perflogs")
    place.log_file("id").parent.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FABRICPROOF_VCLUSTER", "none")  # one that is up has nothing to do with it
        return session_environment(site, place, "id")


@functools.cache
def described(site_name: str) -> list[dict[str, Any]]:
    """Return ``reframe --describe`` of all shipped checks on a site."""
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(project=ROOT, root=Path(folder, "work"), perflogs=Path(folder, "logs"))
        return describe_checks(load_site(str(SITES / site_name)), place)


def reframe(site: Site, folder: Path, *arguments: str, **variables: str) -> str:
    """Run ReFrame for ``site`` and return what it says; it must end well."""
    ended = subprocess.run(
        [reframe_command(), *arguments],
        env=session(site, folder) | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def dry_run(site: Site, folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Let ReFrame write the job scripts without a scheduler; return the cases of its report.

    The programs of a scheduler are pretended: a backend asks for their version when it is made.
    """
    programs = folder / "no-slurm"
    programs.mkdir()
    for name in ("sbatch", "sacct", "scontrol", "sinfo", "squeue", "srun", "scancel"):
        (programs / name).write_text(f"#!/bin/sh\necho pretended {name}\n")
        (programs / name).chmod(0o755)
    reframe(
        site,
        folder,
        "--dry-run",
        *arguments,
        PATH=os.pathsep.join([str(programs), session(site, folder)["PATH"]]),
    )
    report = json.loads((folder / "perflogs" / "reports" / "id.json").read_text())
    cases: list[dict[str, Any]] = report["runs"][0]["testcases"]
    return cases
