"""Every public command with a fault in each kind of outside call: a status, one line, no traceback.

The table is commands times faults.  A fault is a system call that fails as the system may have it
fail: the first, the middle and the last of those that the command makes.
"""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from fabricproof.cli.main import group
from fabricproof.core.errors import ExitStatus

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from report_data import HEALTHY, NEWEST, SLOW, recorded

ROOT = Path(__file__).resolve().parents[2]
FABRIC = ROOT / "tests" / "data" / "subnet" / "tree"
MATRIX = ROOT / "tests" / "data" / "pairs" / "rail.csv"
BASELINE = ROOT / "tests" / "data" / "history" / "old-spring.json"
OUTPUT = ROOT / "tests" / "replays" / "gbe_osu_put_bw.out"

COMMANDS: list[list[object]] = [
    ["parse", OUTPUT],
    ["judge", OUTPUT, "--link", "1GbE"],
    ["judge", OUTPUT, "--site", "vcluster", "--json"],
    ["ceiling", "--link", "HDR 4x"],
    ["site", "check"],
    ["site", "show", "vcluster"],
    ["init", "{out}/fabric"],
    ["site", "init", "fresh", "--no-jobs"],
    ["runs", "--json"],
    ["runs", "label", NEWEST, "good"],
    ["report", SLOW],
    ["report", SLOW, "--drain"],
    ["report", SLOW, "-o", "{out}/r.html", "-o", "{out}/r.xml"],
    ["report", SLOW, "-o", "{out}/b.tar.gz"],
    ["compare", HEALTHY, NEWEST],
    ["trend"],
    ["baseline", "freeze", "base", "last:4", "--at-least", "3", "--replace"],
    ["baseline", "list"],
    ["baseline", "show", "old-spring"],
    ["inventory", "show"],
    ["inventory", "diff", HEALTHY, NEWEST],
    ["plan", "-t", "quick"],
    ["preflight"],
    ["subnet", "check"],
    ["subnet", "check", "--from", FABRIC],
    ["stack", "list"],
    ["stack", "doctor", "openmpi5"],
    ["stack", "install", "openmpi5"],
    ["stack", "lock", "--site", "vcluster-spack"],
    ["stack", "build", "--site", "vcluster-spack"],
    ["stack", "remove", "openmpi5"],
    ["runs", "import", "{out}/run-report.json"],
    ["site", "list"],
    ["site", "roll", "vcluster", "--write"],
    ["run", "-t", "quick"],
    ["admit", "vc1"],
    ["nightly", "--no-notify"],
    ["nightly", "--alive"],
    ["nightly", "--dry-run", "--keep-days", "3"],
    ["pairs", "judge", MATRIX, "--reference", "24 GB/s", "-o", "{out}/m.html"],
    ["pairs", "run"],
    ["vcluster", "status"],
]

#: public commands that the table leaves to another test
ELSEWHERE = {
    "reframe": "becomes ReFrame itself (tests/rfm)",
    "vcluster": "the package vcluster has commands of its own (tests/vcluster); status is here",
}

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let a copy of the site vcluster have the recorded history; return a folder to write to."""
    recorded(tmp_path)
    for name in ("vcluster", "vcluster-spack"):
        shutil.copytree(ROOT / "site-configs" / name, tmp_path / "sites" / name)
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("FABRICPROOF_SITES", str(tmp_path / "sites"))
    monkeypatch.setenv("FABRICPROOF_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setenv("FABRICPROOF_SITE", "vcluster")
    monkeypatch.setenv("FABRICPROOF_VCLUSTER", "nobody-has-this-one")
    (tmp_path / "out").mkdir()
    _prepare(tmp_path)
    return tmp_path


def _prepare(place: Path) -> None:
    """Have a baseline, and a report of ReFrame."""
    site = place / "sites" / "vcluster"
    (site / "baselines").mkdir(exist_ok=True)
    shutil.copy(BASELINE, site / "baselines" / "old-spring.json")
    case = {"name": "bw", "partition": "p", "environ": "e", "result": "pass"}
    case["perfvalues"] = {"l:p:bw": [1.0, 0, None, None, "GB/s"]}
    session = {"time_start": "2026-10-01T02:00:00+0000"}
    report = {"session_info": session, "runs": [{"testcases": [case]}]}
    (place / "out" / "run-report.json").write_text(json.dumps(report))


class Nth:
    """Counts calls of one kind and has one of them, or all, fail."""

    def __init__(self, fails: Exception | None, which: int | None = None) -> None:
        self.calls = 0
        self.fails = fails
        self.which = which

    def __call__(self) -> None:
        self.calls += 1
        if self.fails is not None and self.which in {None, self.calls}:
            raise self.fails


def _opened(patch: pytest.MonkeyPatch, nth: Nth, folder: Path) -> None:
    real = io.open
    ours = (str(folder), str(OUTPUT))

    def faulty(file: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(file, str | Path) and str(file).startswith(ours):
            nth()
        return real(file, *arguments, **options)

    patch.setattr(io, "open", faulty)
    patch.setattr(builtins, "open", faulty)


def _written(patch: pytest.MonkeyPatch, nth: Nth, folder: Path) -> None:
    del folder
    for name in ("write", "fsync", "replace", "rename", "link", "mkdir"):
        patch.setattr(os, name, _with(nth, getattr(os, name)))


def _listed(patch: pytest.MonkeyPatch, nth: Nth, folder: Path) -> None:
    del folder
    for name in ("scandir", "listdir"):
        patch.setattr(os, name, _with(nth, getattr(os, name)))


def _started(patch: pytest.MonkeyPatch, nth: Nth, folder: Path) -> None:
    del folder
    patch.setattr(subprocess, "Popen", _with(nth, subprocess.Popen))
    patch.setattr(os, "fork", _with(nth, os.fork))


def _connected(patch: pytest.MonkeyPatch, nth: Nth, folder: Path) -> None:
    del folder
    patch.setattr(socket, "getaddrinfo", _with(nth, socket.getaddrinfo))
    patch.setattr(socket.socket, "connect", _with(nth, socket.socket.connect))


def _with(nth: Nth, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        nth()
        return real(*arguments, **options)

    return call


KINDS: dict[str, tuple[Callable[[pytest.MonkeyPatch, Nth, Path], None], tuple[int, ...]]] = {
    "open": (_opened, (errno.EACCES, errno.EIO, errno.EMFILE, errno.ENOENT)),
    "write": (_written, (errno.ENOSPC, errno.EROFS, errno.EDQUOT)),
    "list": (_listed, (errno.EACCES, errno.EIO)),
    "start": (_started, (errno.ENOENT, errno.EAGAIN, errno.ENOMEM)),
    "connect": (_connected, (errno.ECONNREFUSED, errno.ENETUNREACH)),
}

CLOCKS = {"1970": 0.0, "before 1970": -86400.0, "2096": 4.0e9}


@contextmanager
def _no_network(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have no test start anything real: no program, no connection."""
    real = subprocess.Popen

    def refuse(_: object, **options: Any) -> Any:
        return real(["/nonexistent/program"], **{**options, "shell": False})

    def unreachable(*_: object, **__: object) -> None:
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    patch.setattr(subprocess, "Popen", refuse)
    patch.setattr(socket, "getaddrinfo", unreachable)
    yield


