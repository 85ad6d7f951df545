"""The one place where errors become messages and statuses."""

from __future__ import annotations

import errno
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from fabricproof.core.errors import ConfigError, UnavailableError

PUT = Path(__file__).resolve().parents[1] / "replays" / "gbe_osu_put_bw.out"

Command = Callable[..., Any]

#: the module; the package exports its function of the same name
main_module = importlib.import_module("fabricproof.cli.main")


def test_help_lists_every_subcommand_and_status(fabricproof: Command) -> None:
    ended = fabricproof("--help")
    assert ended.status == 0
    for name, (_, text) in main_module.SUBCOMMANDS.items():
        assert name in ended.out
        assert text.split(".")[0] in ended.out
    assert "Exit status: 0 only if something was judged" in ended.out


@pytest.mark.parametrize("arguments", [["frobnicate"], ["judge"], ["--what"], ["site", "what"]])
def test_a_wrong_command_line_ends_with_status_2(
    arguments: list[str], fabricproof: Command
) -> None:
    ended = fabricproof(*arguments)
    assert ended.status == 2
    assert "Error:" in ended.err


@pytest.mark.parametrize("name", sorted(set(main_module.SUBCOMMANDS) - {"reframe"}))
def test_every_subcommand_has_help_that_teaches(name: str, fabricproof: Command) -> None:
    ended = fabricproof(name, "--help")
    assert ended.status == 0
    assert ended.out.startswith("Usage: fabricproof")
    assert "\\b" not in ended.out


#: these compute with arrays, whatever they are asked
_WITH_ARRAYS = {"pairs": {"numpy", "polars"}, "compare": {"numpy"}}
_WITH_ARRAYS["trend"] = {"numpy"}
_WITH_ARRAYS["admit"] = _WITH_ARRAYS["pairs"]


@pytest.mark.parametrize("name", sorted(main_module.SUBCOMMANDS))
def test_no_subcommand_loads_a_heavy_library_to_tell_its_help(name: str) -> None:
    code = (
        f"import sys, {main_module.SUBCOMMANDS[name][0]}\n"
        "heavy = {'numpy', 'polars', 'reframe', 'pyarrow', 'scipy', 'matplotlib'}\n"
        "print(*heavy & set(sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert set(loaded.stdout.split()) <= _WITH_ARRAYS.get(name, set())


@pytest.mark.parametrize("module", ["click", "fabricproof.core.errors", "fabricproof.cli.main"])
def test_ctrl_c_while_the_command_is_loaded_is_an_interrupt_without_a_traceback(
    module: str,
) -> None:
    """A third of a second on a busy machine, as long as a person needs to think better of it."""
    program = (
        "import builtins, sys\n"
        "real = builtins.__import__\n"
        "def load(name, *rest, **named):\n"
        f"    if name == {module!r}:\n"
        "        raise KeyboardInterrupt\n"
        "    return real(name, *rest, **named)\n"
        "builtins.__import__ = load\n"
        "from fabricproof.cli import main\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "fabricproof: interrupted\n"


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ConfigError("wrong", source="f", line=2), 78, "fabricproof: f:2: wrong\n"),
        (UnavailableError("no slurmctld"), 69, "fabricproof: no slurmctld\n"),
        (KeyboardInterrupt(), 130, "fabricproof: interrupted\n"),
        (click.exceptions.Abort(), 130, "fabricproof: interrupted\n"),
        (click.UsageError("no"), 2, "Error: no"),
        (
            OSError(errno.ENOSPC, "No space left on device", "perflogs/x"),
            74,
            "fabricproof: perflogs/x: cannot write: No space left on device\n",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), 74, "output: cannot write"),
        (OSError(errno.EFBIG, "File too large", "p"), 74, "p: cannot write: File too large"),
        (PermissionError(errno.EACCES, "Permission denied", "p"), 74, "p: cannot write: Perm"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "p"), 74, "p: cannot write: Not"),
        (FileExistsError(errno.EEXIST, "File exists", "p"), 74, "p: cannot write: File exists"),
    ],
)
def test_every_error_becomes_a_message_and_its_status(
    error: BaseException,
    status: int,
    words: str,
    fabricproof: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(main_module.group, "main", fail)
    ended = fabricproof("judge")
    assert ended.status == status
    assert words in ended.err


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), OSError(errno.EBADF, "Bad descriptor")])
def test_a_bug_is_no_verdict(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(main_module.group, "main", fail)
    with pytest.raises(SystemExit) as leaving:
        main_module.main()
    assert leaving.value.code == 70
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "this is a bug in fabricproof" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", ""],
        ["report", " "],
        ["report", "latest", ""],
        ["report", "--site", ""],
        ["report", "-o", ""],
        ["runs", ""],
        ["runs", "label", "20261121T213422Z-1a6c68", ""],
        ["compare", "", "latest"],
        ["baseline", "show", ""],
        ["inventory", "show", ""],
        ["judge", ""],
        ["judge", PUT, "--link", ""],
        ["parse", ""],
        ["nightly", ""],
        ["nightly", "-t", ""],
        ["run", "--site", ""],
        ["site", "check", ""],
    ],
)
def test_an_empty_argument_never_means_the_default(
    arguments: list[object], fabricproof: Command
) -> None:
    """A variable of a script that holds nothing: the newest run is another one, perhaps green."""
    ended = fabricproof(*arguments)
    assert ended.status == 2
    assert "it is empty" in ended.err


