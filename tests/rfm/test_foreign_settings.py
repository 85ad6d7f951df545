"""Our checks under the settings of a site that has no site file: they fail, and are never absent.

ReFrame leaves out a check file that raises at import with a warning, and ends with 0.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from reframe_sessions import HERE, ROOT, run_stock

CHECKS = str(ROOT / "checks")

#: of a made-up site: a login node of its own, and a Slurm that starts with srun
SETTINGS = """
site_configuration = {
    "systems": [{"name": "hpcville", "hostnames": [".*"], "partitions": [
        {"name": "login", "scheduler": "local", "launcher": "local", "environs": ["gnu"]},
        {"name": "batch", "scheduler": "slurm", "launcher": "srun", "access": ["-p work"],
         "environs": ["gnu"]}]}],
    "environments": [{"name": "gnu"}],
}
"""


@pytest.mark.parametrize(
    "options",
    [
        ["--system=hpcville:login"],
        ["-t", "infiniband", "-n", "^Osu"],
        ["-t", "ethernet", "-n", "^Tcp"],
    ],
)
def test_without_a_site_every_check_fails_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.delenv("FABRICPROOF_SITE", raising=False)
    (tmp_path / "settings.py").write_text(SETTINGS)
    ended = run_stock(
        tmp_path, "-R", *options, checks=CHECKS, RFM_CONFIG_FILES=str(tmp_path / "settings.py")
    )
    assert ended.status == 1
    assert "skipping test" not in ended.out
    assert ended.cases
    for case in ended.cases.values():
        assert case["result"] == "fail"
        assert case["fail_reason"].startswith("config error: these checks need a site of fabric")
        assert "a site.toml for ReFrame's system 'hpcville'" in case["fail_reason"]
        assert "next: fabricproof run --site" in case["fail_reason"]


@pytest.mark.parametrize("partition", ["login", "node"])
def test_where_no_partition_has_the_site_s_fabric_they_fail_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition: str
) -> None:
    """valid_systems = "+fabric-eth0" would select nothing, and ReFrame pass without a check."""
    monkeypatch.setenv("FABRICPROOF_SITE", str(HERE / "site"))
    (tmp_path / "settings.py").write_text(
        SETTINGS.replace("hpcville", "traps").replace("login", partition)
    )
    ended = run_stock(tmp_path, "-R", checks=CHECKS, RFM_CONFIG_FILES=str(tmp_path / "settings.py"))
    assert ended.status == 1
    reasons = {case["fail_reason"] for case in ended.cases.values()}
    assert all("has no partition, or not the fabrics, of its site.toml" in each for each in reasons)
    assert all("expected node" in each for each in reasons)


def test_a_reframe_whose_python_has_no_fabricproof_fails(tmp_path: Path) -> None:
    (tmp_path / "fabricproof.py").write_text("raise ModuleNotFoundError('fabricproof')")
    ended = run_stock(tmp_path, "-R", "-t", "quick", checks=CHECKS, PYTHONPATH=str(tmp_path))
    assert ended.status == 1
    assert {case["result"] for case in ended.cases.values()} == {"fail"}
    assert "need fabricproof in the Python that runs ReFrame" in ended.out
