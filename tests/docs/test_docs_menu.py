"""The menu of the documents as a site has every page once, and links that leave them are words."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def pages(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for each in entry.values() if isinstance(entry, dict) else entry:
            yield from pages(each)


def test_every_page_is_in_the_menu_once() -> None:
    menu = yaml.safe_load((ROOT / "ci" / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    named = sorted(page for page in pages(menu) if "/" not in page)
    assert named == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize(
    ("page", "text", "shown"),
    [
        ("report.md", "[schema](../src/a.json)", "schema (`src/a.json`)"),
        ("report.md", "[pairs](pairs.md)", "[pairs](pairs.md)"),
        ("decisions/0001.md", "[physics](../physics.md)", "[physics](../physics.md)"),
        ("decisions/0001.md", "[it](../../src/a.py)", "it (`src/a.py`)"),
    ],
)
def test_a_link_that_leaves_the_documents_is_its_path(page: str, text: str, shown: str) -> None:
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "ci" / "mkdocs_hooks.py")
    assert spec
    assert spec.loader
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    name = SimpleNamespace(file=SimpleNamespace(src_uri=page))
    assert hooks.on_page_markdown(text, page=name) == shown
