"""TOML that nobody means: one message with its place, whatever Python's own limits say of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.site.load import load_toml
from fabricproof.site.schema import SiteFile


@pytest.mark.parametrize(
    "text", ["name = 1" + "0" * 5000, "name = " + "[" * 5000, "name = " + "{a=" * 2000]
)
def test_what_python_cannot_hold_is_no_toml(text: str, tmp_path: Path) -> None:
    path = tmp_path / "strange.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"strange\.toml: not valid TOML.*digits"):
        load_toml(path, SiteFile)


def test_what_is_no_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "strange.toml"
    path.write_bytes(b"# one\n" * 5000 + b'name = "\xe9"\n')
    with pytest.raises(ConfigError, match=r"strange\.toml:5001: not UTF-8 text: expected TOML in"):
        load_toml(path, SiteFile)
