"""What holds for every document: links resolve, words are explained, no machine shines through."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import DOCUMENTS, ROOT, name_of

from fabricproof.cli.main import SUBCOMMANDS
from fabricproof.core.errors import ExitStatus
from fabricproof.core.measure import COLUMNS, Verdict

TEXTS = {path: path.read_text(encoding="utf-8") for path in DOCUMENTS}

#: absolute folders of somebody's machine, and hosts that packages come from
MACHINE = re.compile(r"(?<![\w.])/(work|home|root|tmp|Users|mnt)/\w+")
REGISTRY = re.compile(
    r"https?://[^\s)]*(pypi|index-url|mirror|registry|artifact|proxy)", re.IGNORECASE
)

EVERY = pytest.mark.parametrize("path", DOCUMENTS, ids=[name_of(path) for path in DOCUMENTS])


def anchors(text: str) -> set[str]:
    """Return the anchors that a forge makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def broken_links(path: Path, text: str) -> list[str]:
    """Return the links of a document to files or headings that are not there."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        linked = (path.parent / file).resolve() if file else path
        known = (
            anchors(linked.read_text(encoding="utf-8"))
            if linked.suffix == ".md" and linked.is_file()
            else set()
        )
        if not linked.exists() or (anchor and anchor not in known):
            broken.append(target)
    return broken


@EVERY
def test_links_resolve(path: Path) -> None:
    assert broken_links(path, TEXTS[path]) == []


@pytest.mark.parametrize("target", ["docs/nowhere.md", "docs/glossary.md#no-such-heading"])
def test_a_broken_link_would_be_noticed(target: str) -> None:
    assert broken_links(ROOT / "README.md", f"see [it]({target})") == [target]


@EVERY
def test_no_machine_shines_through(path: Path) -> None:
    assert MACHINE.search(TEXTS[path]) is None
    assert REGISTRY.search(TEXTS[path]) is None


@pytest.mark.parametrize("text", ["see /home/me/x", "in /tmp/out", "https://pypi.example/simple"])
def test_a_machine_would_be_noticed(text: str) -> None:
    assert MACHINE.search(text) or REGISTRY.search(text)


@EVERY
def test_a_document_has_one_title_and_closed_fences(path: Path) -> None:
    assert TEXTS[path].startswith("# ")
    assert len(re.findall(r"^ *```", TEXTS[path], flags=re.MULTILINE)) % 2 == 0


def explained() -> str:
    pages = ("glossary.md", "how-to-read-a-verdict.md")
    return "\n".join(TEXTS[ROOT / "docs" / page] for page in pages)


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_is_in_the_glossary_with_its_unit(column: str) -> None:
    row = rf"^\| `{column}` \| {re.escape(COLUMNS[column])} ?\| \S"
    assert re.search(row, TEXTS[ROOT / "docs" / "glossary.md"], flags=re.MULTILINE)


def test_the_glossary_has_no_column_that_no_parser_may_use() -> None:
    section = TEXTS[ROOT / "docs" / "glossary.md"].partition("## Columns of a parsed table")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == set(COLUMNS)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_is_explained(verdict: Verdict) -> None:
    assert f"| `{verdict.value}` |" in explained()


@pytest.mark.parametrize("status", list(ExitStatus), ids=lambda status: status.name)
def test_every_exit_status_is_explained(status: ExitStatus) -> None:
    assert re.search(rf"^\| {status.value} \|", explained(), flags=re.MULTILINE)


@pytest.mark.parametrize("status", list(ExitStatus), ids=lambda status: status.name)
def test_the_readme_names_every_exit_status(status: ExitStatus) -> None:
    text = TEXTS[ROOT / "README.md"]
    paragraph = text[text.index("\nExit status: ") :].split("\n\n", 1)[0]
    assert re.search(rf"\b{status.value}\b", paragraph)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_readme_names_every_command(name: str) -> None:
    assert re.search(rf"^\| \*\*.*`{name}`", TEXTS[ROOT / "README.md"], flags=re.MULTILINE)


def test_the_architecture_names_every_room() -> None:
    text = TEXTS[ROOT / "docs" / "architecture.md"]
    rooms = {
        path.stem
        for path in (ROOT / "src" / "fabricproof").glob("[a-z]*")
        if path.suffix != ".typed"
    }
    assert {room for room in rooms if f"`{room}`" not in text} == set()


def test_every_page_is_listed() -> None:
    folder = ROOT / "docs"
    listed = set(re.findall(r"\(([\w-]+\.md)\)", TEXTS[folder / "README.md"]))
    assert listed == {path.name for path in folder.glob("*.md")} - {"README.md"}


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\((\d{4}-[\w-]+\.md)\)", TEXTS[folder / "README.md"])
    assert listed == sorted(path.name for path in folder.glob("0*.md"))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "decisions").glob("0*.md")), ids=lambda path: path.stem
)
def test_a_decision_has_context_decision_consequence(path: Path) -> None:
    words = re.findall(r"^\*\*(\w+)\.\*\*", TEXTS[path], flags=re.MULTILINE)
    assert words == ["Context", "Decision", "Consequence"]
