"""``fabricproof nightly`` as a timer calls it, ReFrame pretended."""

import json
import signal
import subprocess
import sys

import pytest
from nights import leg, session

from fabricproof.core.errors import UnavailableError
from fabricproof.core.records import append_records
from fabricproof.history.store.label_file import set_label
from fabricproof.job.run import NODES_VARIABLE, RunResult, ends_as_interrupt
from fabricproof.nightly.display import write_reports
from fabricproof.nightly.lock import night_lock
from fabricproof.site import load_site

FOUR = ("vc1", "vc2", "vc3", "vc4")


@pytest.fixture
def pretended(tmp_path, monkeypatch, fabricproof):
    """Call ``fabricproof nightly``; a run is what ``answer`` says of its nodes."""
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_WORK", str(tmp_path / "work"))
    monkeypatch.setattr("fabricproof.cli.measure.nightly._usable", lambda *_: FOUR)
    asked, labelled = [], []

    def call(*arguments, answer=lambda _: "PASS"):
        def perform(site, options, *, run_id=None, nodes=(), label="", **more):
            del site, more
            labelled.append(label)
            asked.append((tuple(options), tuple(nodes)))
            run_id = run_id or f"20261121T0300{len(asked):02}Z-00000b"
            there = tuple(nodes) or ("vc1", "vc2")
            verdict = answer(there)
            if isinstance(verdict, Exception):
                raise verdict
            if verdict is None:
                return RunResult(run_id=run_id, stopped="interrupted", status=130)
            return session(leg(verdict, nodes=there), run_id=run_id)

        monkeypatch.setattr("fabricproof.cli.measure.nightly.perform", perform)
        return fabricproof("nightly", "--site", "vcluster", *arguments)

    call.asked = asked
    call.labels = labelled
    call.folder = tmp_path / "perflogs" / "vcluster" / ".night"
    return call


def leg_record(run_id, verdict, check, **more):
    return {
        "kind": "leg", "run_id": run_id, "verdict": verdict, "suite": "fabricproof",
        "program": "pairs", "fabric": "eth0", "partition": "compute", "stack": "openmpi5",
        "unique_name": check, "job_id": "7", "check": check, **more,
    }  # fmt: skip


def bad_vc2(nodes):
    return "FAIL" if "vc2" in nodes else "PASS"


def test_a_green_night_is_0_and_runs_the_tags_of_the_site(pretended):
    ended = pretended()
    assert ended.status == 0
    assert pretended.asked == [(("-r", "-t", "nightly"), ())]
    assert "nothing was red" in ended.out


def test_nodes_of_the_callers_are_not_taken_for_the_whole_night(pretended, monkeypatch):
    monkeypatch.setenv(NODES_VARIABLE, "vc3,vc4")
    ended = pretended()
    assert "FABRICPROOF_NODES is ignored" in ended.err


def test_a_red_night_names_node_and_rail_and_ends_with_the_verdict(pretended):
    ended = pretended(answer=bad_vc2)
    assert ended.status == 1
    assert "vc2 on rail1 is red with others too, vc1 is green" in ended.out
    assert "look at vc2" in ended.out
    assert [nodes for _, nodes in pretended.asked] == [
        *((), ("vc1", "vc2"), ("vc1", "vc3"), ("vc2", "vc4"))
    ]


def test_json_has_first_verdict_looks_and_changes(pretended):
    record = pretended("--json", answer=bad_vc2).record
    assert (record["verdict"], record["first_verdict"], record["status"]) == ("FAIL", "FAIL", 1)
    assert record["confirmations"][0]["blamed"] == ["vc2"]
    assert [each["kind"] for each in record["changes"]] == ["RED"]
    assert record["red_now"] == ["compute/eth0/openmpi5/OsuBandwidth/rail1"]
    assert pretended("--json", answer=bad_vc2).record["changes"] == []


def test_each_look_has_its_label_before_it_begins(pretended):
    """A night that is killed in a look leaves no run that counts as a sample of the site."""
    pretended("--json", answer=bad_vc2)
    assert pretended.labels == ["", *["night-look"] * 3]


def test_a_second_night_leaves_with_75(pretended):
    code = (
        "import pathlib, sys, time; from fabricproof.nightly.lock import night_lock"
        "\nwith night_lock(pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(pretended.folder)], stdout=subprocess.PIPE
    )
    assert other.stdout.readline()
    ended = pretended()
    other.kill()
    other.communicate()
    assert ended.status == 75
    assert "a night of this site is running" in ended.err
    assert pretended.asked == []


def test_no_scheduler_is_69_and_a_state(pretended):
    ended = pretended("--json", answer=lambda _: UnavailableError("Slurm does not answer"))
    assert ended.status == 69
    assert (ended.record["ended"], ended.record["run"]) == ("no scheduler", None)
    assert ended.record["red_now"] == []


