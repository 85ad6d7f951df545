"""``fabricproof parse``: what it prints, where, and with which status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fabricproof.cli.judge.parse import command

DATA = Path(__file__).parents[1] / "data"
BW = str(DATA / "osu/osu_bw-7.2.txt")
P2P = str(DATA / "imb/document-004-p2p-1gbe.txt")
BAD = str(DATA / "osu/damaged/osu_cas_latency-5.9-segfault.txt")


def run(*arguments: str, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(command, arguments, input=text, catch_exceptions=False)


def records(result: Result) -> list[dict[str, Any]]:
    found = json.loads(result.stdout)
    assert isinstance(found, list)
    return found


def test_json_has_one_object_per_table() -> None:
    result = run("--json", BW, P2P)
    assert result.exit_code == 0
    first, second = records(result)
    assert (first["suite"], first["program"], first["version"]) == ("osu", "osu_bw", "7.2")
    assert first["columns"] == ["message_size", "bandwidth_mb_s"]
    assert first["units"] == ["B", "MB/s"]
    assert len(first["rows"]) == 23
    assert first["source"] == BW
    assert first["line"] == 2
    assert (second["suite"], second["version"]) == ("imb", None)
    assert second["rows"][-1] == [4194304, 200, 36276.94, 115.62, 28]


def test_good_tables_are_printed_beside_a_bad_file() -> None:
    result = run("--json", BW, BAD, P2P)
    assert result.exit_code == 65
    assert [record["source"] for record in records(result)] == [BW, P2P]
    assert f"fabricproof: {BAD}:" in result.stderr
    assert "the job ended badly" in result.stderr


def test_missing_file_is_named() -> None:
    result = run("--json", "nowhere.out", BW)
    assert result.exit_code == 66
    assert len(records(result)) == 1
    assert "nowhere.out: cannot read: No such file" in result.stderr


def test_damaged_file_weighs_more_than_a_missing_one() -> None:
    assert run("nowhere.out", BAD).exit_code == 65
    assert run(BAD, "nowhere.out").exit_code == 65


@pytest.mark.parametrize("text", [b"", b"\x00\xff\xfe", b"no table here\n"])
def test_input_without_table(text: bytes) -> None:
    result = run("-", text=text)
    assert result.exit_code == 65
    assert "<stdin>:1: no benchmark table" in result.stderr
    assert result.stdout == ""


def test_the_whole_tables_of_a_damaged_file_are_shown() -> None:
    row = "# OSU MPI Bandwidth Test v7.2\n# Size      Bandwidth (MB/s)\n1   1.00\n"
    result = run("--json", "-", text=row + row + "4   4.00\n" + row)
    assert result.exit_code == 65
    assert [table["line"] for table in records(result)] == [2, 9]
    assert "<stdin>:7: a row is missing" in result.stderr


def test_an_input_without_end_is_refused() -> None:
    """Finding D19: /dev/zero ended in a MemoryError."""
    result = run("/dev/zero")
    assert result.exit_code == 65
    assert "larger than what is read: expected at most 32 MiB" in result.stderr
