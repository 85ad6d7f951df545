"""TOML that nobody means: one message with its place, whatever Python's own limits say of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.site.load import load_toml
from fabricproof.verdict.document import PublishedFile

RATIO = """\
document = "d"
[[ratios]]
name = "two rails over one"
numerator = "2 GB/s"
denominator = "1 GB/s"
expected = 2.0
"""
CURVE = """\
document = "d"
[[curves]]
program = "osu_bw"
message_sizes = [1, 2]
bandwidths = [2.0, 3.9]
unit = "MB/s"
"""


@pytest.mark.parametrize(
    "text", ["document = 1" + "0" * 5000, "document = " + "[" * 5000, "document = " + "{a=" * 2000]
)
def test_what_python_cannot_hold_is_no_toml(text: str, tmp_path: Path) -> None:
    path = tmp_path / "strange.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"strange\.toml: not valid TOML.*digits"):
        load_toml(path, PublishedFile)


def test_what_is_no_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "strange.toml"
    path.write_bytes(b"# one\n" * 5000 + b'document = "\xe9"\n')
    with pytest.raises(ConfigError, match=r"strange\.toml:5001: not UTF-8 text: expected TOML in"):
        load_toml(path, PublishedFile)


@pytest.mark.parametrize("value", ["nan", "-inf", "true", '"3.9"'])
def test_a_curve_has_numbers(value: str, tmp_path: Path) -> None:
    """NaN stood in `judge --json`, where it is no JSON."""
    path = tmp_path / "curve.toml"
    path.write_text(CURVE.replace("3.9", value))
    with pytest.raises(ConfigError, match=r"curve\.toml:5: "):
        load_toml(path, PublishedFile)


@pytest.mark.parametrize("value", ["true", '"2.0 GB/s"', "[2.0]"])
def test_a_ratio_is_held_against_a_number(value: str, tmp_path: Path) -> None:
    """`true` was 1: two rails that were worth one were PASS."""
    path = tmp_path / "ratio.toml"
    path.write_text(RATIO.replace("2.0", value))
    if value.startswith('"'):
        assert load_toml(path, PublishedFile)[0].ratios[0].expected == "2.0 GB/s"
        return
    with pytest.raises(ConfigError, match=r"ratio\.toml:6: "):
        load_toml(path, PublishedFile)
