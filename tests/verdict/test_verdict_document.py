"""docs/how-to-read-a-verdict.md: every command is run, and prints what the page shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.measure import Verdict

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to-read-a-verdict.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n\$ (.+)\n((?:.*\n)*?)```$", PAGE, flags=re.MULTILINE)


def test_the_page_shows_commands() -> None:
    assert len(BLOCKS) >= 6


@pytest.mark.parametrize(("line", "shown"), BLOCKS, ids=[line for line, _ in BLOCKS])
def test_a_command_prints_what_the_page_shows(
    line: str, shown: str, fabricproof: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(line)
    assert program == "fabricproof"
    ended = fabricproof(*arguments)
    assert ended.err == ""
    assert ended.out == shown


def test_every_verdict_has_its_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert set(rows) >= {verdict.value for verdict in Verdict}
