"""Recorded outputs: the parsed tables, and an oracle that reads the same numbers naively."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recordings import AS_PRINTED, DAMAGED, DATA, GOOD, ROWS, TOOLS, golden_of

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ParseError
from fabricproof.core.measure import unit_of_column


@pytest.mark.parametrize("path", GOOD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_recording_gives_its_golden_tables(path: Path) -> None:
    golden = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert golden == json.loads(json.dumps(golden_of(path)))


@pytest.mark.parametrize("path", AS_PRINTED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_rows_hold_the_numbers_that_stand_on_their_lines(path: Path) -> None:
    text = path.read_text("utf-8")
    lines = text.split("\n")
    for table in parse_text(text):
        for row, number in zip(table.rows, table.row_lines, strict=True):
            words = lines[number - 1].split()
            printed = [
                float(word.rstrip(",:"))
                for word in words
                if word.rstrip(",:").replace(".", "").isdigit()
            ]
            if "group" in table.attributes:
                assert printed.pop(0) == table.attributes["group"]
            assert printed == list(row)


@pytest.mark.parametrize("path", ROWS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_line_that_looks_like_a_row_becomes_one(path: Path) -> None:
    text = path.read_text("utf-8")
    rows = {number for table in parse_text(text) for number in table.row_lines}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if len(words) > 1 and all(word.replace(".", "").isdigit() for word in words):
            assert number in rows


@pytest.mark.parametrize("path", GOOD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_columns_are_those_of_the_glossary(path: Path) -> None:
    for table in parse_text(path.read_text("utf-8")):
        assert all(unit_of_column(name) is not None for name in table.columns)


@pytest.mark.parametrize("path", DAMAGED, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_damaged_recording_is_an_error_with_its_line(path: Path) -> None:
    with pytest.raises(ParseError) as caught:
        parse_text(path.read_text("utf-8"), path.name)
    assert caught.value.source == path.name
    assert caught.value.line is not None
    assert caught.value.line >= 1


@pytest.mark.parametrize("tool", TOOLS)
def test_every_recording_says_where_it_comes_from(tool: str) -> None:
    folder = GOOD[0].parents[1] / tool
    provenance = (folder / "PROVENANCE.md").read_text("utf-8")
    for path in [*folder.glob("*.txt"), *folder.glob("damaged/*.txt")]:
        assert f"`{path.relative_to(folder)}`" in provenance


@pytest.mark.parametrize(
    "path", sorted((DATA / "subnet/tree").glob("ib*.txt")), ids=lambda path: path.stem
)
def test_what_another_command_reads_is_told_with_its_name(path: Path) -> None:
    with pytest.raises(ParseError) as caught:
        parse_text(path.read_text("utf-8"))
    assert "subnet check" in (caught.value.next_step or "")
