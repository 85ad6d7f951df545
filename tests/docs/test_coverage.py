"""The table of the source documents names only what there is: classes, files, replays."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from documents import ROOT

PAGE = ROOT / "docs" / "coverage.md"
TEXT = PAGE.read_text(encoding="utf-8")

LINK = re.compile(r"\[([^\]]+)\]\(\.\./(checks|tests/replays)/([^)]+)\)")

#: a name of a class that stands in no link would be tested by nobody
CLASS = re.compile(r"(?<![\w\[/`])((?:Osu|Imb|Tcp|Hpcc|Perftest)[A-Z]\w+)")


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in {"in the document", "---"}]


def wrong_names(text: str, root: Path = ROOT) -> list[str]:
    """Return what the page names and the repository does not have."""
    wrong = []
    for name, folder, file in LINK.findall(text):
        path = root / folder / file
        if not path.is_file():
            wrong.append(f"{folder}/{file}")
        elif folder == "checks" and name not in classes(path):
            wrong.append(f"{name} in {folder}/{file}")
    bare = LINK.sub("", text)
    return wrong + [f"{name} without its file" for name in CLASS.findall(bare)]


def classes(path: Path) -> set[str]:
    """Return the checks of a file: its classes, and what it adds to a family by name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = [node.value for node in tree.body if isinstance(node, ast.Expr)]
    firsts = [each.args[0] for each in called if isinstance(each, ast.Call)]
    added = {str(each.value) for each in firsts if isinstance(each, ast.Constant)}
    return added | {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def test_every_check_and_replay_that_is_named_exists() -> None:
    assert wrong_names(TEXT) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[OsuNothing](../checks/pt2pt/pairs.py)", ["OsuNothing in checks/pt2pt/pairs.py"]),
        ("[OsuBandwidth](../checks/pt2pt/gone.py)", ["checks/pt2pt/gone.py"]),
        ("[x](../tests/replays/gone.toml)", ["tests/replays/gone.toml"]),
        ("covered by ImbPingPong", ["ImbPingPong without its file"]),
    ],
)
def test_a_name_that_is_not_there_would_be_noticed(text: str, wrong: list[str]) -> None:
    assert wrong_names(text) == wrong


def test_every_replay_stands_in_the_table() -> None:
    named = {file for _, folder, file in LINK.findall(TEXT) if folder == "tests/replays"}
    files = {path.name for path in (ROOT / "tests/replays").iterdir()}
    assert named == {name for name in files if name.endswith(".out")}


def test_every_row_is_whole_and_says_who_covers_it() -> None:
    table = rows(TEXT)
    assert len(table) > 60
    for row in table:
        assert len(row) == 4, row
        assert row[0], row
        assert row[1], row


@pytest.mark.parametrize("document", ["000", "001", "002", "003", "004"])
def test_every_document_has_its_table(document: str) -> None:
    assert f"\n## {document}: " in TEXT
