"""Our checks under the settings of a site that has no site file: they fail, and are never absent.

ReFrame leaves out a check file that raises at import with a warning, and ends with 0.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
from pathlib import Path

import pytest
from reframe_sessions import HERE, ROOT, StockRun, run_stock

from fabricproof.core.errors import ConfigError
from fabricproof.job.job_end import RECORD_END
from fabricproof.rfm import extend
from fabricproof.site.roll import write_roll

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
        assert "ReFrame's system 'hpcville'" in case["fail_reason"]
        assert "fabricproof.rfm.extend(" in case["fail_reason"]


#: of a site with ReFrame of its own: its launcher, environments and handlers, and our one line
EXTENDED = """
import os
from fabricproof.rfm import extend
site_configuration = {
    "systems": [{"name": "hpcville", "hostnames": [".*"], "partitions": [
        {"name": "login", "scheduler": "local", "launcher": "local", "environs": ["gnu"]},
        {"name": "node", "scheduler": "local", "launcher": "mpirun", "environs": ["gnu"],
         "prepare_cmds": ["echo theirs"], "features": ["big"], "extras": {"racks": 2}}]}],
    "environments": [{"name": "gnu", "features": ["mpi"]}, {"name": "fake", "cc": "theirs"}],
    "general": [{"poll_rate_max": 50.0, "poll_rate_min": 20.0,
                 "check_search_path": [os.environ.get("TRAPS_CHECKS", "checks")]}],
}
site_configuration = extend(site_configuration, site=SITE)
"""


def _extended(folder: Path, *options: str, checks: str, site: Path = HERE / "site") -> StockRun:
    """Run stock ReFrame as a user of a site with settings of its own."""
    (folder / "settings.py").write_text(EXTENDED.replace("SITE)", f"{str(site)!r})"))
    return run_stock(
        folder,
        *options,
        checks=checks,
        RFM_CONFIG_FILES=str(folder / "settings.py"),
        PATH=f"{HERE / 'bin'}{os.pathsep}{os.environ['PATH']}",
        FABRICPROOF_PERFLOGS=str(folder / "ours"),
    )


def test_extended_settings_keep_theirs_and_add_ours() -> None:
    theirs = {"environments": [{"name": "fake", "cc": "cc", "features": ["gpu"]}]}
    theirs["systems"] = [{"name": "s", "partitions": [{"name": "node", "features": ["big"]}]}]
    before = copy.deepcopy(theirs)
    found = extend(theirs, str(HERE / "site"))
    assert theirs == before
    (partition,) = found["systems"][0]["partitions"]
    assert partition["features"] == ["big", "fabric-eth0"]
    assert partition["environs"] == ["fake"]
    assert partition["prepare_cmds"] == [RECORD_END]
    assert found["environments"] == [
        {"name": "fake", "cc": "cc", "features": ["gpu", "mpi", "openmpi"]}
    ]
    assert "logging" not in found


def test_partitions_that_are_none_of_the_site_s_are_refused_or_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="one of: node"):
        extend({"systems": [{"name": "s", "partitions": [{"name": "gpu"}]}]}, str(HERE / "site"))
    site = shutil.copytree(HERE / "site", tmp_path / "traps")
    text = (site / "site.toml").read_text()
    table = text[text.index("[[partitions]]") : text.index("[[stacks]]")]
    more = table.replace('"node"', '"fat"')
    (site / "site.toml").write_text(text.replace("[[stacks]]", f"{more}[[stacks]]"))
    extend({"systems": [{"name": "s", "partitions": [{"name": "node"}]}]}, str(site))
    assert "not measured: fat of" in capsys.readouterr().err


@pytest.mark.parametrize("system", ["lmod", "nomod"])
def test_modules_of_the_site_are_found_where_reframe_loads_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], system: str
) -> None:
    site = shutil.copytree(HERE / "site", tmp_path / "traps")
    text = (site / "site.toml").read_text()
    text = text.replace('"nomod"', '"lmod"\nmodule_paths = ["/ours"]')
    text = text.replace('version = "0"', 'version = "0"\nmodules = ["fake/0"]')
    (site / "site.toml").write_text(text)
    monkeypatch.setenv("MODULEPATH", "/theirs")
    theirs = {"name": "s", "modules_system": system, "partitions": [{"name": "node"}]}
    found = extend({"systems": [theirs]}, str(site))
    assert os.environ["MODULEPATH"] == "/ours:/theirs"
    uses = "module use /ours" in found["systems"][0]["partitions"][0]["prepare_cmds"]
    # Where nothing defines it, the line would end every job and build of theirs.
    assert uses == (system == "lmod")
    assert ("modules of fake are not loaded" in capsys.readouterr().err) == (not uses)


def test_a_reframe_that_does_not_begin_ends_with_its_own_words(tmp_path: Path) -> None:
    ended = _extended(tmp_path, "--system=nowhere", checks=CHECKS)
    assert ended.status == 1
    assert "nowhere" in ended.out
    assert "Traceback" not in ended.out


@pytest.mark.parametrize(
    ("check", "status", "verdict"),
    [("Well", 0, "PASS"), ("Slow", 1, "FAIL"), ("Fast", 3, "INVALID")],
)
def test_stock_reframe_of_a_site_gives_records_table_and_status(
    tmp_path: Path, check: str, status: int, verdict: str
) -> None:
    ended = _extended(tmp_path, "-n", f"^{check}%", checks=str(HERE / "house" / "leg_traps.py"))
    assert ended.status == status, ended.out
    after = ended.out.partition("Run report saved in")[2] or ended.out.partition("Log file(s)")[2]
    assert verdict in after
    (path,) = (tmp_path / "ours").glob("*/node/*.jsonl")
    legs = [json.loads(line) for line in path.read_text().splitlines()]
    assert {each["verdict"] for each in legs if each["kind"] == "leg"} == {verdict}


def test_a_python_that_is_not_on_the_node_is_what_every_leg_says_first(tmp_path: Path) -> None:
    """Its legs were measured once, no relation was decided, and a side file knew why."""
    site = shutil.copytree(HERE / "site", tmp_path / "traps")
    text = (site / "site.toml").read_text()
    line = 'name = "node"\n'
    assert line in text
    (site / "site.toml").write_text(text.replace(line, f'{line}python = "/nowhere/python3"\n'))
    checks = str(HERE / "house" / "leg_traps.py")
    ended = _extended(tmp_path, "-n", "^Well%", checks=checks, site=site)
    assert ended.status == 4, ended.out
    (path,) = (tmp_path / "ours").glob("*/node/*.jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    legs = [each for each in records if each["kind"] == "leg"]
    assert {each["verdict"] for each in legs} == {"MISSING"}
    assert all("this node has no /nowhere/python3" in each["reasons"][0] for each in legs)


def test_a_required_check_that_stock_reframe_did_not_load_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(HERE / "site", tmp_path / "traps")
    due = {"check": "Gone", "fabric": "eth0", "partition": "node", "stack": "fake"}
    write_roll(tmp_path / "traps", [{**due, "tags": ["trap"]}])
    text = (HERE / "house" / "leg_traps.py").read_text()
    (tmp_path / "well.py").write_text(text[: text.index("@rfm.simple_test\nclass Slow(")])
    # "-c" of a file would be a choice.
    monkeypatch.setenv("TRAPS_CHECKS", str(tmp_path / "well.py"))
    ended = _extended(tmp_path, "-t", "trap", checks="", site=tmp_path / "traps")
    assert ended.status == 4
    assert "Gone" in ended.out


def test_a_selection_without_a_check_is_no_pass(tmp_path: Path) -> None:
    checks = str(HERE / "house" / "leg_traps.py")
    ended = _extended(tmp_path, "-t", "infinband", checks=checks)
    assert ended.status == 4
    assert "nothing was judged" in ended.out


def test_a_session_of_their_own_checks_alone_is_theirs(tmp_path: Path) -> None:
    ended = _extended(tmp_path, "-n", "^Plain", checks=str(HERE / "stock" / "plain.py"))
    assert "fabricproof" not in ended.out.partition("[==========]")[2]


def test_a_reframe_whose_python_has_no_fabricproof_fails(tmp_path: Path) -> None:
    (tmp_path / "fabricproof.py").write_text("raise ModuleNotFoundError('fabricproof')")
    ended = run_stock(tmp_path, "-R", "-t", "quick", checks=CHECKS, PYTHONPATH=str(tmp_path))
    assert ended.status == 1
    assert {case["result"] for case in ended.cases.values()} == {"fail"}
    assert "need fabricproof in the Python that runs ReFrame" in ended.out
