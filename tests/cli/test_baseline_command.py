"""``fabricproof baseline`` on recorded runs: what it prints, writes, and how it ends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fabricproof.cli.history.baseline import command
from fabricproof.core.errors import ConfigError, InputMissingError
from fabricproof.history.baseline.freeze import NotKnownGoodError
from fabricproof.site import load_site

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "data" / "history" / "baseline"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a copy of the site's folder, beside the recorded runs."""
    sites = tmp_path / "sites"
    shutil.copytree(ROOT / "site-configs" / "vcluster", sites / "vcluster")
    shutil.copytree(RECORDED, tmp_path / "perflogs")
    monkeypatch.setenv("FABRICPROOF_SITES", str(sites))
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_WORK", str(tmp_path / "work"))
    return sites / "vcluster"


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(command, [*arguments, "--site", "vcluster"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_without_any_it_says_what_to_do(site: Path) -> None:
    result = call("list")
    assert result.exit_code == 0
    assert "next: fabricproof baseline freeze" in result.output


def test_freeze_show_and_list(site: Path) -> None:
    """The path of an administrator: each step says what it did and what comes next."""
    frozen = call("freeze", "autumn", "last:8")
    assert frozen.exit_code == 0
    assert (site / "baselines" / "autumn.json").is_file()
    assert "rail1 on vc1 runs at 100 of 200 Mb/s" in frozen.output
    assert 'baseline = "autumn" below [site]' in frozen.output

    shown = call("show", "autumn")
    assert shown.exit_code == 0
    assert "holds today: yes" in shown.output
    assert "\nnodes: vc[1-2]" in shown.output
    assert "bandwidth_1MiB" in shown.output

    listed = json.loads(call("list", "--json").output)
    (one,) = listed["baselines"]
    assert (one["name"], one["runs"], one["holds"], one["active"]) == ("autumn", 8, True, False)


def test_a_name_that_is_taken_is_refused(site: Path) -> None:
    call("freeze", "autumn", "last:8")
    before = (site / "baselines" / "autumn.json").read_bytes()
    with pytest.raises(ConfigError, match="--replace"):
        call("freeze", "autumn", "last:8")
    assert (site / "baselines" / "autumn.json").read_bytes() == before
    assert call("freeze", "autumn", "last:8", "--replace").exit_code == 0


def test_too_few_runs_write_nothing(site: Path) -> None:
    with pytest.raises(NotKnownGoodError, match="at least 5, got 2"):
        call("freeze", "autumn", "last:2")
    assert not (site / "baselines").exists()


def test_no_runs_are_a_wrong_command(site: Path) -> None:
    assert call("freeze", "autumn").exit_code == 2


def test_a_baseline_that_no_longer_holds_is_5(site: Path, tmp_path: Path) -> None:
    """After a change of the node show says which field, and ends with UNJUDGED's status."""
    call("freeze", "autumn", "last:8")
    looks = tmp_path / "perflogs" / "vcluster" / ".inventory"
    from fabricproof.core.records import append_records  # noqa: PLC0415
    from fabricproof.nodes.inventory.facts import Machine  # noqa: PLC0415 - this test only
    from fabricproof.nodes.inventory.store import read_index, read_kept, write_machine  # noqa: PLC0415

    last = [each for each in read_index(looks) if each.node == "vc2"][-1]
    facts = {**read_kept(looks, "vc2", str(last.digest)).facts}
    facts["node"] = {**facts["node"], "kernel": "7.0.0"}
    changed = Machine(node="vc2", facts=facts)
    write_machine(looks, changed)
    line = {**vars(last), "digest": changed.digest, "run_id": "later"}
    append_records(looks / "index.jsonl", [line])
    result = call("show", "autumn")
    assert result.exit_code == 5
    assert "vc2: kernel 6.18" in result.output
    assert "-> 7.0.0" in result.output


def test_an_unknown_baseline_names_those_there_are(site: Path) -> None:
    call("freeze", "autumn", "last:8")
    with pytest.raises(InputMissingError, match="one of: autumn"):
        call("show", "spring")


def test_a_site_that_names_no_such_baseline_is_refused(site: Path) -> None:
    """A typo in site.toml must not switch the baseline off in silence."""
    path = site / "site.toml"
    path.write_text(path.read_text().replace("[site]\n", '[site]\nbaseline = "spirng"\n'))
    with pytest.raises(ConfigError, match=r"site\.toml:4: no such baseline.*'spirng'"):
        load_site("vcluster")


def test_the_active_one_is_marked(site: Path) -> None:
    call("freeze", "autumn", "last:8")
    path = site / "site.toml"
    path.write_text(path.read_text().replace("[site]\n", '[site]\nbaseline = "autumn"\n'))
    assert "autumn (judges)" in call("list").output
