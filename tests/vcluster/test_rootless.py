"""``ci/rootless.sh``: what it refuses and says; where a user may, a cluster in a user namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "ci" / "rootless.sh"


def called(*words: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {key: value for key, value in os.environ.items() if key != "FABRICPROOF_ROOTLESS"}
    return subprocess.run(
        ["/bin/sh", str(SCRIPT), *words],
        cwd=cwd,
        env={**known, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def tools_without(folder: Path, *absent: str) -> str:
    """Return a search path with what the script calls, but for some programs."""
    for name in ("id", "grep", "unshare", "newuidmap", "newgidmap", "mount", "ip"):
        found = shutil.which(name)
        if found and name not in absent:
            (folder / name).symlink_to(found)
    return str(folder)


def test_without_a_command_it_says_how_it_is_called() -> None:
    ended = called()
    assert (ended.returncode, ended.stderr) == (2, "usage: ci/rootless.sh COMMAND [ARGUMENT...]\n")


def test_a_project_that_would_be_hidden_in_there_is_refused() -> None:
    ended = called("true", cwd=Path("/tmp"))
    assert ended.returncode == 77
    assert "keep the project outside /tmp and /run" in ended.stderr


def test_a_program_that_is_not_there_is_named_with_its_package(tmp_path: Path) -> None:
    ended = called("true", PATH=tools_without(tmp_path, "newuidmap", "newgidmap"))
    assert ended.returncode == 77
    assert "no newuidmap; an administrator installs it: apt-get install" in ended.stderr


def test_a_user_without_ids_of_his_own_is_told_how_to_get_them(tmp_path: Path) -> None:
    tools = Path(tools_without(tmp_path, "id", "newuidmap", "newgidmap", "unshare"))
    for name, text in {
        "id": "echo nobody-here-by-that-name",
        "newuidmap": "exit 0",
        "newgidmap": "exit 0",
        "unshare": "exit 0",
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    ended = called("true", PATH=str(tools))
    assert ended.returncode == 77
    assert "no ids for nobody-here-by-that-name in /etc/subuid" in ended.stderr
    assert "usermod --add-subuids" in ended.stderr


@pytest.mark.parametrize(
    ("option", "words", "said"),
    [
        (
            "--mount-proc",
            "unshare: mount /proc failed: Operation not permitted",
            "mount /proc failed",
        ),
        (
            "--map-auto",
            "unshare: unrecognized option '--map-auto'\nTry 'unshare --help' for more information.",
            "unrecognized option '--map-auto' (it takes util-linux 2.38",
        ),
    ],
)
def test_what_unshare_cannot_do_here_is_said_in_its_own_words(
    tmp_path: Path, option: str, words: str, said: str
) -> None:
    """It is asked for all that the cluster takes, not for a user namespace alone."""
    tools = Path(tools_without(tmp_path, "grep", "newuidmap", "newgidmap", "unshare"))
    refuse = f'case " $* " in *" {option} "*) echo "{words}" >&2; exit 1 ;; esac'
    for name, text in {
        "grep": "exit 0",
        "newuidmap": "exit 0",
        "newgidmap": "exit 0",
        "unshare": refuse,
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    ended = called("true", PATH=str(tools))
    assert ended.returncode == 77
    assert ended.stderr.startswith(f"rootless: unshare: {said}")
    assert "kernel.unprivileged_userns_clone" in ended.stderr


def test_in_there_a_command_is_run_as_it_is() -> None:
    ended = called("sh", "-c", "echo in; exit 7", FABRICPROOF_ROOTLESS="inside")
    assert (ended.returncode, ended.stdout) == (7, "in\n")


def test_where_this_user_may_it_is_root_without_a_network_and_all_ends_with_it() -> None:
    script = "id -u; ls /run /tmp | wc -l; ip -o link | wc -l; sleep 300 >/dev/null & echo $!"
    ended = called("sh", "-c", script)
    if ended.returncode == 77:
        pytest.skip(ended.stderr)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split()[0] == "0"
    assert ended.stdout.split("\n")[-3] == "1", "lo alone"