def test_an_interrupted_night_is_130_and_gives_the_lock_back(pretended):
    ended = pretended(answer=lambda _: None)
    assert ended.status == 130
    assert "ended early" in ended.out
    with night_lock(pretended.folder):
        pass


def test_a_run_that_is_not_there_is_66_and_no_night(pretended):
    """The deliberate bad case: a mistyped run must not become a night that is MISSING."""
    ended = pretended("20261121T000000Z-ffffff")
    assert ended.status == 66
    assert not (pretended.folder / "events.jsonl").exists()


@pytest.fixture
def two_runs(pretended):
    """Two runs of which only the perflogs are there."""
    perflogs = pretended.folder.parents[1]
    line = {"kind": "begin", "site": "vcluster", "partition": "compute"}
    runs = ["20261120T020000Z-00000a", "20261121T020000Z-00000b"]
    for run_id in runs:
        (perflogs / "reports").mkdir(parents=True, exist_ok=True)
        (perflogs / "reports" / f"{run_id}.json").write_text(json.dumps(line))
    set_label(perflogs, "vcluster", runs[:1], "before-swap")
    return runs


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("20261120T020000Z-00000a", 0),
        ("20261120T02", 0),
        ("2026-11-20", 0),
        ("before-swap", 0),
        ("2026-11-21", 1),
    ],
)
def test_a_run_is_named_as_for_a_report(pretended, two_runs, words, number):
    ended = pretended(words, "--dry-run")
    assert f"would confirm: {two_runs[number]}\n" in ended.out
    assert "would run" not in ended.out
    record = pretended(words, "--dry-run", "--json").record
    assert (record["confirm"], "run" in record) == (two_runs[number], False)


@pytest.mark.parametrize(("words", "status"), [("", 2), ("no-such-label", 66), ("2026-01-01", 66)])
def test_words_that_name_no_run_spend_no_night(pretended, two_runs, words, status):
    """Nor does a dry run promise one, nor is anybody told to leave the option out."""
    for options in ([], ["--dry-run"]):
        ended = pretended(words, *options)
        assert ended.status == status
        assert "leave it out" not in ended.err
    assert pretended.asked == []


def test_an_admission_is_no_night(pretended, two_runs):
    """Its rows would be red for ever: no night measures them again."""
    row = leg_record(two_runs[1], "FAIL", check="AllPairsAdmission", leg="admit.vc1.rail1")
    append_records(pretended.folder.parent / "compute" / "records.jsonl", [row])
    for words in (two_runs[1], "2026-11-21"):
        ended = pretended(words)
        assert ended.status == 66
        assert f"run {two_runs[1]} is an admission" in ended.err
        assert f"next: fabricproof report --site vcluster {two_runs[1]}" in ended.err
    assert not (pretended.folder / "events.jsonl").exists()


def test_a_dry_run_does_nothing(pretended):
    ended = pretended("--dry-run", "--keep-days", 3)
    assert ended.status == 0
    assert "would run: -r -t nightly" in ended.out
    assert pretended.asked == []
    assert not pretended.folder.exists()


def test_alive_is_4_before_the_first_night_and_0_after(pretended):
    assert pretended("--alive").status == 4
    pretended()
    ended = pretended("--alive", "--json")
    assert (ended.status, ended.record["alive"]) == (0, True)


def test_a_damaged_state_is_65_with_file_and_line(pretended):
    pretended()
    path = pretended.folder / "events.jsonl"
    path.write_text('{"format": 1, "kind": "night", "night": "x"}\n' + path.read_text())
    ended = pretended()
    assert ended.status == 65
    assert f"{path}:1: damaged log of the nights" in ended.err


def test_a_state_file_that_cannot_be_written_starts_nothing(pretended, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fabricproof.core.records.os.fsync", full)
    ended = pretended()
    assert ended.status == 74
    assert pretended.asked == []


def test_a_report_that_fails_is_said_and_changes_nothing(tmp_path):
    site = load_site("vcluster")
    wanted = site.night.model_copy(update={"junit": str(tmp_path / "no" / "night.xml")})
    object.__setattr__(site, "night", wanted)
    (said,) = write_reports(site, "20260101T000000Z-ffffff")
    assert said.startswith("no report: ")


def test_sigterm_reaches_what_was_started_and_becomes_an_interrupt():
    """A timer ends the main process only: ReFrame must hear of it to cancel its jobs."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with pytest.raises(KeyboardInterrupt), ends_as_interrupt():
            signal.raise_signal(signal.SIGTERM)
        assert sleeper.wait(timeout=20) != 0
    finally:
        sleeper.kill()


def test_the_label_and_the_end_are_kept(pretended):
    pretended()
    text = (pretended.folder / "events.jsonl").read_text()
    lines = [json.loads(each) for each in text.splitlines()]
    assert [each["kind"] for each in lines] == ["began", "night"]
    assert lines[1]["ended"] == "whole"