def _of_shell(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -m fabricproof.cli"
    return subprocess.run(
        ["bash", "-c", line.replace("fabricproof", program)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "status"),
    [("judge /nonexistent --link HDR", 66), ("judge", 2), ("site check nosuch", 66)],
)
def test_a_full_disk_below_standard_error_changes_no_status(arguments: str, status: int) -> None:
    """Python's own status for it is 1, which says FAIL."""
    assert _of_shell(f"fabricproof {arguments} 2>/dev/full").returncode == status
    assert _of_shell(f"fabricproof {arguments} 2>&-").returncode == status


@pytest.mark.parametrize("arguments", [f"judge {PUT} --link 1GbE", f"parse {PUT}", "stack list"])
def test_a_closed_standard_output_is_no_traceback(arguments: str) -> None:
    ended = _of_shell(f"fabricproof {arguments} >&-")
    whole = _of_shell(f"fabricproof {arguments}")
    assert ended.stderr == whole.stderr
    assert ended.returncode == whole.returncode


@pytest.mark.parametrize("columns", ["0", "1", "12"])
def test_a_terminal_without_columns_is_no_empty_output(columns: str) -> None:
    ended = _of_shell(f"fabricproof parse {PUT}", COLUMNS=columns)
    assert ended.returncode == 0
    assert "osu_put_bw" in ended.stdout
    assert ended.stdout == _of_shell(f"fabricproof parse {PUT}").stdout


def test_a_name_of_a_file_steers_no_terminal(fabricproof: Command, tmp_path: Path) -> None:
    name = tmp_path / "a\nfabricproof: all is well\x1b]0;x\x07"
    ended = fabricproof("judge", name, "--link", "HDR")
    assert ended.status == 66
    assert len(ended.err.splitlines()) == 1
    assert ended.err.strip().isprintable()
    assert "\\nfabricproof: all is well\\x1b]0;x\\x07" in ended.err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        TimeoutError("timed out"),
        subprocess.TimeoutExpired(["sinfo"], 5),
    ],
)
def test_what_the_system_refuses_is_no_bug(
    error: Exception, fabricproof: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(main_module.group, "main", fail)
    ended = fabricproof("judge")
    assert ended.status == 69
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize("words", [f"judge {PUT} --link 1GbE", f"parse {PUT}"])
def test_a_reader_that_goes_away_is_no_verdict(words: str) -> None:
    # Status 1 would say FAIL; the reader is gone before the first line is written.
    command = f"{{ sleep 0.5; {sys.executable} -m fabricproof.cli {words}; echo $? >&2; }} | exit 0"
    ended = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stderr == "74\n"


def test_a_full_disk_is_no_success() -> None:
    command = f"{sys.executable} -m fabricproof.cli judge {PUT} --link 1GbE >/dev/full"
    ended = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 74
    assert "cannot write" in ended.stderr
    assert "Traceback" not in ended.stderr
