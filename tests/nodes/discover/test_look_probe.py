"""Running the scripts: what is asked, what happens when nobody answers, what is kept."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from seen_clusters import DATA, NAMES

from fabricproof.core.errors import InputMissingError, ParseError, UnavailableError
from fabricproof.nodes.discover import cluster as probe
from fabricproof.nodes.discover.cluster import Recording, load, read_cluster, record, save

SINFO = """case "$*" in
    *version*) echo "slurm 23.11.10" ;;
    *%R*) printf 'a|up|infinite|4|8|idle|n[1-4]\\nb|up|infinite|4|8|idle|n[1-4]\\n'
          printf 'c|up|infinite|2|8|idle|m[1-2]\\nd|down|infinite|2|8|idle|m[1-2]\\n'
          printf 'e|up|infinite|2|8|down|m[3-4]\\n' ;;
    *%P*) echo 'a*' ;;
esac"""

#: runs what it is told to, and notes its options
SRUN = """case "$1" in --mpi=list) echo pmix; exit 0 ;; esac
echo "$*" >>"$SRUN_NOTES"
while [ "$1" != sh ]; do shift; done
exec "$@\""""


def tool(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    tool(folder, "sinfo", SINFO)
    tool(folder, "scontrol", "exit 0")
    tool(folder, "srun", SRUN)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("SRUN_NOTES", str(tmp_path / "notes"))
    (tmp_path / "notes").touch()
    return folder


def notes(tools: Path) -> list[str]:
    return (tools.parent / "notes").read_text(encoding="utf-8").splitlines()


def test_one_node_of_each_set_of_nodes_is_asked(tools: Path) -> None:
    said: list[str] = []
    seen = read_cluster(record(said.append))
    assert set(seen.nodes) == {"a", "b", "c"}
    asked = notes(tools)
    assert [line.split()[0] for line in asked] == ["--partition=a", "--partition=c"]
    assert all("--immediate=30 " in line and "--time=5 " in line for line in asked)
    assert said[0] == "looking at this machine"
    assert seen.nodes["a"].name == os.uname().nodename
    assert seen.troubles == ()


def test_no_job_is_started_where_none_is_wanted(tools: Path) -> None:
    assert record(lambda _: None, ask_nodes=False).nodes == {}
    assert set(record(lambda _: None, only=["c"]).nodes) == {"c"}
    assert len(notes(tools)) == 1


def test_a_partition_that_does_not_answer_is_a_trouble_with_slurms_words(tools: Path) -> None:
    tool(tools, "srun", "echo 'srun: error: Invalid account' >&2; exit 1")
    recording = record(lambda _: None)
    assert recording.nodes == {}
    assert recording.troubles[0] == ("partition a: no node answered: srun: error: Invalid account")


def test_a_job_that_never_ends_is_given_up(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tools, "srun", 'case "$1" in --mpi=list) exit 0 ;; esac; exec sleep 30')
    monkeypatch.setattr(probe, "NODE_SECONDS", 0.2)
    recording = record(lambda _: None, only=["a"])
    assert recording.troubles == ("partition a: no node answered: srun did not end within 0.2 s",)


def test_our_own_allocation_does_not_catch_the_job(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    tool(tools, "srun", '[ -z "$SLURM_JOB_ID" ] || exit 1\n' + SRUN)
    assert record(lambda _: None).troubles == ()


def test_a_machine_that_cannot_be_looked_at_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "LOOK", Path("/nowhere/look.py"))
    with pytest.raises(UnavailableError, match="cannot be looked at"):
        record(lambda _: None)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_read_back_as_it_was_saved(name: str, tmp_path: Path) -> None:
    recording = load(DATA / name)
    save(recording, tmp_path / "kept")
    assert load(tmp_path / "kept") == recording


def test_a_folder_without_a_recording_says_what_it_should_hold(tmp_path: Path) -> None:
    with pytest.raises(InputMissingError, match=r"head\.json"):
        load(tmp_path)


def test_a_damaged_node_is_a_trouble_and_a_damaged_head_an_error() -> None:
    whole = load(DATA / "virtual-cluster")
    cut = Recording(head=whole.head, slurm=whole.slurm, nodes={"compute": whole.head[:99]})
    assert read_cluster(cut).troubles == ("partition compute: not a whole look at a machine",)
    for head in ("", "hello", "{}", whole.head.replace('"reached": "end"', '"reached": "tools"')):
        with pytest.raises(ParseError, match="not a whole look"):
            read_cluster(Recording(head=head))


def test_a_greeting_before_the_look_is_passed_over() -> None:
    whole = load(DATA / "virtual-cluster")
    assert read_cluster(Recording(head=f"Welcome\n{whole.head}")).head.name == "head"


def test_modules_are_names_without_folders_headings_and_marks() -> None:
    host = read_cluster(load(DATA / "two-ports-one-card")).head
    assert host.modules == ("mpi/openmpi-x86_64", "mpi/openmpi-3.1.0")
    assert host.modules_system == "tmod4"


def test_a_slurm_command_that_does_not_even_end_when_asked_to_is_ended(tmp_path: Path) -> None:
    tool(tmp_path, "sinfo", "trap '' TERM; sleep 60 & wait; sleep 60")
    text = probe.SLURM.read_text(encoding="utf-8").replace("limited 10", "limited 0.2")
    script = tmp_path / "slurm.sh"
    script.write_text(text.replace("timeout -k 2", "timeout -k 0.2"), encoding="utf-8")
    done = subprocess.run(
        ["sh", str(script)], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert "#== partitions\nstatus=" in done.stdout
    assert "timeout -k 2" in text
