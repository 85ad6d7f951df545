"""The house itself: fronts that are kept, folders seen at once, functions read at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from fronts import LIBRARY, PAGE, ROOT, front_of, rooms, violations, written

SOURCES = sorted((ROOT / "src").rglob("*.py"))

#: a folder that is seen at once; CONTRIBUTING.md says so
MOST_MODULES = 12
#: a function that is read at once, without its docstring
MOST_LINES = 60


def test_every_room_has_a_front_and_what_it_names_is_there() -> None:
    for room, folder in rooms().items():
        for module, gives in front_of(folder).items():
            path = folder.joinpath(*module.split("."))
            assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), room
            assert gives
            assert "\n" not in gives


def test_what_is_behind_a_front_or_needed_by_nobody_is_told() -> None:
    fronts = {"core": {"errors": "errors", "units": "units"}, "site": {}}
    imports = {
        ("fabricproof.site.load", "fabricproof.core.errors"): "a:1",
        ("fabricproof.site.load", "fabricproof.core.secret"): "a:2",
        ("fabricproof.core.errors", "fabricproof.core.secret"): "b:1",
        ("fabricproof.core.errors", "fabricproof"): "b:2",
        ("fabricproof.core.errors", "fabricproof.site"): "b:3",
    }
    assert violations(imports, fronts) == [
        "a:2: fabricproof.core.secret is behind the front of core",
        "the front of core names units, which no other room imports",
    ]


def test_a_room_without_a_front_is_refused(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('"""A room."""\n')
    with pytest.raises(ValueError, match="expected FRONT"):
        front_of(tmp_path)


def test_checks_take_of_reframes_room_what_its_front_names() -> None:
    files = [*(ROOT / "checks").rglob("*.py"), ROOT / "reframe_settings.py"]
    used = {
        node.module.removeprefix("fabricproof.rfm.")
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fabricproof.rfm.")
    }
    assert used == set(front_of(LIBRARY / "rfm"))


def test_the_architecture_has_the_fronts() -> None:
    page = PAGE.read_text()
    assert page == written(page), "next: .venv/bin/python tests/fronts.py"
    assert "<!-- fronts" in page


def test_no_folder_has_more_modules_than_are_seen_at_once() -> None:
    folders = {path.parent for path in SOURCES}
    counts = {
        str(folder.relative_to(ROOT)): sum(1 for _ in folder.glob("[!_]*.py")) for folder in folders
    }
    assert {name: count for name, count in counts.items() if count > MOST_MODULES} == {}


def _long(source: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            told = (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            )
            docstring = (first.end_lineno or 0) - first.lineno + 1 if told else 0
            length = (node.end_lineno or 0) - node.lineno + 1 - docstring
            if length > MOST_LINES:
                yield node.name, length


def test_no_function_is_longer_than_is_read_at_once() -> None:
    assert [(str(path), *each) for path in SOURCES for each in _long(path.read_text())] == []


def test_a_long_function_is_found_and_its_docstring_does_not_count() -> None:
    body = "    x = 1\n" * (MOST_LINES - 1)
    assert list(_long(f"def f():\n{body}")) == []
    assert list(_long(f'def f():\n    """A.\n\n    B.\n    """\n{body}')) == []
    assert list(_long(f"def f():\n    y = 1\n{body}")) == [("f", MOST_LINES + 1)]
