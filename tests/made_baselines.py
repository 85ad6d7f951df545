"""Baselines made by hand."""

from __future__ import annotations

from typing import Any

from fabricproof.core.provenance import LegPlace
from fabricproof.verdict.references import Baseline, BaselineLeg, BaselineRow

FACTS: dict[str, dict[str, str | int]] = {
    "node": {"kernel": "6.1.0", "cpus": 64},
    "interface ib0": {"firmware": "28.39", "model": "ConnectX-6", "mtu": 4096, "state": "up"},
}

WHERE = LegPlace(
    partition="compute", fabric="ib", stack="openmpi5", build="51af25c1cd81", suite="osu",
    program="osu_bw", tool_version="7.2", check="OsuBandwidth", leg="ib0", rails="ib0",
    nodes="n1,n2", settings="num_pairs=1 window_size=64",
)  # fmt: skip

RUNS = [f"2026110{day}T010000Z-00000{day}" for day in range(1, 6)]


def make_row(**changes: Any) -> BaselineRow:
    facts: dict[str, Any] = {
        "quantity": "bandwidth_4MiB", "unit": "MB/s", "message_size": 4 * 1024 * 1024, "better": 1,
        "named": True, "median": 100.3, "spread": 0.002, "low": 98.7, "high": 101.9,
        "num_runs": 5,
    }  # fmt: skip
    return BaselineRow(**{**facts, **changes})


LATENCY = make_row(
    quantity="latency_8B", unit="us", message_size=8, better=-1, median=2.0, low=1.8, high=2.2
)


def make_baseline(*rows: BaselineRow, **changes: Any) -> Baseline:
    facts: dict[str, Any] = {
        "name": "spring", "site": "here", "frozen": "2026-11-06T08:00:00Z",
        "command": "fabricproof baseline freeze spring last:5", "fabricproof": "0.1.0",
        "runs": {run: f"{run[:4]}-{run[4:6]}-{run[6:8]}T01:00:00Z" for run in RUNS},
        "common": FACTS, "nodes": {"n1": {}, "n2": {}},
        "groups": (BaselineLeg(place=WHERE, rows=rows or (make_row(), LATENCY)),),
        "settings": ("num_pairs", "window_size"), "set_aside": ("run x: its number is INVALID",),
    }  # fmt: skip
    return Baseline(**{**facts, **changes})
