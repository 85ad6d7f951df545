"""An error is one line: where, what, expected, got, next; and its status is documented."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import fabricproof.core.errors as errors_module
from fabricproof.cli.main import group
from fabricproof.core.errors import ConfigError, ExitStatus, FabricproofError, words_of

CLASSES = [
    each
    for _, each in inspect.getmembers(errors_module, inspect.isclass)
    if issubclass(each, FabricproofError)
]
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "how-to-read-a-verdict.md"


def test_a_whole_message() -> None:
    error = ConfigError(
        "unknown link",
        source="fabric.toml",
        line=3,
        expected="one of FDR 4x",
        got="'FDX'",
        next_step="look at ibstat",
    )
    assert str(error) == (
        "fabric.toml:3: unknown link: expected one of FDR 4x, got 'FDX'; next: look at ibstat"
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, "it broke"),
        ({"source": "a.out"}, "a.out: it broke"),
        ({"line": 4}, "4: it broke"),
        ({"got": "'x'"}, "it broke: got 'x'"),
        ({"expected": "a row"}, "it broke: expected a row"),
        ({"next_step": "retry"}, "it broke; next: retry"),
    ],
)
def test_parts_that_are_not_known_leave_no_trace(facts: dict[str, str], expected: str) -> None:
    assert str(FabricproofError("it broke", **facts)) == expected


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (UnicodeDecodeError("utf-8", b"x" * 9999, 7, 8, "bad"), "byte 7 is no text in UTF-8"),
        (KeyError("size"), "no size"),
        (KeyError(), "a key is missing"),
        (TypeError("due is no list"), "due is no list"),
        (ValueError(), "ValueError"),
    ],
)
def test_what_python_says_of_data_is_words_and_not_the_data(error: Exception, words: str) -> None:
    assert words_of(error) == words


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_is_caught_as_ours_and_has_a_status_beyond_the_verdicts(
    kind: type[FabricproofError],
) -> None:
    error = kind("x", source="f", line=1)
    assert isinstance(error, FabricproofError)
    assert str(error) == "f:1: x"
    assert error.exit_status >= 64 or error.exit_status is ExitStatus.USAGE


def test_statuses_are_unique() -> None:
    assert len({int(status) for status in ExitStatus}) == len(list(ExitStatus))


def test_the_help_names_every_status_but_the_bug() -> None:
    epilog = group.epilog or ""
    named = {int(number) for number in re.findall(r"\b\d+\b", epilog)}
    assert named == {int(status) for status in ExitStatus if status is not ExitStatus.SOFTWARE}


def test_the_document_names_every_status() -> None:
    rows = re.findall(r"^\| (\d+) \|", DOCUMENT.read_text(), flags=re.MULTILINE)
    assert sorted(map(int, rows)) == sorted(int(status) for status in ExitStatus)