def _wrong(ended: Any) -> str:
    known = {int(each) for each in ExitStatus} - {int(ExitStatus.SOFTWARE)}
    if ended.status not in known:
        return f"status {ended.status}"
    said = [line for line in ended.err.splitlines() if line.startswith("fabricproof: ")]
    if ended.status >= ExitStatus.DATA and not said and not ended.out:
        return f"status {ended.status} and not a word: {ended.err!r}"
    if ended.status == ExitStatus.USAGE:
        return f"the table of commands is wrong: {ended.err}"
    return ""


def _name(words: list[object]) -> str:
    return " ".join(str(each).removeprefix(f"{ROOT}/tests/") for each in words)


@pytest.mark.parametrize("words", COMMANDS, ids=_name)
def test_a_fault_ends_with_a_status_and_a_word(
    words: list[object], place: Path, fabricproof: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = []

    def call(what: str, *set_up: Callable[[pytest.MonkeyPatch], object]) -> None:
        arguments = [str(each).replace("{out}", str(place / "out")) for each in words]
        with monkeypatch.context() as patch, _no_network(patch):
            for each in set_up:
                each(patch)
            try:
                ended = fabricproof(*arguments)
            except BaseException as error:
                wrong.append(f"{what}: {type(error).__name__} {str(error)[-1500:]}")
                return
        if why := _wrong(ended):
            wrong.append(f"{what}: {why}")

    for kind, (arrange, numbers) in KINDS.items():
        counted = Nth(None)
        call(f"{kind}, well", lambda patch, a=arrange, n=counted: a(patch, n, place))
        places = sorted({1, (counted.calls + 1) // 2, counted.calls} - {0})
        for at, which in enumerate(places[: counted.calls]):
            number = numbers[at % len(numbers)]
            nth = Nth(OSError(number, os.strerror(number), "x" if kind != "write" else None), which)
            what = f"{kind} {which} of {counted.calls}: {errno.errorcode[number]}"
            call(what, lambda patch, a=arrange, n=nth: a(patch, n, place))
    for name, moment in CLOCKS.items():
        call(f"clock: {name}", lambda patch, m=moment: patch.setattr(time, "time", lambda: m))
    assert not wrong, "\n".join(wrong)


def _public(command: click.Command, words: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield " ".join(words)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        each = command.get_command(context, name)
        if each is not None and not each.hidden:
            yield from _public(each, (*words, name))


def test_no_public_command_is_left_out_of_the_walk() -> None:
    walked = {" ".join(map(str, words)) + " " for words in COMMANDS}
    public = set(_public(group, ()))
    # Of a group without a word its list is meant.
    names = {name: f"{name.removesuffix(' list')} " for name in public}
    missing = [name for name, begin in names.items() if not _begins(walked, begin)]
    assert sorted(missing) == sorted(set(ELSEWHERE) - {"vcluster"})
    assert ELSEWHERE.keys() <= public


def _begins(walked: set[str], begin: str) -> bool:
    return any(each.startswith(begin) for each in walked)


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("a bug"), OSError(errno.EBADF, "Bad file descriptor")]
)
def test_a_bug_does_not_pass_the_walk(
    error: Exception, fabricproof: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deliberate bad case: what is no fault of the system is seen."""

    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr("fabricproof.cli.judge.parse.read_output", broken)
    with pytest.raises(AssertionError):
        fabricproof("parse", OUTPUT)


def test_a_night_without_a_process_left_ends_with_its_line(
    place: Path, fabricproof: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr("fabricproof.nodes.slurm.shutil.which", lambda *_, **__: "/usr/bin/sinfo")
    config = place / "slurm.conf"
    config.touch()
    site = place / "sites" / "vcluster" / "site.toml"
    site.write_text(re.sub(r'SLURM_CONF = "[^"]*"', f'SLURM_CONF = "{config}"', site.read_text()))
    ended = fabricproof("nightly", "--no-notify")
    assert ended.status == 69
    state = (place / "perflogs" / "vcluster" / ".night" / "events.jsonl").read_text()
    assert '"ended": "no scheduler"' in state
    assert "Resource temporarily unavailable" in state
