"""TOML that nobody means: one message with its place, whatever Python's own limits say of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.report.contract import Contract
from fabricproof.site.load import load_toml
from fabricproof.site.schema import ReferenceFile

CLAUSE = """\
title = "t"
[[criteria]]
name = "1"
check = "OsuBandwidth"
nodes = 64
"""


@pytest.mark.parametrize(
    "text", ["document = 1" + "0" * 5000, "document = " + "[" * 5000, "document = " + "{a=" * 2000]
)
def test_what_python_cannot_hold_is_no_toml(text: str, tmp_path: Path) -> None:
    path = tmp_path / "strange.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"strange\.toml: not valid TOML.*digits"):
        load_toml(path, ReferenceFile)


def test_what_is_no_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "strange.toml"
    path.write_bytes(b"# one\n" * 5000 + b'document = "\xe9"\n')
    with pytest.raises(ConfigError, match=r"strange\.toml:5001: not UTF-8 text: expected TOML in"):
        load_toml(path, ReferenceFile)


@pytest.mark.parametrize("value", ["true", '"64"', "64.0", "nan"])
def test_a_clause_on_nodes_states_a_number(value: str, tmp_path: Path) -> None:
    """`true` was one node."""
    path = tmp_path / "contract.toml"
    path.write_text(CLAUSE.replace("64", value))
    with pytest.raises(ConfigError, match=r"contract\.toml:5: "):
        load_toml(path, Contract)
