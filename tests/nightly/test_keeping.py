"""Retention removes leavings and never history; months are put aside without a record lost."""

import datetime
import errno
import json
import os

import pytest

from fabricproof.job.run.start import Workplace
from fabricproof.nightly.retention import prune, what_was_removed

NOW = datetime.datetime(2026, 11, 21, 3, tzinfo=datetime.UTC)
OLD, YOUNG = "20261001T020000Z-0a0a0a", "20261120T020000Z-0b0b0b"

#: what must outlive any retention
HISTORY = (
    *("vcluster/compute/records.jsonl", "vcluster/compute/OsuBandwidth.log", "results.db"),
    *("vcluster/labels.jsonl", "vcluster/.inventory/2026.jsonl", "vcluster/.night/events.jsonl"),
    "vcluster/baselines/a.json",
)


def write(path, text="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    then = (NOW - datetime.timedelta(days=100)).timestamp()
    os.utime(path, (then, then))
    os.utime(path.parent, (then, then))
    return path


@pytest.fixture
def place(tmp_path):
    place = Workplace(project=tmp_path, root=tmp_path / "work", perflogs=tmp_path / "perflogs")
    report = json.dumps({"runs": [{"testcases": [{"system": "vcluster"}]}]})
    for run in (OLD, YOUNG):
        write(place.stage_folder(run) / "vcluster/compute/s/c/rfm_job.out")
        write(place.output_folder(run) / "vcluster/compute/s/c/legs/rail0.out")
        write(place.log_file(run))
        write(place.report_file(run), report)
    write(place.root / "output/vcluster/compute/openmpi5/Check/out")
    for name in HISTORY:
        write(place.perflogs / name)
    return place


def pruned(place, **more):
    return prune(place, "vcluster", keep_days=30, now=NOW, **more)


def test_what_is_old_goes_and_history_stays(place):
    removed = pruned(place)
    assert sorted(each.what for each in removed) == [
        *("log", "output", "output", "report", "stage")
    ]
    assert not place.stage_folder(OLD).exists()
    assert not place.output_folder(OLD).exists()
    assert place.output_folder(YOUNG).exists()
    assert not place.log_file(OLD).exists()
    assert not place.report_file(OLD).exists()
    for kept in (place.stage_folder(YOUNG), place.log_file(YOUNG), place.report_file(YOUNG)):
        assert kept.exists()
    assert all((place.perflogs / name).exists() for name in HISTORY)
    assert any(
        "removed 1 of kind stage" in each for each in what_was_removed(removed, dry_run=False)
    )


def test_a_dry_run_removes_nothing_and_says_the_same(place):
    would = pruned(place, dry_run=True)
    assert place.stage_folder(OLD).exists()
    assert {each.path for each in would} == {each.path for each in pruned(place)}


def test_evidence_of_what_is_still_red_stays(place):
    pruned(place, spare={OLD})
    assert place.stage_folder(OLD).exists()
    assert place.report_file(OLD).exists()


def test_other_sites_keep_theirs(place):
    """Sites share the folders: what is not surely ours is left alone."""
    write(place.stage_folder(OLD) / "othersite/x/y")
    write(place.output_folder(OLD) / "othersite/x/y")
    write(place.report_file(OLD), json.dumps({"runs": [{"testcases": [{"system": "other"}]}]}))
    (removed,) = pruned(place)
    assert removed.path.name == "Check"


def test_names_that_are_no_run_of_ours_stay(place):
    for name in ("notes", "20261001T020000Z-mine", "20269901T020000Z-0a0a0a"):
        write(place.root / "stage" / name / "x")
    write(place.perflogs / "reports" / "mine.json", "{}")
    before = len(list((place.root / "stage").iterdir()))
    pruned(place)
    assert len(list((place.root / "stage").iterdir())) == before - 1
    assert (place.perflogs / "reports" / "mine.json").exists()


def test_a_link_is_not_followed(place, tmp_path):
    precious = write(tmp_path / "precious" / "vcluster" / "x")
    (place.root / "stage" / "20261002T020000Z-0c0c0c").symlink_to(tmp_path / "precious")
    pruned(place)
    assert precious.exists()


def test_what_cannot_be_removed_is_said(place, monkeypatch):
    def refuse(path):
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("fabricproof.nightly.retention.shutil.rmtree", refuse)
    said = list(what_was_removed(pruned(place), dry_run=False))
    assert any("could not remove" in each and "Permission denied" in each for each in said)
