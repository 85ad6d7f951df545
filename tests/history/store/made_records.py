"""Small histories as files: records as we write them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fabricproof.core.records import append_records

SITE = "made"


def run_id(day: int, digits: str = "a1b2c3") -> str:
    """Return the identity of the run of a day of November."""
    return f"202611{day:02}T020000Z-{digits}"


def quantity(
    run: str, value: float | None = 1000.0, *, name: str = "bandwidth_4MiB", **other: Any
) -> dict[str, Any]:
    """Return the record of one quantity, complete as job.recording leaves it."""
    record: dict[str, Any] = {
        "kind": "quantity", "run_id": run, "check": "OsuBandwidth", "site": SITE,
        "partition": "compute", "stack": "openmpi5", "fabric": "ib0", "job_id": "7",
        "leg": "rail0", "rails": ["rail0"], "suite": "osu", "program": "osu_bw",
        "inventory": {"n1": "aa", "n2": "bb"}, "attempt": 1, "counts": True,
        "tool_version": "v7.5", "attributes": {"window_size": "64", "retransmits": "3"},
        "nodes": ["n2", "n1"], "completed": 1795287899.0,
        "stage_folder": "/stage/OsuBandwidth", "unique_name": "OsuBandwidth_0",
        "stack_identity": {"origin": "spack", "digest": "0123456789abcdef", "mpi": "openmpi@5"},
        "road_state": "PROVEN", "quantity_name": name, "quantity_value": value,
        "quantity_unit": "MB/s", "quantity_verdict": "PASS", "quantity_reason": "good enough",
        "quantity_ceiling": 1200.0, "quantity_ceiling_name": "link", "quantity_reference": 1000.0,
        "quantity_lower": 900.0, "quantity_upper": None, "quantity_origin": "the site",
        "quantity_message_size": 4194304, "quantity_named": True,
    }  # fmt: skip
    return {**record, **other}


def leg(run: str, verdict: str = "PASS", **other: Any) -> dict[str, Any]:
    """Return the record of one leg."""
    return {"kind": "leg", "run_id": run, "verdict": verdict, "leg": "rail0", **other}


def write(folder: Path, records: Iterable[dict[str, Any]], name: str = "records.jsonl") -> Path:
    """Append records to a file of the partition; return it."""
    path = folder / SITE / "compute" / name
    append_records(path, records)
    return path
