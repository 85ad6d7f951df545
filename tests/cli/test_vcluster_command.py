"""``fabricproof vcluster`` becomes the command of another package; neither imports the other."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vcluster.errors
from fabricproof.core.errors import ExitStatus

Command = Callable[..., Any]

_BLOCKED = """
import importlib, pkgutil, sys
class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {blocked!r}:
            raise ImportError(f"{{name}} is blocked")
sys.meta_path.insert(0, Wall())
import vcluster
names = [each.name for each in pkgutil.walk_packages(vcluster.__path__, "vcluster.")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


@pytest.mark.parametrize(
    ("blocked", "said"), [("fabricproof", ""), ("vcluster", "vcluster is blocked")]
)
def test_the_virtual_cluster_is_imported_without_fabricproof(blocked: str, said: str) -> None:
    """The other direction is a contract of import-linter; the second row shows that the wall is."""
    command = [sys.executable, "-c", _BLOCKED.format(blocked=blocked)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert said in done.stderr
    assert done.returncode == (1 if said else 0), done.stderr
    if not said:
        assert int(done.stdout) > 15


def test_every_word_arrives_as_it_was_typed(
    fabricproof: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def become(_: str, words: list[str], environment: dict[str, str]) -> None:
        assert environment["VCLUSTER_PROGRAM"] == "fabricproof vcluster"
        seen.append(words[4:])
        sys.exit(0)

    monkeypatch.setattr(os, "execve", become)
    for words in (["exec", "vc1", "--", "ls", "--", ""], ["--", "up"], ["-h"], []):
        assert fabricproof("vcluster", *words).status == 0
        assert seen[-1] == words


@pytest.mark.parametrize(("number", "status"), [(errno.ENOMEM, 69), (errno.ENOENT, 66)])
def test_a_process_that_cannot_become_another_says_so(
    fabricproof: Command, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number), "python")

    monkeypatch.setattr(os, "execve", refuse)
    ended = fabricproof("vcluster", "status")
    assert ended.status == status
    assert os.strerror(number) in ended.err


def test_a_module_of_that_name_in_the_working_folder_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "vcluster.py").write_text("print('not me')\n")
    program = Path(sys.executable).parent / "fabricproof"
    done = subprocess.run(
        [program, "vcluster", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("Usage: fabricproof vcluster ")


def test_an_exit_status_means_the_same_in_both() -> None:
    ours = {status.value: status.name for status in ExitStatus}
    theirs = {status.value: status.name for status in vcluster.errors.ExitStatus}
    assert {number: ours[number] for number in theirs} | {0: "DONE"} == theirs
