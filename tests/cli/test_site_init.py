"""``fabricproof site init``: what it writes, prints and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.cli.site import site_init
from fabricproof.nodes.discover import cluster as probe

Command = Callable[..., Any]

DATA = Path(__file__).resolve().parents[1] / "data" / "discover"
TWO_RAILS = DATA / "infiniband-two-rails"


@pytest.fixture(autouse=True)
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "sites"
    folder.mkdir()
    monkeypatch.setenv("FABRICPROOF_SITES", str(folder))
    return folder


def test_a_recorded_cluster_becomes_a_folder_that_passes_site_check(
    fabricproof: Command, sites: Path
) -> None:
    ended = fabricproof("site", "init", "mine", "--from", TWO_RAILS)
    assert ended.status == 0
    assert {str(path.relative_to(sites)) for path in sites.rglob("*") if path.is_file()} == {
        "mine/site.toml",
        "mine/fabric.toml",
        "mine/references.toml",
    }
    checked = fabricproof("site", "check", "mine")
    assert (checked.status, checked.err) == (0, "")
    assert checked.out.startswith("mine: fine: 3 partitions, 3 stacks, 0 references")


def test_the_end_says_what_was_found_what_is_a_guess_and_what_is_next(
    fabricproof: Command, sites: Path
) -> None:
    ended = fabricproof("site", "init", "mine", "--from", TWO_RAILS)
    lines = ended.out.splitlines()
    assert lines[0] == "looked at: login1, cn048 (cpu), gn01 (gpu)"
    assert "fabric ib0: HDR 4x: mlx5_0:1, mlx5_1:1" in lines
    assert "stack openmpi: openmpi 5.0.3 (openmpi/5.0.3, osu-micro-benchmarks/7.4)" in lines
    assert lines[-1] == "next: fabricproof site check mine"
    assert "not seen: partition short.q: no node answered" in ended.err
    said = [line for line in lines if line.startswith("  site.toml:")]
    file = (sites / "mine" / "site.toml").read_text(encoding="utf-8").splitlines()
    number = int(said[0].split(":")[1])
    assert "guess: " in file[number - 1]
    assert sum("# guess: " in line for line in file) == len(said)


def test_json_has_the_files_the_findings_and_the_guesses(fabricproof: Command, sites: Path) -> None:
    record = fabricproof("site", "init", "mine", "--from", TWO_RAILS, "--json").record
    assert record["fabrics"]["ib1"] == {"link": "NDR 4x", "rails": ["mlx5_0:1", "mlx5_1:1"]}
    assert record["hosts"] == {"head": "login1", "cpu": "cn048", "gpu": "gn01"}
    assert record["partitions"] == ["cpu", "gpu", "short-q"]
    for file, text in record["files"].items():
        assert (sites / "mine" / file).read_text(encoding="utf-8") == text
    first = record["guesses"][0]
    assert first["text"] in record["files"][first["file"]].splitlines()[first["line"] - 1]


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_stdout_prints_and_writes_nothing(
    more: tuple[str, ...], fabricproof: Command, sites: Path
) -> None:
    ended = fabricproof("site", "init", "mine", "--from", TWO_RAILS, "--stdout", *more)
    assert ended.status == 0
    assert list(sites.iterdir()) == []
    assert "[[partitions]]" in ended.out
    if more:
        assert json.loads(ended.out)["written"] is False


def test_an_existing_site_is_never_touched(fabricproof: Command, sites: Path) -> None:
    (sites / "mine").mkdir()
    (sites / "mine" / "site.toml").write_text("mine\n", encoding="utf-8")
    ended = fabricproof("site", "init", "mine", "--from", TWO_RAILS)
    assert (ended.status, ended.out) == (74, "")
    assert ended.err.count("\n") == 1
    assert "there is such a site already" in ended.err
    assert (sites / "mine" / "site.toml").read_text(encoding="utf-8") == "mine\n"
    assert fabricproof("site", "init", "mine", "--from", TWO_RAILS, "--stdout").status == 0


@pytest.mark.parametrize("name", ["", "-x", "a/b", "../a", "a b", "ä", ".hidden"])
def test_a_name_that_is_none_is_a_wrong_argument(
    name: str, fabricproof: Command, sites: Path
) -> None:
    ended = fabricproof("site", "init", "--from", TWO_RAILS, "--", name)
    assert ended.status == 2
    assert list(sites.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_message_and_leaves_nothing(
    fabricproof: Command, sites: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_SITES", str(sites / "file"))
    (sites / "file").write_text("no folder\n", encoding="utf-8")
    ended = fabricproof("site", "init", "mine", "--from", TWO_RAILS)
    assert ended.status == 74
    assert "cannot write the site: Not a directory" in ended.err
    assert ended.err.count("\n") == 1


def test_a_disk_that_fills_up_leaves_no_half_site(
    fabricproof: Command, sites: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = site_init._put

    def fills_up(folder: Path, texts: dict[str, str]) -> None:
        writes(folder, dict(list(texts.items())[:2]))
        if folder.parent == sites:
            raise OSError(28, "No space left on device")
        writes(folder, texts)

    monkeypatch.setattr(site_init, "_put", fills_up)
    ended = fabricproof("site", "init", "mine", "--from", TWO_RAILS)
    assert (ended.status, list(sites.iterdir())) == (74, [])
    assert "No space left on device" in ended.err


def test_what_is_no_recording_is_refused(fabricproof: Command, tmp_path: Path) -> None:
    ended = fabricproof("site", "init", "mine", "--from", tmp_path)
    assert ended.status == 66
    assert "head.json" in ended.err
    (tmp_path / "head.json").write_text("{}", encoding="utf-8")
    assert fabricproof("site", "init", "mine", "--from", tmp_path).status == 65
    assert fabricproof("site", "init", "mine", "--from", tmp_path / "gone").status == 66


def test_one_partition_may_be_chosen_and_an_unknown_one_is_refused(fabricproof: Command) -> None:
    chosen = ("site", "init", "mine", "--from", TWO_RAILS, "--stdout", "--json", "--partition")
    assert fabricproof(*chosen, "gpu").record["partitions"] == ["gpu"]
    ended = fabricproof(*chosen, "fast")
    assert ended.status == 78
    assert "expected one of cpu, gpu, debug, maint, short.q, got 'fast'" in ended.err
    alone = ("site", "init", "mine", "--from", DATA / "one-machine", "--partition", "gpu")
    assert "expected Slurm to answer" in fabricproof(*alone).err


def test_this_machine_is_looked_at_kept_and_read_again(
    fabricproof: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = probe.load(DATA / "virtual-cluster")
    monkeypatch.setattr(
        probe, "record", lambda say, **_: say("looking at this machine") or recorded
    )
    kept = tmp_path / "kept"
    ended = fabricproof("site", "init", "mine", "--keep", kept, "--stdout")
    assert ended.status == 0
    assert "looking at this machine ..." in ended.err
    assert probe.load(kept) == recorded


def test_a_recording_that_cannot_be_kept_is_one_message(
    fabricproof: Command, tmp_path: Path, sites: Path
) -> None:
    (tmp_path / "file").touch()
    ended = fabricproof(
        "site", "init", "mine", "--from", TWO_RAILS, "--keep", tmp_path / "file" / "kept"
    )
    assert (ended.status, list(sites.iterdir())) == (74, [])
    assert "cannot write the recording" in ended.err


def test_hosts_that_other_sites_claim_are_known(sites: Path) -> None:
    (sites / "broken").mkdir()
    (sites / "broken" / "site.toml").write_text("[", encoding="utf-8")
    (sites / "lab").mkdir()
    (sites / "lab" / "fabric.toml").write_text(
        '[[fabrics]]\nname = "m"\nrails = [{ interface = "lo" }]\n', encoding="utf-8"
    )
    (sites / "lab" / "site.toml").write_text(
        '[site]\nname = "lab"\nhostnames = ["login1"]\n'
        '[[partitions]]\nname = "p"\nfabrics = ["m"]\nstacks = ["s"]\n'
        '[[stacks]]\nname = "s"\nfamily = "mpich"\nversion = "4"\n',
        encoding="utf-8",
    )
    assert site_init._claims() == {"login1": "lab"}
