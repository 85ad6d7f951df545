"""The gallery of published systems: each is loaded, listed, and its job scripts are approved.

``python tests/site/test_gallery.py`` writes the approved copies anew; read the change.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.core.project import ENTRY_POINT, project_root
from fabricproof.nodes.discover import find_guesses
from fabricproof.site import check_access, gallery_folders, load_site, site_folders
from fabricproof.site.load import sites_root

APPROVED = Path(__file__).parent / "data" / "gallery"
CHECKS = "^(OsuBandwidth|OsuAlltoallRails|OsuAllRailsBandwidth|Preflight\\w*)%"
GALLERY = pytest.mark.parametrize("folder", gallery_folders(), ids=lambda folder: folder.name)


def reframe(folder: Path, prefix: Path, *arguments: str) -> str:
    """Return what ReFrame prints for a system of the gallery; it must end well."""
    environment = {
        **os.environ,
        "FABRICPROOF_SITE": str(folder),
        "FABRICPROOF_PERFLOGS": str(prefix / "perflogs"),
        "FABRICPROOF_REFRAME_LOG": str(prefix / "reframe.log"),
        "SBATCH_ACCOUNT": "project_1",
    }
    command = [str(Path(sys.executable).with_name("reframe")), "-C", ENTRY_POINT, "--nocolor"]
    return subprocess.run(
        [*command, f"--prefix={prefix}", *arguments],
        env=environment, cwd=project_root(), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def job_scripts(folder: Path, prefix: Path) -> str:
    """Return what a dry run of some checks writes that depends on the site, check by check."""
    reframe(folder, prefix, "--dry-run", "--keep-stage-files", "-n", CHECKS)
    parts = []
    for job in sorted(prefix.glob("stage/*/*/*/*/rfm_job.sh")):
        name = re.sub(r"_[0-9a-f]{8}$", "", job.parent.name)
        lines = re.findall(
            r"^(?:#SBATCH (?!--job-name|--out|--err)|module |source |export ).*",
            job.read_text(),
            re.M,
        )
        legs = re.split(r"^(?=leg_\w+\(\) )", (job.parent / "legs.sh").read_text(), flags=re.M)[1:]
        shown = [legs[0], legs[-1]] if len(legs) > 1 else legs
        parts += [
            f"== {job.parents[2].name} {job.parents[1].name} {name}, {len(legs)} legs",
            *lines,
        ]
        parts += [line for leg in shown for line in _start(leg)]
    return "\n".join(parts) + "\n"


def _start(leg: str) -> list[str]:
    """Return what a leg's first command is started with, up to the program."""
    lines = leg.split("\n}\n", maxsplit=1)[0].split(" &&\n", maxsplit=1)[0].splitlines()
    alike = re.compile(r" +(timeout -k|env FABRICPROOF_PART)")
    kept = [line.strip(" \\") for line in lines if not alike.match(line)]
    return [re.sub(r"(\"\$here/rank\.sh\" \S+).*", r"\1", line) for line in kept]


@GALLERY
def test_a_system_has_its_sources_and_is_no_site_of_this_machine(folder: Path) -> None:
    site = load_site(str(folder))
    assert site.name == folder.name
    assert folder.parent == sites_root() / "gallery"
    assert folder not in site_folders()
    for file in ("site.toml", "fabric.toml"):
        assert "# source: https://" in (folder / file).read_text()


@GALLERY
def test_a_system_is_listed_and_its_job_scripts_are_those_that_were_approved(
    folder: Path, tmp_path: Path
) -> None:
    listed = re.search(r"Found (\d+) check", reframe(folder, tmp_path, "-l"))
    assert listed
    assert int(listed[1]) > 50
    assert job_scripts(folder, tmp_path) == (APPROVED / f"{folder.name}.txt").read_text()


@GALLERY
def test_a_site_begins_like_a_published_system(
    fabricproof: Callable[..., Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_SITES", str(tmp_path))
    ended = fabricproof("site", "init", "ours", "--like", folder.name)
    assert ended.status == 0
    assert "next: fabricproof site check ours" in ended.out
    site = load_site("ours")
    assert (site.name, site.spec.hostnames) == ("ours", [])
    text = (tmp_path / "ours" / "site.toml").read_text()
    assert len(find_guesses("site.toml", text)) >= 1
    assert site.partitions == load_site(str(folder)).partitions


def test_a_system_that_is_not_there_has_a_likely_name(fabricproof: Callable[..., Any]) -> None:
    ended = fabricproof("site", "init", "ours", "--like", "lumii")
    assert ended.status == 78
    assert "'lumi' perhaps" in ended.err


def test_an_account_that_is_not_set_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SBATCH_ACCOUNT", raising=False)
    with pytest.raises(ConfigError, match="SBATCH_ACCOUNT to be set"):
        check_access(load_site(str(sites_root() / "gallery" / "lumi")))


if __name__ == "__main__":
    APPROVED.mkdir(parents=True, exist_ok=True)
    for each in gallery_folders():
        with tempfile.TemporaryDirectory() as scratch:
            (APPROVED / f"{each.name}.txt").write_text(job_scripts(each, Path(scratch)))
