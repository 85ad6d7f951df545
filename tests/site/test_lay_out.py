"""What ``fabricproof init`` lays out, from a package that is really built and really read."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError, OutputError, UnavailableError
from fabricproof.core.project import project_root
from fabricproof.site import lay_out as room
from fabricproof.site.lay_out import Laid, lay_out

MATRIX = "a,b,value,unit\n" + "".join(
    f"n{a},n{b},100,MB/s\n" for a in range(6) for b in range(6) if a != b
)
OWN = """
import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark
from fabricproof.rfm.checks.family import family

osu = family(rfm.simple_test, __name__, PairBenchmark, "pt2pt", suite="osu")
osu("OursLatency", "osu_latency", "nightly", "Latency one way, every night")
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """The folder that a built wheel is unpacked to."""
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "pip", "--no-input", "wheel", "--quiet", "--no-deps")
    subprocess.run(
        [*build, "--no-build-isolation", "--wheel-dir", folder, project_root()],
        check=True,
        timeout=100,
    )
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "unpacked")
    return folder / "unpacked"


def call(package: Path, folder: Path, *words: str, **variables: str):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("FABRICPROOF", "RFM"))}
    return subprocess.run(
        [sys.executable, "-m", "fabricproof.cli", *words],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(package)} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.fixture(scope="module")
def laid_out(package, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "fabric"
    done = call(package, folder.parent, "init", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def test_a_wheel_has_every_module(package):
    source = project_root() / "src"
    modules = {each.relative_to(source) for each in source.rglob("*.py")}
    packed = {each.relative_to(package) for each in package.rglob("*.py")}
    assert modules
    assert not modules - packed
    assert not list(package.rglob("*.pyc"))


def test_a_wheel_brings_the_manual_page(package):
    (page,) = package.glob("*.data/data/share/man/man1/fabricproof.1")
    assert page.read_bytes() == (project_root() / "docs" / "fabricproof.1").read_bytes()


def test_a_package_needs_no_checkout(package, tmp_path):
    matrix = tmp_path / "matrix.csv"
    matrix.write_text(MATRIX)
    output = project_root() / "tests" / "replays" / "40gbe_imb_p2p_pingpong.out"
    judged = call(package, tmp_path, "judge", str(output), "--link", "40GbE")
    assert judged.returncode == 3, judged.stderr
    for words in (
        ["parse", str(output)],
        ["ceiling", "--link", "HDR"],
        ["pairs", "judge", str(matrix), "--reference", "100 MB/s"],
        ["compare", "--help"],
    ):
        done = call(package, tmp_path, *words)
        assert done.returncode == 0, done.stderr


def test_sites_and_checks_are_found_in_and_below_the_folder(package, laid_out):
    below = laid_out / "perflogs"
    assert call(package, below, "site", "list").stdout.split() == ["vcluster"]
    elsewhere = call(
        package, laid_out.parent, "site", "list", FABRICPROOF_ROOT=str(laid_out)
    ).stdout
    assert elsewhere.split() == ["vcluster"]
    (laid_out / "checks" / "ours.py").write_text(OWN)
    listed = call(package, laid_out, "reframe", "-l", FABRICPROOF_SITE="vcluster").stdout
    assert "OursLatency" in listed
    assert "OsuLatency" in listed


def test_a_site_beside_settings_of_its_own_needs_nothing_laid_out(package, laid_out, tmp_path):
    site = tmp_path / "mine"
    shutil.copytree(laid_out / "site-configs" / "vcluster", site)
    listed = call(package, tmp_path, "reframe", "--site", str(site), "-l", "-n", "OsuLatency")
    assert "OsuLatency" in listed.stdout, listed.stderr


def test_a_second_time_nothing_is_touched_and_what_differs_is_named(package, laid_out):
    text = (laid_out / "env.sh").read_text()
    (laid_out / "env.sh").write_text("# ours\n")
    done = call(package, laid_out, "init", ".")
    assert "0 written" in done.stdout
    assert "differ: env.sh" in done.stdout
    assert (laid_out / "env.sh").read_text() == "# ours\n"
    (laid_out / "env.sh").write_text(text)


def test_what_is_laid_out_can_be_run(laid_out):
    assert all(os.access(each, os.X_OK) for each in (laid_out / "bin").iterdir())
    assert (laid_out / ".venv").samefile(sys.prefix)


def test_a_checkout_is_laid_out_already(tmp_path):
    with pytest.raises(ConfigError, match="checkout"):
        lay_out(tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_an_environment_of_its_own_nothing_is_written(package, tmp_path, monkeypatch):
    monkeypatch.setattr(room, "shipped", lambda: package / "fabricproof" / "shipped")
    monkeypatch.setattr(room.sys, "prefix", str(tmp_path / "none"))
    with pytest.raises(UnavailableError, match="environment"):
        lay_out(tmp_path / "fabric")
    assert not (tmp_path / "fabric").exists()


def test_a_folder_that_is_a_file_is_said(package, tmp_path, monkeypatch):
    monkeypatch.setattr(room, "shipped", lambda: package / "fabricproof" / "shipped")
    (tmp_path / "fabric").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        lay_out(tmp_path / "fabric")


def test_a_link_to_an_environment_that_is_gone_is_made_anew(package, tmp_path, monkeypatch):
    monkeypatch.setattr(room, "shipped", lambda: package / "fabricproof" / "shipped")
    (tmp_path / ".venv").symlink_to(tmp_path / "gone")
    assert lay_out(tmp_path)[".venv"] is Laid.WRITTEN
    assert lay_out(tmp_path)[".venv"] is Laid.SAME


def test_a_link_to_a_file_that_is_away_is_kept(package, tmp_path, monkeypatch):
    monkeypatch.setattr(room, "shipped", lambda: package / "fabricproof" / "shipped")
    (tmp_path / "env.sh").symlink_to(tmp_path / "not" / "mounted")
    assert lay_out(tmp_path)["env.sh"] is Laid.KEPT
    assert (tmp_path / "env.sh").is_symlink()
