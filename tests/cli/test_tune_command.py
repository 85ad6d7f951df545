"""``fabricproof tune``: what sweeps found, and what mends it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.errors import ExitStatus
from fabricproof.core.records import append_records
from fabricproof.tuning.proposal import read_trial
from made_sweeps import alike, planted, sweep_record

OLD, NEW = "20261120T200000Z-aaaaaa", "20261121T200000Z-bbbbbb"

Command = Callable[..., Any]


@pytest.fixture
def perflogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return perflogs of the site vcluster: an old run without a loser, a new one with one."""
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_SITE", "vcluster")
    folder = tmp_path / "perflogs" / "vcluster"
    equal = {name: {16384: alike(100.0, 3)} for name in ("own", "2", "4")}
    records = [
        sweep_record(equal, run_id=OLD, site="vcluster"),
        planted(run_id=NEW, site="vcluster"),
        planted(run_id=NEW, site="vcluster", stack="openmpi4", mpi_version="4.1"),
        {"kind": "leg", "run_id": NEW},
    ]
    append_records(folder / "compute" / "records.jsonl", records)
    return folder


def test_the_newest_run_with_a_sweep_is_shown(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("tune", "show", "--only", "stack=openmpi5")
    assert (ended.status, ended.err) == (0, "")
    assert f"over rail0, run {NEW}" in ended.out
    rows = [line.split() for line in ended.out.splitlines() if "KiB" in line]
    assert [(row[0], row[3]) for row in rows] == [
        ("16KiB", "3.02x"),
        ("32KiB", "3.02x"),
        ("64KiB", "1.01x"),
    ]
    assert "loses badly: best 4 named" in ended.out
    assert "as good" in ended.out


def test_the_json_holds_every_mean(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("tune", "show", OLD, "--json")
    (sweep,) = json.loads(ended.out)["sweeps"]
    assert sweep["run_id"] == OLD
    assert sweep["choices"][0]["standing"] == "as good"
    assert set(sweep["choices"][0]["means_us"]) == {"2", "4"}
    assert (sweep["collective"], sweep["labels"]["4"]) == ("allgather", "4 named")


def test_the_mending_is_written_as_a_proposal_and_says_how_to_try_and_adopt_it(
    perflogs: Path, fabricproof: Command
) -> None:
    ended = fabricproof("tune", "write", "--only", "stack=openmpi5")
    assert (ended.status, ended.err) == (0, "")
    folder = perflogs / "tuning" / f"{NEW}-openmpi5"
    assert f"-S AlgorithmSweep.tuning={folder}" in ended.out
    assert 'under [[stacks]] name = "openmpi5"' in ended.out
    # What the site sets already stays.
    assert 'OMPI_MCA_btl_tcp_links = "2"' in ended.out
    text = (folder / "coll_tuned.conf").read_text()
    assert f"# run {NEW} on vcluster, n1, n2, n3, n4" in text
    assert "# allgather from 16KiB to 32KiB: 4 ring, measured gain 3.0" in text
    assert f"{16384 * 4} 4 0 0" in text
    assert "16384 tuned" in (folder / "coll_han.conf").read_text()
    trial = read_trial(folder)
    assert (trial.stack, trial.collectives, trial.num_ranks) == ("openmpi5", ("allgather",), 4)
    named = trial.environment["OMPI_MCA_coll_tuned_dynamic_rules_filename"]
    assert Path(named) == folder / "coll_tuned.conf"


def test_two_stacks_are_two_proposals(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("tune", "write", "--json")
    proposals = json.loads(ended.out)["proposals"]
    assert {each["stack"] for each in proposals} == {"openmpi4", "openmpi5"}
    assert not (perflogs / "tuning" / f"{NEW}-openmpi4" / "coll_han.conf").exists()


def test_the_command_that_tries_it_can_be_copied_whatever_the_folder_is_called(
    perflogs: Path, fabricproof: Command
) -> None:
    folder = perflogs / "to try"
    ended = fabricproof("tune", "write", "--only", "stack=openmpi5", "--folder", str(folder))
    (line,) = (each for each in ended.out.splitlines() if "-S " in each)
    assert shlex.split(line)[-1] == f"AlgorithmSweep.tuning={folder}"


def test_one_folder_cannot_hold_two_stacks(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("tune", "write", "--folder", str(perflogs / "here"))
    assert ended.status == ExitStatus.USAGE
    assert "--only stack=NAME" in ended.err


def test_without_a_loser_nothing_is_written(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("tune", "write", OLD)
    assert ended.status == 0
    assert "nothing to write" in ended.out
    assert not (perflogs / "tuning").exists()


@pytest.mark.parametrize(
    "options", [["20200101T000000Z-000000"], ["--only", "stack=nobody"], ["--site", "local"]]
)
def test_without_a_sweep_the_next_step_is_said(
    options: list[str], perflogs: Path, fabricproof: Command
) -> None:
    ended = fabricproof("tune", "show", *options)
    assert ended.status == ExitStatus.NO_INPUT
    assert "-n AlgorithmSweep" in ended.err


def test_a_damaged_record_is_named(perflogs: Path, fabricproof: Command) -> None:
    broken = {**planted(run_id="20261122T000000Z-cccccc"), "series": 7}
    append_records(perflogs / "compute" / "records.jsonl", [broken])
    ended = fabricproof("tune", "show")
    assert ended.status == ExitStatus.DATA
    assert "damaged record of a sweep" in ended.err


def test_half_a_character_is_shown_as_its_escape(perflogs: Path, fabricproof: Command) -> None:
    append_records(
        perflogs / "compute" / "records.jsonl",
        [planted(run_id="20261122T000000Z-cccccc", suite="o\ud800su")],
    )
    ended = fabricproof("tune", "show")
    assert ended.status == 0
    assert r"o\ud800su" in ended.out


def test_where_nothing_can_be_written_it_is_said(
    perflogs: Path, fabricproof: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    ended = fabricproof(
        "tune", "write", "--only", "stack=openmpi5", "--folder", str(tmp_path / "file" / "x")
    )
    assert ended.status == ExitStatus.IO
    assert "--folder" in ended.err


def test_a_tuning_that_is_none_is_refused(tmp_path: Path) -> None:
    from fabricproof.core.errors import ParseError  # noqa: PLC0415

    (tmp_path / "tuning.json").write_text('{"format": 1, "stack": "x"}')
    with pytest.raises(ParseError, match="no tuning that can be read"):
        read_trial(tmp_path)
    with pytest.raises(ParseError, match="no tuning that can be read"):
        read_trial(tmp_path / "nowhere")
