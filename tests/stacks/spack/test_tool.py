"""Spack itself: found, refused, called in an environment of its own, and ended whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import (
    FabricproofError,
    InterruptedBuildError,
    OutputError,
    UnavailableError,
)
from fabricproof.stacks.spack import tool
from fabricproof.stacks.spack.tool import failure_of, fetch_spack, find_spack, solver_python
from pretended_spack import Lab, executable
from process_groups import is_gone

LEAKS = {
    "LD_LIBRARY_PATH": "/opt/mpi/lib",
    "LD_PRELOAD": "",
    "LD_RUN_PATH": "/opt/mpi/lib",
    "PYTHONPATH": "/opt/python",
    "PYTHONHOME": "/usr",
    "CPATH": "/opt/include",
    "C_INCLUDE_PATH": "/opt/include",
    "CPLUS_INCLUDE_PATH": "/opt/include",
    "LIBRARY_PATH": "/opt/lib",
    "OMPI_CC": "icc",
    "OMPI_MCA_btl": "self",
    "OPAL_PREFIX": "/opt/mpi",
    "PRTE_MCA_x": "1",
    "PMIX_RANK": "0",
    "PMI_RANK": "0",
    "I_MPI_ROOT": "/opt/intel",
    "FI_PROVIDER": "verbs",
    "MPIR_CVAR_X": "1",
    "MPICH_CC": "icc",
    "HYDRA_LAUNCHER": "slurm",
    "MV2_X": "1",
    "UCX_TLS": "tcp",
    "SLURM_JOB_ID": "7",
    "SPACK_ENV": "/somewhere",
    "SPACK_USER_CONFIG_PATH": "/home/somebody",
    "SPACK_PYTHON": "/usr/bin/python2",
}


def test_nothing_of_the_callers_mpi_python_or_spack_reaches_spack(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    for name, value in LEAKS.items():
        monkeypatch.setenv(name, value)
    lab.open().do(lab.folder, "find", "--format", "{hash}")
    seen = json.loads((lab.folder / "environment.json").read_text())
    ours = {"SPACK_PYTHON", "SPACK_DISABLE_LOCAL_CONFIG", "SPACK_USER_CACHE_PATH", "SPACK_ROOT"}
    assert not (LEAKS.keys() - ours) & seen.keys()
    assert {name for name in seen if name.startswith("SPACK_")} == ours
    assert seen["SPACK_PYTHON"] == str(lab.layout.root / "python" / "bin" / "python")
    assert seen["SPACK_DISABLE_LOCAL_CONFIG"] == "1"
    assert seen["SPACK_USER_CACHE_PATH"] == str(lab.layout.root / "cache")
    assert seen["SPACK_ROOT"] == str(lab.folder / "tool")
    assert seen["LC_ALL"] == "C.UTF-8"
    assert seen["PATH"].endswith(os.environ["PATH"])


def test_spack_is_what_was_named_then_the_variable_then_path_then_the_fetched(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_spack(lab.layout.root) is None
    fetched = executable(lab.layout.root / "home" / "bin" / "spack", "")
    assert find_spack(lab.layout.root) == fetched
    on_path = executable(lab.folder / "path" / "spack", "")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_spack(lab.layout.root) == on_path
    by_variable = executable(lab.folder / "root" / "bin" / "spack", "")
    monkeypatch.setenv("SPACK_ROOT", str(lab.folder / "root"))
    assert find_spack(lab.layout.root) == by_variable
    assert find_spack(lab.layout.root, lab.folder / "tool") == lab.program
    assert find_spack(lab.layout.root, lab.program) == lab.program


def test_a_spack_that_was_named_and_is_not_there_is_refused(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(UnavailableError, match="where --spack says"):
        find_spack(lab.layout.root, lab.folder)
    monkeypatch.setenv("SPACK_ROOT", str(lab.folder / "none"))
    with pytest.raises(UnavailableError, match=r"where \$SPACK_ROOT says"):
        find_spack(lab.layout.root)


def test_a_version_with_its_commit_is_kept(lab: Lab):
    assert lab.open().label == "1.1.1 (0123456789ab)"


@pytest.mark.parametrize("version", ["0.23.1", "1.0.4 (abc)"])
def test_an_old_spack_is_refused_with_what_else_to_do(lab: Lab, version: str):
    lab.order(version=version)
    with pytest.raises(UnavailableError, match=r"too old.*1\.1 or newer.*--spack"):
        lab.open()


@pytest.mark.parametrize("version", ["1.1.0", "1.2.0.dev0 (abc)", "2.0"])
def test_a_new_spack_is_taken(lab: Lab, version: str):
    lab.order(version=version)
    assert lab.open().label == version


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        ({"version": ""}, "got nothing"),
        ({"version": "hello"}, "got hello"),
        ({"version": "1.1.1", "version status": 3}, "does not run"),
    ],
)
def test_a_spack_that_says_no_version_is_refused(lab: Lab, orders: dict, words: str):
    lab.order(**orders)
    with pytest.raises(UnavailableError, match=words):
        lab.open()


@pytest.mark.parametrize(
    ("text", "mode"), [("#!/no/such/python\n", 0o755), ("#!/bin/sh\n", 0o644), ("\x7fELF", 0o755)]
)
def test_a_spack_that_cannot_be_started_is_refused(lab: Lab, text: str, mode: int):
    lab.program.write_text(text)
    lab.program.chmod(mode)
    with pytest.raises(UnavailableError, match="Spack does not run"):
        lab.open()


def test_a_spack_that_never_answers_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    run = subprocess.run

    def hurried(*arguments, **options):
        return run(*arguments, **{**options, "timeout": 0.2})

    lab.program.write_text("#!/bin/sh\nexec sleep 30\n")
    monkeypatch.setattr(subprocess, "run", hurried)
    with pytest.raises(UnavailableError, match="no answer"):
        lab.open()


def test_every_line_is_heard_and_kept_in_the_log(lab: Lab):
    lab.order(find={"output": "one\ntwo \xe4\n"})
    heard: list[str] = []
    log = lab.folder / "logs" / "a.log"
    output = lab.open().do(lab.folder, "find", on_line=heard.append, log=log)
    assert output == "one\ntwo \xe4\n"
    assert heard == ["one", "two \xe4"]
    assert log.read_text() == output


def pids_of(lab: Lab) -> tuple[int, int]:
    spack, child = (lab.folder / "pids").read_text().split()
    return int(spack), int(child)


def stop(line: str) -> None:
    raise KeyboardInterrupt


def test_a_failing_listener_ends_spack_and_what_it_started(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tool, "PATIENCE_S", 0.3)
    lab.order(install={"child": True})
    with pytest.raises(KeyboardInterrupt):
        lab.open().do(lab.folder, "install", on_line=stop)
    assert is_gone(pids_of(lab)[0])


def test_a_second_interrupt_while_spack_ends_leaves_nothing_running(lab: Lab):
    spack = lab.open()

    def stop_twice(line: str) -> None:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        raise KeyboardInterrupt

    # The pretended Spack waits for a child that does not care for SIGINT.
    lab.program.write_text("#!/bin/sh\ntrap '' INT\necho $$ >$FAKE_SPACK/pids\necho go\nsleep 60\n")
    with pytest.raises(KeyboardInterrupt):
        spack.do(lab.folder, "install", on_line=stop_twice)
    assert is_gone(int((lab.folder / "pids").read_text()))


def test_a_full_log_disk_ends_spack_and_is_one_message(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tool, "PATIENCE_S", 0.3)
    lab.order(install={"child": True})
    with pytest.raises(OutputError, match="cannot keep what Spack prints: No space left"):
        lab.open().do(lab.folder, "install", log=Path("/dev/full"))
    assert is_gone(pids_of(lab)[0])


def test_a_listener_without_a_reader_is_no_matter_of_the_log(lab: Lab):
    lab.order(find={"output": "one\n"})

    def gone(line: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError) as caught:
        lab.open().do(lab.folder, "find", on_line=gone)
    assert not isinstance(caught.value, OutputError)


def test_what_spack_leaves_behind_is_ended_after_a_good_call_too(lab: Lab):
    spack = lab.open()
    lab.program.write_text("#!/bin/sh\nsleep 60 >/dev/null 2>&1 &\necho $$ >$FAKE_SPACK/pids\n")
    spack.do(lab.folder, "find")
    assert is_gone(int((lab.folder / "pids").read_text()))


BUILDER = """\
import os, sys
from pathlib import Path
from fabricproof.stacks.spack.tool import Spack
folder = Path(sys.argv[1])
Spack(program=folder / "spack", label="1", environment=dict(os.environ)).do(folder, "install")
"""


def test_a_builder_that_is_killed_takes_its_spack_along(tmp_path: Path):
    lines = ("#!/bin/sh", f"cd {tmp_path}", "echo $$ >pid", "mv pid on", "sleep 600", "touch done")
    executable(tmp_path / "spack", "\n".join([*lines, ""]))
    killed = subprocess.Popen([sys.executable, "-c", BUILDER, str(tmp_path)])
    while not (tmp_path / "on").exists():
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    # A shell that is about to start its program may lose Ctrl-C: then it is killed, later.
    spack = int((tmp_path / "on").read_text())
    assert is_gone(spack, within_seconds=tool.PATIENCE_S + 20)
    assert not (tmp_path / "done").exists()


def test_a_python_with_the_solver_is_used_as_it_is(lab: Lab):
    assert solver_python(lab.layout.root) == lab.layout.root / "python" / "bin" / "python"


def test_a_solver_that_cannot_be_had_is_one_message_and_leaves_no_python(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    python = lab.layout.root / "python" / "bin" / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    failing = executable(lab.folder / "failing", "#!/bin/sh\necho ERROR: no clingo >&2\nexit 1\n")
    monkeypatch.setattr(sys, "executable", str(failing))
    with pytest.raises(UnavailableError, match="from the package index, got ERROR: no clingo"):
        solver_python(lab.layout.root)
    assert not python.exists()


def test_a_spack_that_cannot_be_fetched_leaves_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    executable(
        lab.folder / "bin" / "git",
        '#!/bin/sh\nfor last; do :; done\nmkdir -p "$last"\necho "fatal: no route" >&2\nexit 128\n',
    )
    heard: list[str] = []
    with pytest.raises(UnavailableError, match=r"got fatal: no route; next: name one"):
        fetch_spack(lab.layout.root, heard.append)
    assert "fetching 1.1.1" in heard[0]
    assert not [path for path in lab.layout.root.iterdir() if "spack" in path.name]


def test_a_fetched_spack_is_whole_or_not_there(lab: Lab):
    executable(
        lab.folder / "bin" / "git",
        '#!/bin/sh\nfor last; do :; done\nmkdir -p "$last/bin"\ntouch "$last/bin/spack"\n',
    )
    program = fetch_spack(lab.layout.root, lambda text: None)
    assert program == lab.layout.root / "home" / "bin" / "spack"
    assert find_spack(lab.layout.root) is not None


def test_without_git_it_says_so(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnavailableError, match="got git: No such file"):
        fetch_spack(lab.layout.root, lambda text: None)


DATA = Path(__file__).resolve().parents[2] / "data" / "spack"
RUNS = json.loads((DATA / "runs.json").read_text())

#: recording -> what the message says, in Spack's own words
EXPECTED = {
    "interrupted": "spack install was interrupted; next: run the same",
    "disk-full-compile": "final link failed: No space left on device",
    "disk-full-environment": "[Errno 28] No space left on device",
    "disk-full-prefix": "[Errno 28] No space left on device",
    "disk-full-stage": "configure.ac: Cannot write: No space left on device",
    "killed-spack": "signal 9",
    "terminated-spack": "signal 15",
    "killed-build": "The process has stopped unexpectedly (signal 9)",
    "killed-compiler": "spack-build-out.txt: spack install failed",
    "compile-error": "<command-line>: fatal error: nosuch.h: No such file",
    "compile-error-colour": "fatal error: nosuch.h: No such file",
    "missing-tool": "spack-build-out.txt: spack install failed",
    "no-sources": "All fetchers failed for spack-stage-compiler-wrapper-1.1.0",
    "no-binary": "No binary found when cache-only was specified",
    "checksum-cut-archive": "ChecksumError: sha256 checksum failed for",
    "no-permission": "[Errno 13] Permission denied: '/stacks/spack/install'",
    "lock-timeout": "Timed out waiting for a read lock",
    "no-compiler": "no compiler configured, and Spack cannot find working",
    "unsatisfiable": "Cannot satisfy 'osu-micro-benchmarks@7.2'",
    "unknown-package": "'osu-micro-benchmark' does not exist",
    "yaml-schema-scope": "/site/spack/packages.yaml:3: ",
    "recipes-offline": "Failed to clone repository builtin",
    "recipes-missing": "No repo.yaml found in",
}


def test_every_recorded_failure_is_in_the_table() -> None:
    assert EXPECTED.keys() == RUNS.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_failure_is_one_line_in_spacks_words(name: str) -> None:
    step = "install" if "install" in RUNS[name]["command"] else "concretize"
    error = failure_of(step, RUNS[name]["status"], (DATA / f"{name}.out").read_text())
    assert type(error) is (InterruptedBuildError if name == "interrupted" else UnavailableError)
    assert EXPECTED[name] in str(error)
    assert "\n" not in str(error)
    assert error.next_step
    assert len(str(error)) < 800


@given(st.text(max_size=300), st.integers(-64, 255))
def test_whatever_spack_prints_is_one_line(output: str, status: int) -> None:
    error = failure_of("install", status, output)
    assert isinstance(error, FabricproofError)
    assert "\n" not in str(error)
