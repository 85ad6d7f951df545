"""``fabricproof baseline`` on recorded runs: what it prints, writes, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fabricproof.cli.history import baseline_display
from fabricproof.cli.history.baseline import command
from fabricproof.core.errors import ConfigError, InputMissingError
from fabricproof.history.baseline.past import NotKnownGoodError
from fabricproof.history.store import LOOK_LABEL, set_label
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


def test_freeze_show_list_diff_and_propose(site: Path) -> None:
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

    itself = call("diff", "autumn", "autumn", "--json")
    assert itself.exit_code == 0
    assert {each["ratio"] for each in json.loads(itself.output)["rows"]} == {1.0}
    assert call("diff", "autumn", "20261121T213406Z").exit_code == 0

    proposed = call("propose", "baseline:autumn", "--json")
    record = json.loads(proposed.output)
    assert set(record["verdicts"]) == {"none", "old", "new"}
    assert record["written"] is None
    assert len(list((site / "baselines").iterdir())) == 1


def test_propose_ends_with_a_command_and_names_no_file_that_is_not_there(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline_display, "_SHOWN", 2)
    told = call("propose", "last:8").output
    assert "baseline show" not in told
    assert re.search(r"^and \d+ more: --all, or --json$", told, re.MULTILINE)
    again = "fabricproof baseline propose last:8 --site vcluster --write NAME"
    assert told.splitlines()[-1].split("   # ")[0] == f"next: {again}"
    written = call("propose", "last:8", "--write", "winter").output
    assert " more: fabricproof baseline show winter --site vcluster\n" in written


def test_a_sick_run_is_beyond_the_baseline(site: Path) -> None:
    """Diff against the run in which a rail was shaped: status 1, the lines are marked."""
    call("freeze", "autumn", "last:8")
    result = call("diff", "autumn", "20261121T200210Z")
    assert result.exit_code == 1
    beyond = [line for line in result.output.splitlines() if line.endswith("BEYOND")]
    rates = [line for line in beyond if " bandwidth_1MiB " in line]
    assert {line.count(" MB/s") for line in rates} == {3}, "value, value and bound"
    assert "BEYOND" in result.output


def test_a_run_that_lost_a_rail_is_missing(site: Path) -> None:
    """What is left of that run is within all bounds, and rail1 was tried for in vain."""
    run = "20261121T213406Z"
    path = site.parents[1] / "perflogs" / "vcluster" / "compute" / "records.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for each in lines:
        is_rail1 = each["run_id"].startswith(run) and each["leg"] == "rail1"
        if is_rail1 and each.get("quantity_name") == "bandwidth_1MiB":
            each.update(quantity_value=None, quantity_verdict="MISSING", quantity_unit="")
            each.update(attributes={}, tool_version=None, quantity_message_size=None)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    call("freeze", "autumn", "last:8")
    result = call("diff", "autumn", run)
    assert result.exit_code == 4
    assert "have no usable number, first MISSING: openmpi5 osu_bw rail1" in result.output
    rows = json.loads(call("diff", "autumn", run, "--json").output)["rows"]
    lost = [(each["leg"], each["quantity"]) for each in rows if each["lost"]]
    assert lost == [("rail1", "bandwidth_1MiB")]


def test_a_name_that_is_taken_is_refused(site: Path) -> None:
    call("freeze", "autumn", "last:8")
    before = (site / "baselines" / "autumn.json").read_bytes()
    with pytest.raises(ConfigError, match="--replace"):
        call("freeze", "autumn", "last:8")
    with pytest.raises(ConfigError, match="--replace"):
        call("propose", "--write", "autumn")
    assert (site / "baselines" / "autumn.json").read_bytes() == before
    assert call("freeze", "autumn", "last:8", "--replace").exit_code == 0


def test_too_few_runs_write_nothing(site: Path) -> None:
    with pytest.raises(NotKnownGoodError, match="at least 5, got 2"):
        call("freeze", "autumn", "last:2")
    assert not (site / "baselines").exists()


def test_no_runs_are_a_wrong_command(site: Path) -> None:
    assert call("freeze", "autumn").exit_code == 2


def test_propose_writes_when_asked(site: Path) -> None:
    result = call("propose", "--write", "winter")
    assert result.exit_code == 0
    assert "history replayed" in result.output
    assert call("show", "winter").exit_code == 0


def test_a_proposal_learns_from_no_second_look(site: Path, tmp_path: Path) -> None:
    """A pair that was looked at again for being slow is no sample, nor a verdict of the past."""
    slow = "20261121T200210Z-8f3a82"
    before = json.loads(call("propose", "--json").output)
    assert any(each.startswith(slow) for each in before["set_aside"])
    set_label(tmp_path / "perflogs", "vcluster", [slow], LOOK_LABEL)
    after = json.loads(call("propose", "--json").output)
    assert not any(slow in each for each in after["set_aside"])
    judged = [sum(each["verdicts"]["none"].values()) for each in (before, after)]
    assert judged[0] > judged[1]


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
