"""``fabricproof stack build|lock|list|remove`` with a Spack that only pretends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from fabricproof.cli.site.building import display
from fabricproof.core.errors import ExitStatus
from pretended_spack import Lab, lab
from process_groups import is_gone

__all__ = ["lab"]

Call = Callable[..., Any]


def built(fabricproof: Call, lab: Lab, *options: object) -> Any:
    return fabricproof(
        "stack", "build", "openmpi", "--site", "lab", "--spack", lab.folder / "tool", *options
    )


def test_build_says_what_was_made_and_how_to_use_it(fabricproof: Call, lab: Lab):
    ended = built(fabricproof, lab)
    assert ended.status == 0
    assert ended.out.startswith("openmpi: built (")
    assert "openmpi 5.0.11" in ended.out
    assert f"module use {lab.layout.modulefiles}; module load stack-openmpi/5.0.11" in ended.out
    assert "openmpi: solving" in ended.err


def test_build_again_has_nothing_to_do(fabricproof: Call, lab: Lab):
    built(fabricproof, lab)
    lab.forget()
    ended = built(fabricproof, lab)
    assert "stands as locked, nothing to do" in ended.out
    assert lab.calls == []


def test_build_as_json_is_one_record_for_each_stack(fabricproof: Call, lab: Lab):
    first = json.loads(built(fabricproof, lab, "--json").out)
    again = json.loads(built(fabricproof, lab, "--json").out)
    assert [each["stood"] for each in (*first, *again)] == [False, True]
    assert first[0]["mpi"]["version"] == "5.0.11"
    assert again[0]["lock_digest"] == first[0]["lock_digest"]


def test_a_stack_that_fails_does_not_keep_the_next_from_being_built(fabricproof: Call, lab: Lab):
    path = lab.site / "site.toml"
    bad = '\n[[stacks]]\nname = "{}"\nfamily = "openmpi"\nversion = "5"\nspack = "nosuch"\n'
    both = bad.format("bad") + bad.format("worse")
    path.write_text(path.read_text().replace("\n[[stacks]]", both + "\n[[stacks]]", 1))
    for command in ("build", "lock"):
        ended = fabricproof(
            "stack", command, "--site", "lab", "--spack", lab.folder / "tool", "--json"
        )
        assert ended.status == ExitStatus.CONFIG
        assert [each["stack"] for each in json.loads(ended.out)] == ["openmpi"]
        assert "bad: failed, the other stacks go on" in ended.err
        assert ended.err.count("nosuch/spack.yaml") == 2, "each failure is said once"


@pytest.mark.parametrize("name", ["plain", "mpi9"])
def test_a_stack_that_spack_does_not_build_is_a_wrong_site(fabricproof: Call, lab: Lab, name: str):
    ended = fabricproof("stack", "build", name, "--site", "lab", "--spack", lab.folder / "tool")
    assert ended.status == ExitStatus.CONFIG
    assert name in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_wrong_spack_is_one_message(fabricproof: Call, lab: Lab):
    ended = fabricproof("stack", "build", "openmpi", "--site", "lab", "--spack", lab.folder)
    assert ended.status == ExitStatus.UNAVAILABLE
    assert "there is no Spack where --spack says" in ended.err
    assert not lab.manifest.exists()


def test_a_package_that_does_not_compile_is_one_message_with_its_log(fabricproof: Call, lab: Lab):
    from pretended_spack import TESTS  # noqa: PLC0415

    output = (TESTS / "data" / "spack" / "compile-error.out").read_text()
    lab.order(install={"status": 1, "output": output})
    ended = built(fabricproof, lab)
    assert ended.status == ExitStatus.UNAVAILABLE
    last = ended.err.splitlines()[-1]
    assert last.startswith("fabricproof: /stacks/spack/stage/")
    assert "nosuch.h: No such file" in last
    assert ended.out == ""


def test_lock_solves_installs_nothing_and_then_still_holds(fabricproof: Call, lab: Lab):
    command = ("stack", "lock", "openmpi", "--site", "lab", "--spack", lab.folder / "tool")
    first = fabricproof(*command)
    assert "openmpi: solved, " in first.out
    assert "openmpi@5.0.11" in first.out
    assert "install" not in lab.commands
    again = json.loads(fabricproof(*command, "--json").out)
    assert again[0]["kept"]
    assert again[0]["lock"] == str(lab.layout.kept_lock("openmpi"))
    assert json.loads(fabricproof(*command, "--force", "--json").out)[0]["kept"] is False


def test_a_lock_that_fails_says_where_spacks_own_words_are(fabricproof: Call, lab: Lab):
    said = "==> Error: something nobody has seen\n"
    lab.order(concretize={"status": 1, "output": said})
    ended = fabricproof("stack", "lock", "openmpi", "--site", "lab", "--spack", lab.folder / "tool")
    assert ended.status == ExitStatus.UNAVAILABLE
    log = next((lab.layout.mine / "logs").glob("openmpi-*.log"))
    assert said in log.read_text()
    assert f"openmpi: all that Spack printed is in {log}" in ended.err
    assert ended.err.splitlines()[-1].startswith("fabricproof: ")


def test_list_shows_how_a_stack_stands(fabricproof: Call, lab: Lab):
    def state() -> tuple[str, str]:
        records = json.loads(fabricproof("stack", "list", "--site", "lab", "--json").out)
        record = next(each for each in records if each["name"] == "openmpi")
        return record["state"], record["label"]

    assert state()[0] == "absent"
    built(fabricproof, lab)
    assert state()[0] == "installed"
    text = lab.packages.read_text()
    lab.packages.write_text(text.replace("5.0.11", "5.0.12"))
    assert state()[0] == "stale"
    assert "changed" in state()[1]
    lab.packages.write_text("packages: [")
    assert "not valid YAML" in state()[1]


def test_list_writes_nothing(fabricproof: Call, lab: Lab):
    before = sorted(lab.layout.root.rglob("*"))
    assert fabricproof("stack", "list", "--site", "lab").status == 0
    assert sorted(lab.layout.root.rglob("*")) == before


def test_remove_removes_what_was_built(
    fabricproof: Call, lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SPACK_ROOT", str(lab.folder / "tool"))
    built(fabricproof, lab)
    command = ("stack", "remove", "openmpi", "--site", "lab")
    assert fabricproof(*command).out == "openmpi: removed\n"
    assert fabricproof(*command).out == "openmpi: was not installed\n"
    assert not lab.manifest.exists()


#: Whoever runs the tests may have had signals ignored, and children inherit that.
AS_BY_HAND = """
import os, signal, sys
for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(each, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_build_that_is_told_to_end_leaves_no_spack(lab: Lab, sign: int):
    lab.order(install={"child": True})
    command = [sys.executable, "-c", AS_BY_HAND, "-m", "fabricproof.cli", "stack", "build"]
    process = subprocess.Popen(
        [*command, "openmpi", "--site", "lab", "--spack", str(lab.folder / "tool")],
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    pids = lab.folder / "pids"
    while not (pids.exists() and pids.read_text()):
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.1)
    process.send_signal(sign)
    # The pretended Spack ends on SIGINT, its child does not care for it.
    said, _ = process.communicate(timeout=30)
    assert process.returncode == ExitStatus.INTERRUPTED
    assert said.splitlines()[-1] == "fabricproof: interrupted"
    assert is_gone(int(pids.read_text().split()[0]))
    assert not lab.manifest.exists()


def test_whoever_ignores_hangups_is_heeded():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with display("openmpi"):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_steps_are_plain_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
):
    recorded = (
        "==> Installing osu-micro-benchmarks-7.2-uhudkl5t4rkpqaw5mh6xh55tj4wnmtan [8/8]",
        "==> osu-micro-benchmarks: Executing phase: 'build'",
    )
    with display("openmpi") as listen:
        listen("wait", "another build is under way (x); waiting for it")
        listen("lock", "a line of the solver")
        for line in recorded:
            listen("install", line)
        listen("linkage", "which MPI the programs load")
    assert capsys.readouterr().err.splitlines() == [
        "openmpi: another build is under way (x); waiting for it",
        "openmpi: solving",
        "openmpi: installing",
        "openmpi: Installing osu-micro-benchmarks-7.2-uhudkl5t4rkpqaw5mh6xh55tj4wnmtan [8/8]",
        "openmpi: osu-micro-benchmarks: Executing phase: 'build'",
        "openmpi: checking which MPI is loaded",
    ]
