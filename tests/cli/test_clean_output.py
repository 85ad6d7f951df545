"""No name in a file or of one writes a line of its own, or over another."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from fabricproof.cli.clean_output import CleanOutput
from fabricproof.cli.console import HonestConsole

BELOW = Path(__file__).resolve().parents[1] / "replays" / "c5n_osu_bw.out"
STEERING = "\rPASS  \x1b[8m\x9b2J\b"


@pytest.mark.parametrize("command", ["judge", "parse"])
def test_a_files_name_steers_no_terminal_and_begins_no_line(
    command: str, tmp_path: Path, fabricproof: Callable[..., Any]
) -> None:
    path = tmp_path / f"a{STEERING}\nPASS  all is well"
    shutil.copy(BELOW, path)
    arguments = [command, str(path)] + (["--link", "100GbE"] if command == "judge" else [])
    ended = fabricproof(*arguments)
    assert ended.status == (1 if command == "judge" else 0)
    assert all(each.isprintable() for each in ended.out.splitlines())
    assert not any(each.startswith("PASS") for each in ended.out.splitlines())


def test_a_nodes_name_begins_no_line(tmp_path: Path, fabricproof: Callable[..., Any]) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('a,b,value\n"n1\nPASS",n2,3\nn1,n3,24\n')
    ended = fabricproof("pairs", "judge", str(path))
    assert ended.status == 65
    assert "no name of a node" in ended.err


def test_what_is_written_keeps_lines_and_tabs_and_loses_nothing() -> None:
    below = io.StringIO()
    CleanOutput(below).write(f"one\ttwo\n{STEERING}\u2028\n")
    assert below.getvalue() == "one\ttwo\n\\rPASS  \\x1b[8m\\x9b2J\\x08\\u2028\n"


def test_a_console_on_a_terminal_has_colours_and_the_text_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    below = io.StringIO()
    monkeypatch.setattr("sys.stdout", CleanOutput(below))
    console = HonestConsole(force_terminal=True, color_system="standard", width=200)
    console.print(Text(f"name {STEERING}", style="red"))
    assert below.getvalue().startswith("\x1b[31mname ")
    assert "\\x1b[8m" in below.getvalue()
    assert "\r" not in below.getvalue()
