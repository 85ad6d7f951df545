"""docs/physics.md says what the data says, and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fabricproof.cli.judge.ceiling import command
from fabricproof.physics import find_link, known_links
from fabricproof.physics._data import load_data

DOCUMENT = (Path(__file__).parents[2] / "docs" / "physics.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ fabricproof ceiling (.*)$", DOCUMENT, re.MULTILINE)


def reading(row: dict[str, Any]) -> str:
    if "share" in row:
        return f"share {row['share']:g}"
    return f"{row['mtu']}, {row['inside']}, {row['outside']}"


@pytest.mark.parametrize("row", load_data("protocols")["protocols"], ids=lambda row: row["name"])
def test_every_protocol_stands_there_as_in_the_data(row: dict[str, Any]) -> None:
    cells = [row["name"], ", ".join(row["technologies"])]
    cells += [reading(row[name]) for name in ("low", "nominal", "high")]
    assert f"| {' | '.join(cells)} | {row['floor_us']:g} |" in DOCUMENT


@pytest.mark.parametrize("row", load_data("links")["infiniband"]["speeds"], ids=lambda r: r["name"])
def test_every_infiniband_speed_stands_there_as_in_the_data(row: dict[str, Any]) -> None:
    link = find_link(row["name"])
    line, lane = row["line_rate_gbit_s"], link.data_rate_gbit_s / 4
    cells = f"| {row['name']} | {line:.9g} Gb/s | {lane:.6g} Gb/s | {link.data_rate_mb_s:.6g} |"
    assert cells in DOCUMENT


def test_every_other_link_stands_there_as_in_the_data() -> None:
    for link in known_links().values():
        if link.technology not in {"infiniband", "ethernet"}:
            rates = f"| {link.data_rate_gbit_s:g} Gb/s | {link.data_rate_mb_s:g} |"
            assert f"| {link.name} {rates}" in DOCUMENT


def test_every_generation_stands_there_as_in_the_data() -> None:
    for row in load_data("pcie")["generations"]:
        lane = row["gt_per_s_per_lane"] * row["data"] / row["line"] * 125
        cells = [row["generation"], f"{row['gt_per_s_per_lane']:g}", f"{row['data']}/{row['line']}"]
        assert f"| {' | '.join(map(str, cells))} | {lane:.6g} |" in DOCUMENT


def test_the_overheads_stand_there_as_in_the_data() -> None:
    titles = {"symbols": "PCIe 1, 2", "tokens": "PCIe 3 to 5", "flits": "PCIe 6"}
    for name, row in load_data("pcie")["framings"].items():
        overhead = row["overhead_bytes"]
        start = f"| {titles[name]} | {overhead['low']}: {row['parts']['low']} | "
        line = next(line for line in DOCUMENT.splitlines() if line.startswith(start))
        assert f"| {overhead['nominal']}: " in line
        assert f"| {overhead['high']}: " in line


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 4


@pytest.mark.parametrize("arguments", COMMANDS)
def test_the_commands_run(arguments: str) -> None:
    result = CliRunner().invoke(command, shlex.split(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    assert "binds" in result.output
